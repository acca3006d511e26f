//! States past the system's cache are those through it.

use std::{
    fs,
    fs::File,
    path::{Path, PathBuf},
};

use super::*;
use crate::{
    device_state::{Part, Reader, SaveId, Versions, WriteOptions},
    files::{DirectSink, Durability, FileSink, Watch, tests::noise},
    ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
    stream_executor::Plugin,
};

/// Where files lie on a disk and, on Linux, in memory.
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

/// Adds tensors of all lengths: in whole blocks, ragged, small, none.
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
        assert!(state.verify(&Watch::new()).unwrap().is_empty());
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
