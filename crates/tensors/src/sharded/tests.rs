use std::{collections::BTreeMap, fs, path::Path};

use serdes::ifrt::{DType, Shape};
use serdes_device_state::{Versions, WriteOptions};
use serdes_files::{Durability, Replacement};

use super::{
    super::{Error, TensorInfo, create_sharded, open},
    names::SetNames,
    switch::Switch,
};

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_durability(Durability::None)
}

/// Writes tensors as shards; each is filled with its number.
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
fn set_that_fits_one_file_is_one_file() {
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

/// Opens two shards of one tensor each with this index.
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
fn tensors_missing_doubled_or_unlisted_are_named() {
    let names = with_index(
        r#"{"metadata":{"x":[1]},"weight_map":{"b":"b.safetensors","a":"a.safetensors"}}"#,
    );
    assert_eq!(names.unwrap(), ["b", "a"]);
    // Loaders load all tensors of a file; of two with one name they take the one in the index.
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

/// Returns the tensors of the set or file at a path, by name.
fn read(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let source = open(path)?;
    let mut found = BTreeMap::new();
    for (position, info) in source.tensors().iter().enumerate() {
        let mut bytes = Vec::new();
        let read = source.read(position)?.read_to_end(&mut bytes);
        read.map_err(|error| Error::io("read", path, error))?;
        found.insert(info.name.clone(), bytes);
    }
    Ok(found)
}

/// Writes two tensors filled with this byte, as shards or as one file.
fn save(path: &Path, byte: u8, shards: bool) -> Result<(), Error> {
    let info = |name| TensorInfo::new(name, DType::U8, Shape::new([100]).unwrap()).unwrap();
    let target = create_sharded(path, if shards { 100 } else { 1000 }, &options())?;
    let mut sink = target.begin(vec![info("a"), info("b")], &None)?;
    for position in sink.order().to_vec() {
        sink.write(position, &mut std::io::repeat(byte))?;
    }
    sink.finish().map(drop)
}

/// Returns the byte that fills all tensors.
fn byte_of(path: &Path) -> u8 {
    let tensors = read(path).unwrap();
    assert_eq!(tensors.len(), 2);
    let byte = tensors["a"][0];
    assert!(tensors.values().all(|bytes| bytes == &[byte; 100]), "a mix of two sets");
    byte
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn target(&self) -> std::path::PathBuf {
        self.path("m.safetensors")
    }

    fn index(&self) -> std::path::PathBuf {
        self.path("m.safetensors.index.json")
    }

    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    fn put(&self, name: &str) {
        fs::write(self.path(name), name).unwrap();
    }
}

#[test]
fn set_over_a_set_has_names_of_its_own_and_the_old_goes() {
    let folder = Folder::new();
    let others = [
        "m-00001-of-00003.bin",
        "m-00001-of-00007.safetensors",
        "m-extra-00001-of-00002.safetensors",
        "m2-00001-of-00002.safetensors",
        "notes.json",
    ];
    save(&folder.target(), 1, true).unwrap();
    others.iter().for_each(|name| folder.put(name));
    let first = ["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"];
    assert!(first.iter().all(|name| folder.path(name).is_file()));
    for byte in 2..5 {
        save(&folder.target(), byte, true).unwrap();
        assert_eq!(byte_of(&folder.index()), byte);
        let left = folder.names();
        assert_eq!(left.len(), others.len() + 3, "{left:?}");
        assert!(others.iter().all(|name| folder.path(name).is_file()), "{left:?}");
        assert!(first.iter().all(|name| !folder.path(name).exists()), "{left:?}");
    }
}

#[test]
fn shards_that_another_index_names_stay() {
    let folder = Folder::new();
    save(&folder.target(), 1, true).unwrap();
    fs::copy(folder.index(), folder.path("copy.safetensors.index.json")).unwrap();
    save(&folder.target(), 2, true).unwrap();
    assert_eq!(byte_of(&folder.index()), 2);
    assert_eq!(byte_of(&folder.path("copy.safetensors.index.json")), 1);
}

#[test]
fn an_index_that_names_files_of_others_takes_none_away() {
    let folder = Folder::new();
    save(&folder.path("other.safetensors"), 1, false).unwrap();
    folder.put("config.json");
    let index =
        r#"{"weight_map":{"a":"other.safetensors","b":"config.json","c":"m-1-of-2.safetensors"}}"#;
    fs::write(folder.index(), index).unwrap();
    folder.put("m-1-of-2.safetensors");
    save(&folder.target(), 2, true).unwrap();
    assert_eq!(byte_of(&folder.index()), 2);
    assert_eq!(byte_of(&folder.path("other.safetensors")), 1);
    assert!(folder.path("config.json").is_file() && folder.path("m-1-of-2.safetensors").is_file());
}

#[test]
fn the_files_of_an_index_that_is_damaged_stay() {
    let folder = Folder::new();
    save(&folder.target(), 1, true).unwrap();
    fs::write(folder.index(), "{").unwrap();
    save(&folder.target(), 2, true).unwrap();
    assert_eq!(byte_of(&folder.index()), 2);
    assert_eq!(folder.names().len(), 5);
}

#[test]
fn set_over_a_single_file_and_the_reverse_leave_one_of_them() {
    let folder = Folder::new();
    for byte in 1..4 {
        save(&folder.target(), byte, false).unwrap();
        assert_eq!(folder.names(), ["m.safetensors"]);
        assert_eq!(byte_of(&folder.target()), byte);
        save(&folder.target(), byte, true).unwrap();
        let expected = [
            "m-00001-of-00002.safetensors",
            "m-00002-of-00002.safetensors",
            "m.safetensors.index.json",
        ];
        assert_eq!(folder.names(), expected);
        assert_eq!(byte_of(&folder.index()), byte);
    }
}

#[test]
fn until_the_index_is_renamed_the_old_set_is_read() {
    let folder = Folder::new();
    save(&folder.target(), 1, true).unwrap();
    let before = folder.names();
    let names = SetNames::of(&folder.target());
    let index = Replacement::create_beside_leftovers(&folder.index()).unwrap();
    let mut switch = Switch::begin(index.directory(), names, Durability::None).unwrap();
    let shards = switch.free_names(2, false).unwrap();
    switch.note(index, Some(b"{\"weight_map\":{}}")).unwrap();
    for name in &shards {
        let file = Replacement::create_beside(&folder.target()).unwrap();
        switch.put(file, name).unwrap();
        assert_eq!(byte_of(&folder.index()), 1);
    }
    assert!(shards.iter().all(|name| folder.path(name).is_file()));
    drop(switch);
    assert_eq!(folder.names(), before);
}

/// Returns the text of an index of these files.
fn index_of(files: &[&str]) -> String {
    let weights: BTreeMap<String, &str> =
        files.iter().enumerate().map(|(number, file)| (number.to_string(), *file)).collect();
    serde_json::json!({ "weight_map": weights }).to_string()
}

#[test]
fn leftovers_of_a_dead_saver_go_with_the_next_save() {
    let folder = Folder::new();
    // Killed before the index of a first set appeared, when one of two files had its name.
    fs::write(
        folder.path(".m.safetensors.index.json.0123456789abcdef.partial"),
        index_of(&["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", "mine"]),
    )
    .unwrap();
    for name in [
        "m-00001-of-00002.safetensors",
        ".m.safetensors.0123456789abcdef.partial",
        ".m-00004-of-00006.safetensors.fedcba9876543210.partial",
        "mine",
    ] {
        folder.put(name);
    }
    save(&folder.target(), 1, true).unwrap();
    let expected = [
        "m-00001-of-00002.safetensors",
        "m-00002-of-00002.safetensors",
        "m.safetensors.index.json",
        "mine",
    ];
    assert_eq!(folder.names(), expected);
    // Killed after the new index appeared, before the old files were removed: the note is the old
    // index.
    let old = "m-0123abcd-00001-of-00002.safetensors";
    fs::write(
        folder.path(".m.safetensors.index.json.0123456789abcdef.partial"),
        index_of(&[old, expected[0]]),
    )
    .unwrap();
    folder.put(old);
    drop(create_sharded(folder.target(), 1, &options()).unwrap().begin(Vec::new(), &None).unwrap());
    assert_eq!(folder.names(), expected);
    assert_eq!(byte_of(&folder.index()), 1);
    // Killed while an index was being written.
    fs::write(folder.path(".m.safetensors.index.json.0123456789abcdef.partial"), "{").unwrap();
    save(&folder.target(), 2, false).unwrap();
    assert_eq!(folder.names(), ["m.safetensors", "mine"]);
}

#[test]
fn files_of_a_running_saver_stay() {
    let folder = Folder::new();
    save(&folder.target(), 1, true).unwrap();
    let infos = ["a", "b"]
        .map(|name| TensorInfo::new(name, DType::U8, Shape::new([100]).unwrap()).unwrap());
    let target = create_sharded(folder.target(), 100, &options()).unwrap();
    let mut sink = target.begin(infos.to_vec(), &None).unwrap();
    sink.write(0, &mut std::io::repeat(3)).unwrap();
    save(&folder.target(), 2, true).unwrap();
    assert_eq!(byte_of(&folder.index()), 2);
    sink.write(1, &mut std::io::repeat(3)).unwrap();
    sink.finish().unwrap();
    assert_eq!(byte_of(&folder.index()), 3);
    assert_eq!(folder.names().len(), 3);
}

#[test]
fn concurrent_savers_leave_one_whole_set_at_all_times() {
    let folder = Folder::new();
    save(&folder.target(), 0, true).unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let savers: Vec<_> = (1..5)
            .map(|byte| {
                let target = folder.target();
                scope.spawn(move || (0..20).for_each(|_| save(&target, byte, true).unwrap()))
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                byte_of(&folder.index());
                looks += 1;
            }
            looks
        });
        savers.into_iter().for_each(|saver| saver.join().unwrap());
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    assert!((1..5).contains(&byte_of(&folder.index())));
    assert_eq!(folder.names().len(), 3);
}

#[cfg(unix)]
#[test]
fn the_modes_of_a_set_are_kept() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    save(&folder.target(), 1, false).unwrap();
    fs::set_permissions(folder.target(), fs::Permissions::from_mode(0o600)).unwrap();
    for shards in [true, true, false] {
        save(&folder.target(), 2, shards).unwrap();
        for name in folder.names().iter().filter(|name| !name.ends_with(".json")) {
            let mode = fs::metadata(folder.path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
