use std::{collections::BTreeMap, fs, path::Path};

use super::super::{Error, TensorInfo, create_sharded, open};
use crate::{
    device_state::{Versions, WriteOptions},
    files::Durability,
    ifrt::{DType, Shape},
};

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_durability(Durability::None)
}

/// Writes tensors of bytes, each of its number, as shards.
fn write(path: &Path, shard_bytes: u64, sizes: &[(&str, i64)]) -> Result<(), Error> {
    let infos = sizes.iter().map(|(name, size)| {
        TensorInfo::new(*name, DType::U8, Shape::new([*size]).unwrap()).unwrap()
    });
    let metadata = Some(vec![("format".to_owned(), "pt".to_owned())]);
    let target = create_sharded(path, shard_bytes, &options())?;
    let mut sink = target.begin(infos.collect(), &metadata)?;
    for position in sink.order().to_vec() {
        sink.write(position, &mut std::io::repeat(position as u8))?;
    }
    sink.finish().map(drop)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn shards_hold_as_much_as_they_may_and_the_index_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    write(&path, 10, &[("a", 4), ("b", 6), ("c", 1), ("large", 30), ("empty", 0), ("d", 2)])
        .unwrap();
    let index = folder.path().join("model.safetensors.index.json");
    assert_eq!(
        names(folder.path()),
        [
            "model-00001-of-00004.safetensors",
            "model-00002-of-00004.safetensors",
            "model-00003-of-00004.safetensors",
            "model-00004-of-00004.safetensors",
            "model.safetensors.index.json",
        ]
    );
    let object: serde_json::Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    assert_eq!(object["metadata"]["total_size"], 43);
    assert_eq!(object["weight_map"]["large"], "model-00003-of-00004.safetensors");
    // Another implementation reads a shard.
    let shard = fs::read(folder.path().join("model-00001-of-00004.safetensors")).unwrap();
    let shard = safetensors::SafeTensors::deserialize(&shard).unwrap();
    assert_eq!((shard.len(), shard.tensor("b").unwrap().data()), (2, &[1; 6][..]));

    let source = open(&index).unwrap();
    assert_eq!(source.kind(), "shard_index");
    assert_eq!(source.metadata().as_ref().unwrap()[0].1, "pt");
    let mut found = BTreeMap::new();
    for (position, info) in source.tensors().iter().enumerate() {
        let mut bytes = Vec::new();
        source.read(position).unwrap().read_to_end(&mut bytes).unwrap();
        found.insert(info.name.clone(), bytes);
    }
    assert_eq!(found["large"], [3; 30]);
    assert_eq!((found["d"].as_slice(), found["empty"].len()), (&[5; 2][..], 0));
}

#[test]
fn what_fits_one_file_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    write(&path, 1000, &[("a", 4), ("b", 6)]).unwrap();
    assert_eq!(names(folder.path()), ["model.safetensors"]);
    assert_eq!(open(&path).unwrap().tensors().len(), 2);
}

#[test]
fn shards_that_are_not_finished_leave_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    write(&path, 1, &[("a", 4), ("b", 6)]).unwrap();
    let before: Vec<_> = names(folder.path())
        .iter()
        .map(|name| fs::read(folder.path().join(name)).unwrap())
        .collect();
    let infos =
        ["a", "b"].map(|name| TensorInfo::new(name, DType::U8, Shape::new([3]).unwrap()).unwrap());
    let target = create_sharded(&path, 1, &options()).unwrap();
    let mut sink = target.begin(infos.to_vec(), &None).unwrap();
    sink.write(0, &mut &[9; 3][..]).unwrap();
    assert!(sink.write(1, &mut &[9; 2][..]).is_err());
    drop(sink);
    let after: Vec<_> = names(folder.path())
        .iter()
        .map(|name| fs::read(folder.path().join(name)).unwrap())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn too_many_shards_are_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..501).map(|number| number.to_string()).collect();
    let many: Vec<(&str, i64)> = many.iter().map(|name| (&**name, 2)).collect();
    let error = write(&folder.path().join("m.safetensors"), 1, &many).unwrap_err();
    assert!(error.to_string().contains("501 files"), "{error}");
    assert_eq!(names(folder.path()), [""; 0]);
    let error = create_sharded(folder.path().join("m.npz"), 1, &options()).err().unwrap();
    assert!(error.to_string().contains("only safetensors"), "{error}");
}

