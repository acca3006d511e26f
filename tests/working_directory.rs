//! Tests that work that began with a relative path ends in the same place: foreign code in the
//! process, such as a plug-in, may change the working directory at any time.
//!
//! The only test of its process, because all threads share the working directory.

use std::{env, fs, path::Path};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_checkpoints::tensor_bundle::{Bundle, BundleOptions, BundleWriter};
use serdes_device_state::{Durability, Part, Reader, SaveId, Versions, WriteOptions, merge};
use serdes_graph_format::data_type::DataType;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_save_ends_where_it_was_begun() {
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    env::set_current_dir(here.path()).unwrap();
    let options = || WriteOptions::new(Versions::current()).with_durability(Durability::Data);
    let mut whole = options().with_direct(true).create("whole.sds").unwrap();
    let save = SaveId::random();
    let mut part = options().create_part("merged.sds", Part::new(save, 0, 1).unwrap()).unwrap();
    let dropped = options().create("dropped.sds").unwrap();
    let mut bundle = BundleWriter::create("ckpt", BundleOptions::default()).unwrap();
    let made = BundleWriter::create("made/ckpt", BundleOptions::default()).unwrap();

    env::set_current_dir(elsewhere.path()).unwrap();
    let sharding = SingleDeviceSharding::new(DeviceId(0));
    let spec = ArraySpec::new(DType::U8, Shape::new([3]).unwrap(), sharding);
    for writer in [&mut whole, &mut part] {
        writer.add_bytes("w", &spec, &[1, 2, 3]).unwrap();
    }
    bundle.add_bytes("w", DataType::Uint8, &[3], &[1, 2, 3]).unwrap();
    whole.finish().unwrap();
    part.finish().unwrap();
    bundle.finish().unwrap();
    drop((dropped, made));

    assert_eq!(names(elsewhere.path()), Vec::<String>::new());
    let expected = ["ckpt.data-00000-of-00001", "ckpt.index", "merged.sds.parts", "whole.sds"];
    assert_eq!(names(here.path()), expected);
    merge(here.path().join("merged.sds"), save, &options()).unwrap();
    for state in ["whole.sds", "merged.sds"] {
        assert_eq!(Reader::open(here.path().join(state)).unwrap().len(), 1);
    }
    assert!(Bundle::open(here.path().join("ckpt")).unwrap().tensor("w").is_ok());
}
