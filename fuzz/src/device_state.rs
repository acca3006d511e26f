//! Opening, verifying and reading device states of arbitrary bytes.

use std::{
    io::Read,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use crc_fast::crc32_iscsi as crc32c;
use serdes_device_state::{
    Durability, Error, Part, PartStore, PendingPart, ProgressMonitor, Reader, SaveId, Versions,
    WriteOptions, files::ReadAt, merge_in,
};

/// Opens and reads a state. The first byte says whether the checksums are corrected, so that the
/// checks after them are reached; the rest is the file.
pub fn device_state(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let mut file = file.to_vec();
    if choice & 1 == 1 {
        mend(&mut file);
    }
    let Ok(state) = Reader::from_source(file, "fuzz") else { return };
    examine(&state);
}

/// Checks that every tensor that was verified can be read.
fn examine(state: &Reader) {
    let damaged = state.verify(&ProgressMonitor::new()).expect("memory can be read");
    for name in state.names() {
        let Ok(tensor) = state.tensor(name) else { continue };
        let whole = !damaged.iter().any(|damage| damage.tensor == name);
        let mut data = Vec::new();
        let Ok(mut reader) = tensor.read() else { continue };
        let read = reader.read_to_end(&mut data);
        assert!(read.is_ok() || !whole, "{name:?} was verified and cannot be read");
        assert!(read.is_err() || data.len() as u64 == tensor.bytes());
        let _ = tensor.strings();
    }
    let _ = state.tensors_in_file_order();
}

/// Corrects the checksums of first bytes, header, index and trailer, if the file is long enough.
fn mend(file: &mut [u8]) {
    let Some(trailer) = file.len().checked_sub(64) else { return };
    let u64_at = |file: &[u8], at: usize| {
        file.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes) as usize
    };
    let set = |file: &mut [u8], at: usize, sum: u32| {
        if let Some(place) = file.get_mut(at..at.saturating_add(4)) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    };
    let first = crc32c(&file[..28]);
    set(file, 28, first);
    let header = u64_at(file, 20) & 0xffff_ffff;
    let end = header.saturating_sub(4);
    let header_sum = file.get(..end).map_or(0, crc32c);
    set(file, end, header_sum);
    let (begin, length) = (u64_at(file, trailer), u64_at(file, trailer + 8));
    let index_sum = file.get(begin..begin.saturating_add(length)).map_or(0, crc32c);
    set(file, trailer + 24, index_sum);
    set(file, trailer + 28, header_sum);
    let sum = crc32c(&file[trailer..trailer + 52]);
    set(file, trailer + 52, sum);
}

/// The files of a state that several processes saved, in memory.
#[derive(Debug)]
struct Memory {
    index: Mutex<Vec<u8>>,
    parts: Vec<Vec<u8>>,
}

fn missing() -> Error {
    let directory = std::env::temp_dir().join("serdes-fuzz-none");
    Reader::open(directory.join("none")).expect_err("nothing is there")
}

impl PartStore for Memory {
    fn place(&self) -> PathBuf {
        PathBuf::from("memory.sds")
    }

    fn directory(&self) -> String {
        "memory.sds.parts".to_owned()
    }

    fn put_part(&self, _: Part) -> Result<PendingPart, Error> {
        Err(missing())
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        let count = self.parts.len() as u32;
        Ok((0..count).filter_map(|number| Part::new(SAVE, number, count).ok()).collect())
    }

    fn open_part(&self, _: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
        match self.parts.get(part.number() as usize) {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => Err(missing()),
        }
    }

    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error> {
        Ok(Box::new(self.index.lock().map_err(|_| missing())?.clone()))
    }

    fn commit_index(&self, bytes: &[u8], _: Durability) -> Result<Duration, Error> {
        *self.index.lock().map_err(|_| missing())? = bytes.to_vec();
        Ok(Duration::ZERO)
    }

    fn clean(&self, _: &[SaveId]) {}
}

const SAVE: SaveId = SaveId::new([1; 16]);

/// Opens an index with the parts that it names; then merges the parts, and opens the result.
///
/// The first byte says which checksums are corrected; the second is the number of parts, up to 3;
/// then come the length of each part as u16 (little endian), the parts, and the index.
pub fn merged_state(data: &[u8]) {
    let Some(([choice, count], mut rest)) = data.split_first_chunk::<2>().map(|(a, b)| (*a, b))
    else {
        return;
    };
    let mut lengths = Vec::new();
    for _ in 0..count % 4 {
        let Some((length, tail)) = rest.split_first_chunk::<2>() else { return };
        lengths.push(u16::from_le_bytes(*length) as usize);
        rest = tail;
    }
    let mut parts = Vec::new();
    for length in lengths {
        let Some((part, tail)) = rest.split_at_checked(length) else { return };
        let mut part = part.to_vec();
        if choice & 1 == 1 {
            mend(&mut part);
        }
        parts.push(part);
        rest = tail;
    }
    let mut index = rest.to_vec();
    if choice & 2 == 2 {
        record(&mut index, &parts);
        mend(&mut index);
    }
    let store = Arc::new(Memory { index: Mutex::new(index), parts });
    if let Ok(state) = Reader::open_in(store.clone()) {
        examine(&state);
    }
    let options = WriteOptions::new(Versions::current());
    if merge_in(store.clone(), SAVE, &options).is_ok() {
        let state = Reader::open_in(store).unwrap_or_else(|error| panic!("merged, but {error}"));
        assert!(state.tensors().all(|tensor| tensor.is_ok()));
        examine(&state);
    }
}

/// Writes the trailers of the parts into the header of the index.
fn record(index: &mut [u8], parts: &[Vec<u8>]) {
    let Some(field) = index.windows(4).position(|tag| tag == [7, 0, 0, 0x80]) else { return };
    let length = index.get(field + 28).copied().unwrap_or_default() as usize;
    let begin = field + 8 + 24 + length.next_multiple_of(8);
    for (number, part) in parts.iter().enumerate() {
        let Some(trailer) = part.len().checked_sub(64).and_then(|at| part.get(at..)) else {
            return;
        };
        let at = begin + 72 * number + 8;
        let Some(place) = index.get_mut(at..at + 64) else { return };
        place.copy_from_slice(trailer);
    }
}