/// Two shards of one tensor each, and this index.
fn with_index(index: &str) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.safetensors"), 100, &[("a", 1)]).unwrap();
    write(&folder.path().join("b.safetensors"), 100, &[("b", 1)]).unwrap();
    write(&folder.path().join("both.safetensors"), 100, &[("a", 1), ("b", 1)]).unwrap();
    let path = folder.path().join("model.safetensors.index.json");
    fs::write(&path, index).unwrap();
    match open(&path) {
        Ok(source) => Ok(source.tensors().iter().map(|info| info.name.clone()).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn tensors_that_are_missing_doubled_or_not_in_the_index_are_named() {
    let names = with_index(
        r#"{"metadata":{"x":[1]},"weight_map":{"b":"b.safetensors","a":"a.safetensors"}}"#,
    );
    assert_eq!(names.unwrap(), ["b", "a"]);
    // Loaders take all of a file; of two tensors they have the one that the index means.
    let names = with_index(r#"{"weight_map":{"a":"both.safetensors"}}"#);
    assert_eq!(names.unwrap(), ["a", "b"]);
    let names = with_index(r#"{"weight_map":{"a":"a.safetensors","b":"both.safetensors"}}"#);
    assert_eq!(names.unwrap(), ["a", "b"]);
    for (index, said) in [
        (r#"{"weight_map":{"a":"a.safetensors","c":"a.safetensors"}}"#, "\"c in a.safetensors\""),
        (r#"{"weight_map":{"a":"b.safetensors","b":"b.safetensors"}}"#, "\"a in b.safetensors\""),
        (
            r#"{"weight_map":{"b":"b.safetensors","c":"c.safetensors","d":"both.safetensors"}}"#,
            "it is not there, and model.safetensors.index.json has 1 tensor in it",
        ),
        (r#"{"weight_map":{"a":"gone.safetensors"}}"#, "gone.safetensors"),
        (r#"{"weight_map":{"a":"a.safetensors","a":"a.safetensors"}}"#, "\"a\" twice"),
        (r#"{"weight_map":{"a":"../a.safetensors"}}"#, "beside the index"),
        (r#"{"weight_map":{"a":"/etc/passwd"}}"#, "beside the index"),
        (r#"{"weight_map":{"a":""}}"#, "beside the index"),
        (r#"{"weight_map":{"a":1}}"#, "weight_map"),
        (r#"{"weights":{}}"#, "weight_map"),
        ("[", "weight_map"),
    ] {
        let error = with_index(index).unwrap_err();
        assert!(error.contains(said), "{index}: {error}");
    }
}

#[test]
fn a_tensor_beside_the_index_that_two_files_have_is_refused() {
    let index = r#"{"weight_map":{"c":"both.safetensors","a":"again.safetensors"}}"#;
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("both.safetensors"), 100, &[("c", 1), ("b", 1)]).unwrap();
    write(&folder.path().join("again.safetensors"), 100, &[("a", 1), ("b", 1)]).unwrap();
    let path = folder.path().join("model.safetensors.index.json");
    fs::write(&path, index).unwrap();
    let error = open(&path).err().unwrap().to_string();
    assert!(error.contains("1 tensor in two files: \"b\""), "{error}");
}

#[test]
fn an_index_that_names_itself_is_no_circle() {
    let error = with_index(r#"{"weight_map":{"a":"model.safetensors.index.json"}}"#).unwrap_err();
    assert!(error.contains("index.json"), "{error}");
}
