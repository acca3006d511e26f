//! Tests that a state has the same bytes however they are written into the file.

use std::{
    fs,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_files::{DirectSink, Durability, FileSink, Phase, Progress, ProgressMonitor};
use serdes_stream_executor::Plugin;
use serdes_testkit::noise::noise;

use super::*;
use crate::{Error, Part, Reader, SaveId, Versions, WriteOptions, tests::Pipe};

/// Returns directories on a disk and, on Linux, in memory.
fn places() -> Vec<tempfile::TempDir> {
    let memory = PathBuf::from("/dev/shm");
    let mut places = vec![tempfile::tempdir().unwrap()];
    places.extend(memory.is_dir().then(|| tempfile::tempdir_in(memory).unwrap()));
    places
}

fn takes_direct(directory: &Path) -> bool {
    let path = directory.join("probe");
    let file = File::create(&path).unwrap();
    let cached = FileSink::new(file.try_clone().unwrap(), Durability::None);
    let takes = DirectSink::open(&file, &path, cached).is_ok();
    fs::remove_file(path).unwrap();
    takes
}

/// Adds tensors of all lengths: whole blocks, partial blocks, small, empty.
fn fill(writer: &mut Writer) {
    let device = Plugin::host().device(0).unwrap();
    for (n, bytes) in
        [3 << 20, 5, (2 << 20) + 4097, 0, 700_000, 700_001, 1 << 20].into_iter().enumerate()
    {
        let shape = Shape::new([bytes]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        let memory = device.upload(&noise(bytes as usize, n as u64)).unwrap();
        writer.add(&format!("t{n}"), &spec, &memory).unwrap();
    }
}

#[test]
fn a_state_has_the_same_bytes_past_the_cache() {
    for place in places() {
        let takes = takes_direct(place.path());
        let path = place.path().join("a.sds");
        let mut states = Vec::new();
        for (direct, threaded) in [(false, true), (true, true), (true, false)] {
            for durability in [Durability::Data, Durability::None] {
                let mut options = WriteOptions::new(Versions::current())
                    .with_direct(direct)
                    .with_durability(durability);
                options.threaded = threaded;
                let mut writer = options.create(&path).unwrap();
                fill(&mut writer);
                assert_eq!(writer.finish().unwrap().direct, direct && takes);
                states.push(fs::read(&path).unwrap());
            }
        }
        assert!(states.iter().all(|state| *state == states[0]));
        let state = Reader::open(&path).unwrap();
        assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_part_has_the_same_bytes_past_the_cache() {
    for place in places() {
        let takes = takes_direct(place.path());
        let part = Part::new(SaveId::new([3; 16]), 0, 1).unwrap();
        let parts = [false, true].map(|direct| {
            let path = place.path().join(format!("{direct}.sds"));
            let options = WriteOptions::new(Versions::current()).with_direct(direct);
            let mut writer = options.create_part(&path, part).unwrap();
            fill(&mut writer);
            assert_eq!(writer.finish().unwrap().direct, direct && takes);
            fs::read(path.with_extension("sds.parts").join(part.name())).unwrap()
        });
        assert!(parts[0] == parts[1]);
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    for place in places() {
        let path = place.path().join("a.sds");
        let options = WriteOptions::new(Versions::current()).with_direct(true);
        let mut writer = options.create(&path).unwrap();
        fill(&mut writer);
        drop(writer);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

fn bytes_spec(bytes: usize) -> ArraySpec {
    let shape = Shape::new([bytes as i64]).unwrap();
    ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)))
}

#[test]
fn memory_of_this_process_saves_the_same_state_as_a_reader() {
    // Empty, a few bytes, less than a buffer, one buffer, partial buffers.
    let mut lengths =
        vec![0, 5, (1 << 20) - 1, 1 << 20, (5 << 20) + 77, (9 << 20) + 3, 100, 2 << 20];
    // Lengths of which a second core sums more than one portion, with a rest that it does not get.
    lengths.extend([(21 << 20) + 3, (17 << 20) + 1]);
    let tensors: Vec<_> =
        lengths.iter().enumerate().map(|(n, length)| noise(*length, n as u64)).collect();
    let device = Plugin::host().device(0).unwrap();
    let on_device = device.upload(&noise(3 << 20, 99)).unwrap();
    let state = |threaded: bool, put: &dyn Fn(&mut Writer, &str, &[u8])| {
        let pipe = Pipe::default();
        let mut options = WriteOptions::new(Versions::current()).with_chunk_bytes(1 << 18);
        options.threaded = threaded;
        let mut writer = options.stream(pipe.clone()).unwrap();
        for (n, bytes) in tensors.iter().enumerate() {
            put(&mut writer, &format!("t{n}"), bytes);
            // Bytes from a device are written by another thread.
            writer.add(&format!("d{n}"), &bytes_spec(3 << 20), &on_device).unwrap();
        }
        writer.finish().unwrap();
        pipe.bytes()
    };
    let expected = state(false, &|writer, name, mut bytes| {
        let length = bytes.len();
        writer.add_reader(name, &bytes_spec(length), &mut bytes, length as u64).unwrap();
    });
    for threaded in [false, true] {
        let found = state(threaded, &|writer, name, bytes| {
            writer.add_bytes(name, &bytes_spec(bytes.len()), bytes).unwrap();
        });
        assert!(found == expected, "{threaded}");
    }
}

/// Counts the bytes that are written from a range of memory, and those from elsewhere.
#[derive(Clone)]
struct Origins {
    memory: std::ops::Range<usize>,
    counts: Arc<Mutex<(usize, usize)>>,
}

impl Write for Origins {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut counts = self.counts.lock().unwrap();
        match self.memory.contains(&bytes.as_ptr().addr()) {
            true => counts.0 += bytes.len(),
            false => counts.1 += bytes.len(),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn large_memory_of_this_process_is_written_from_where_it_lies() {
    let bytes = noise((9 << 20) + 1, 1);
    let begin = bytes.as_ptr().addr();
    let origins = Origins { memory: begin..begin + bytes.len(), counts: Arc::default() };
    let mut writer = WriteOptions::new(Versions::current()).stream(origins.clone()).unwrap();
    writer.add_bytes("w", &bytes_spec(bytes.len()), &bytes).unwrap();
    let written = writer.finish().unwrap();
    let (own, other) = *origins.counts.lock().unwrap();
    assert_eq!(own, bytes.len());
    assert_eq!((own + other) as u64, written.file_bytes);
}

#[test]
fn the_length_of_a_state_is_known_before_it_is_written() {
    let string = ArraySpec::new(
        DType::String,
        Shape::new([2]).unwrap(),
        SingleDeviceSharding::new(DeviceId(0)),
    );
    let lengths = [0, 5, (1 << 20) - 1, 1 << 20, (2 << 20) + 77];
    let specs: Vec<_> = lengths.iter().map(|length| bytes_spec(*length)).collect();
    let names: Vec<_> = lengths.iter().map(|length| format!("t{length}")).collect();
    let metadata = Some(vec![("step".to_owned(), "7".to_owned())]);
    for chunk_bytes in [64, 1 << 20] {
        let options = WriteOptions::new(Versions::current()).with_chunk_bytes(chunk_bytes);
        let options = options.with_metadata(metadata.clone());
        let numbers = names.iter().zip(&specs).zip(lengths);
        let tensors = numbers.map(|((name, spec), length)| (&**name, spec, length as u64));
        let length = options.clone().length_of(tensors.chain([("s", &string, 20)])).unwrap();
        let pipe = Pipe::default();
        let mut writer = options.stream(pipe.clone()).unwrap();
        for ((name, spec), length) in names.iter().zip(&specs).zip(lengths) {
            writer.add_bytes(name, spec, &noise(length, 1)).unwrap();
        }
        writer.add_strings("s", &string, &["a", "bcd"]).unwrap();
        writer.finish().unwrap();
        assert_eq!(pipe.bytes().len() as u64, length);
    }
    let twice = [("a", &specs[0], 0), ("a", &specs[0], 0)];
    let result = WriteOptions::new(Versions::current()).length_of(twice);
    assert!(matches!(result, Err(Error::DuplicateName { .. })), "{result:?}");
}

#[test]
fn a_save_of_memory_of_this_process_is_stopped_on_its_way() {
    /// Stops the work when the first bytes are written.
    struct Stops(ProgressMonitor, Mutex<u64>);

    impl Progress for Stops {
        fn begin(&self, _: Phase, _: u64) {}

        fn advance(&self, bytes: u64) {
            *self.1.lock().unwrap() += bytes;
            self.0.cancel();
        }
    }

    let bytes = noise(20 << 20, 1);
    for place in places() {
        for threaded in [false, true] {
            let monitor = ProgressMonitor::new();
            let stops = Arc::new(Stops(monitor.clone(), Mutex::default()));
            let monitor = monitor.with_progress(stops.clone());
            let mut options = WriteOptions::new(Versions::current()).with_monitor(monitor);
            options.threaded = threaded;
            let mut writer = options.create(place.path().join("a.sds")).unwrap();
            let result = writer.add_bytes("w", &bytes_spec(bytes.len()), &bytes);
            assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
            assert!(*stops.1.lock().unwrap() <= 1 << 20);
            drop(writer);
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        }
    }
}
