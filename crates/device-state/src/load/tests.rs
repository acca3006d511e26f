//! Tests of loads onto a test device, which may fail at any time.

use std::io;

use serdes::{
    codec::ErrorKind,
    ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
};
use serdes_files::{ProgressMonitor, ReadAt};
use serdes_testkit::noise::noise;

use super::*;
use crate::{
    Error, Versions, WriteOptions,
    format::trailer::{TRAILER_BYTES, Trailer},
    pump::tests::{Toy, ToyMemory},
    tests::Pipe,
};

/// Lengths of tensors that are read alone, read together, and not read.
const LENGTHS: [usize; 7] = [3 << 20, 70_000, 0, 200_000, (4 << 20) + 1, 1 << 20, 9];

/// Returns a state of these tensors, in chunks of `chunk_bytes`.
fn state(chunk_bytes: u32) -> Vec<u8> {
    let pipe = Pipe::default();
    let options = WriteOptions::new(Versions::current()).with_chunk_bytes(chunk_bytes);
    let mut writer = options.stream(pipe.clone()).unwrap();
    for (seed, bytes) in (0..).zip(LENGTHS) {
        let shape = Shape::new([bytes as i64]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        writer.add_bytes(&format!("t{seed}"), &spec, &noise(bytes, seed)).unwrap();
    }
    writer.finish().unwrap();
    pipe.bytes()
}

fn load(state: &[u8], toy: &Toy) -> Result<Vec<ToyMemory>, Error> {
    let reader = Reader::from_source(state.to_vec(), "a state").unwrap();
    let tensors = reader.tensors_in_file_order().unwrap();
    reader.load_whole(&tensors.iter().collect::<Vec<_>>(), toy, &ProgressMonitor::new())
}

#[test]
fn every_memory_gets_its_bytes_whatever_the_chunks_are() {
    for chunk_bytes in [1 << 14, 1 << 20, 1 << 22] {
        let toy = Toy::default();
        let memories = load(&state(chunk_bytes), &toy).unwrap();
        assert_eq!(memories.len(), LENGTHS.len());
        for ((memory, bytes), seed) in memories.iter().zip(LENGTHS).zip(0..) {
            assert!(*memory.bytes.lock().unwrap() == noise(bytes, seed), "{chunk_bytes} {seed}");
        }
        let notes = toy.notes();
        assert_eq!((notes.streams, notes.under_way), (1, 0));
        // Only tensors that share a buffer are copied by synchronous calls.
        assert_eq!(notes.waited, 3);
    }
}

#[test]
fn a_device_that_fails_at_any_time_ends_a_load_with_its_error() {
    let state = state(1 << 20);
    // The number of created buffers depends on how soon used ones come back, so the number of
    // operations differs between loads.
    for left in 0.. {
        let toy = Toy::default();
        toy.notes().left = Some(left);
        let loaded = load(&state, &toy);
        let notes = toy.notes();
        assert_eq!(notes.under_way, 0, "{left}");
        match loaded {
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("broken while"), "{left}: {error}");
            }
            Ok(_) => {
                assert!(!notes.refused, "{left}: a failure of the device was lost");
                assert!(left > 2 * LENGTHS.len(), "{left} operations cannot be all");
                break;
            }
        }
    }
}

#[test]
fn damage_anywhere_ends_a_load_and_is_no_device_failure() {
    let whole = state(1 << 20);
    let find = |seed: u64| {
        let data = noise(64, seed);
        whole.windows(64).position(|part| part == data).unwrap()
    };
    let (large, small) = (find(4), find(1));
    // In a small tensor, in the bytes behind it, and in the first, a middle and the last chunk of a
    // large one.
    for at in [small + 5, small + 70_003, large, large + (2 << 20), large + (4 << 20)] {
        let mut state = whole.clone();
        state[at] ^= 1;
        let toy = Toy::default();
        let error = load(&state, &toy).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}");
        assert_eq!(toy.notes().under_way, 0);
    }
}

/// A file that begins and ends with these bytes, and has zeros between.
struct Holes {
    begin: Vec<u8>,
    end: Vec<u8>,
    size: u64,
}

impl ReadAt for Holes {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.size - self.end.len() as u64;
        if offset < self.begin.len() as u64 {
            return self.begin.read_at(buffer, offset);
        }
        if offset >= end {
            return self.end.read_at(buffer, offset - end);
        }
        let zeros = buffer.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        buffer[..zeros].fill(0);
        Ok(zeros)
    }
}

#[test]
fn index_longer_than_any_is_damage_and_takes_no_memory() {
    let begin = state(1 << 20);
    let header = Reader::from_source(begin.clone(), "a state").unwrap().state.header_bytes;
    let old = Trailer::decode(begin.last_chunk().unwrap(), begin.len() as u64).unwrap();
    for size in [1 << 34, 1 << 50, i64::MAX as u64] {
        let trailer = Trailer {
            index_offset: header,
            index_bytes: size - header - TRAILER_BYTES as u64,
            file_bytes: size,
            ..old
        };
        let end = trailer.encode().to_vec();
        let file = Holes { begin: begin[..header as usize].to_vec(), end, size };
        let error = Reader::from_source(file, "a state").err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("at most"), "{error}");
    }
}

#[test]
fn error_of_damage_names_the_file_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.sds");
    let whole = state(1 << 20);
    let data = noise(64, 1);
    let data = whole.windows(64).position(|part| part == data).unwrap();
    for at in [40, data + 5, whole.len() - 3] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let read = Reader::open(&path).and_then(|reader| {
            let tensor = reader.tensor("t1")?;
            let read = io::copy(&mut tensor.read()?, &mut io::sink());
            read.map(|_| ()).map_err(|error| tensor.read_error(&path, error))
        });
        let error = read.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}");
        assert_eq!((error.path(), error.kind()), (Some(&*path), ErrorKind::Corrupt), "{at}");
        let name = path.display().to_string();
        assert_eq!(error.to_string().matches(&name).count(), 1, "{error}");
        assert!(!error.without_path(&path).to_string().contains(&name));
    }
    std::fs::write(&path, "no state").unwrap();
    let error = Reader::open(&path).unwrap_err();
    assert_eq!(error.path(), Some(&*path), "{error}");
}
