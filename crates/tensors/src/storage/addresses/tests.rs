//! Tests of addresses of an in-memory store, and of files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path as Key};
use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{
    Durability, Error, Part, PendingPart, ProgressMonitor, SaveId, Versions, WriteOptions,
};
use serdes_files::{EntryKind, Files, Tree};
use serdes_testkit::noise::noise;

use crate::storage::Storage;

const BUCKET: &str = "s3://bucket";

fn bucket() -> (Arc<InMemory>, Storage) {
    let store = Arc::new(InMemory::new());
    let storage = Storage::anywhere().with_bucket(BUCKET, store.clone()).unwrap();
    (store, storage)
}

fn keys(store: &InMemory) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let list =
        |prefix: Option<Key>| runtime.block_on(store.list_with_delimiter(prefix.as_ref())).unwrap();
    let mut keys = Vec::new();
    let mut prefixes = vec![None];
    while let Some(prefix) = prefixes.pop() {
        let found = list(prefix);
        keys.extend(found.objects.into_iter().map(|meta| meta.location.to_string()));
        prefixes.extend(found.common_prefixes.into_iter().map(Some));
    }
    keys.sort();
    keys
}

fn put(store: &InMemory, key: &str, bytes: Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.put(&Key::parse(key).unwrap(), bytes.into())).unwrap();
}

fn spec(bytes: usize) -> ArraySpec {
    let shape = Shape::new([bytes as i64]).unwrap();
    ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)))
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current())
}

#[test]
fn a_state_at_an_address_appears_when_it_is_finished() {
    let (store, storage) = bucket();
    let path = Path::new("s3://bucket/runs/step-7.sds");
    let mut writer = storage.create_state(path, options()).unwrap();
    writer.add_bytes("w", &spec(3), &[1, 2, 3]).unwrap();
    let missing = storage.open_state(path).unwrap_err();
    assert!(
        matches!(&missing, Error::Io { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound),
        "{missing}"
    );
    assert!(missing.to_string().contains("s3://bucket/runs/step-7.sds"), "{missing}");
    writer.finish().unwrap();
    let state = storage.open_state(path).unwrap();
    assert_eq!(state.names().collect::<Vec<_>>(), ["w"]);
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
    assert_eq!(keys(&store), ["runs/step-7.sds"]);
}

#[test]
fn the_parts_of_processes_become_a_state_at_an_address() {
    let (_store, storage) = bucket();
    let path = Path::new("s3://bucket/step.sds");
    let save = SaveId::of_text("step-10");
    for number in 0..2 {
        let part = Part::new(save, number, 2).unwrap();
        let mut writer = storage.create_part(path, part, options()).unwrap();
        writer.add_bytes(&format!("w{number}"), &spec(5), &[number as u8; 5]).unwrap();
        writer.finish().unwrap();
    }
    assert!(storage.open_state(path).is_err(), "nothing appears before the merge");
    let merged = storage.merge(path, save, &options()).unwrap();
    assert_eq!((merged.parts, merged.tensors), (2, 2));
    let state = storage.open_state(path).unwrap();
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
    // Readers that open it by a path find the parts as well.
    let tensors = crate::open_in(&storage, path).unwrap();
    assert_eq!(tensors.tensors().len(), 2);
}

/// Saves a state of two parts without the part `left_out`; the state appears once all parts exist.
fn save_parts(storage: &Storage, path: &Path, save: SaveId, left_out: Option<u32>) {
    for number in (0..2).filter(|number| Some(*number) != left_out) {
        let part = Part::new(save, number, 2).unwrap();
        let mut writer = storage.create_part(path, part, options()).unwrap();
        writer.add_bytes(&format!("w{number}"), &spec(5), &[number as u8; 5]).unwrap();
        writer.finish().unwrap();
    }
    assert_eq!(storage.merge(path, save, &options()).is_ok(), left_out.is_none());
}

/// Returns the names of all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_state_is_removed_with_its_parts_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (store, bucket) = bucket();
    for (storage, root) in
        [(bucket, BUCKET.to_owned()), (Storage::anywhere(), folder.path().display().to_string())]
    {
        let path = |name: &str| PathBuf::from(format!("{root}/run/{name}"));
        if root != BUCKET {
            std::fs::create_dir(folder.path().join("run")).unwrap();
        }
        let there = || if root == BUCKET { keys(&store) } else { files(folder.path()) };
        save_parts(&storage, &path("1.sds"), SaveId::of_text("one"), None);
        save_parts(&storage, &path("2.sds"), SaveId::of_text("two"), None);
        storage.create_state(&path("3.sds"), options()).unwrap().finish().unwrap();
        storage.remove_state(&path("1.sds")).unwrap();
        storage.remove_state(&path("3.sds")).unwrap();
        let left = there();
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left.iter().all(|name| name.starts_with("run/2.sds")), "{left:?}");
        let error = storage.remove_state(&path("1.sds")).unwrap_err();
        assert!(
            matches!(&error, Error::Io { source, .. }
            if source.kind() == std::io::ErrorKind::NotFound),
            "{error}"
        );
        assert!(storage.open_state(&path("2.sds")).is_ok());
    }
    let error = Storage::anywhere().remove_state(Path::new("https://host.invalid/a.sds"));
    assert!(error.unwrap_err().to_string().contains("only read"));
}

#[test]
fn the_parts_of_a_save_that_failed_go_and_those_of_a_state_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (store, bucket) = bucket();
    for (storage, root) in
        [(bucket, BUCKET.to_owned()), (Storage::anywhere(), folder.path().display().to_string())]
    {
        let path = PathBuf::from(format!("{root}/a.sds"));
        let there = || if root == BUCKET { keys(&store) } else { files(folder.path()) };
        let (old, failed) = (SaveId::of_text("old"), SaveId::of_text("failed"));
        save_parts(&storage, &path, old, None);
        let before = there();
        save_parts(&storage, &path, failed, Some(0));
        assert_eq!(there().len(), before.len() + 1);
        storage.discard(&path, old);
        storage.discard(&path, failed);
        assert_eq!(there(), before);
        assert!(storage.open_state(&path).is_ok());
    }
}

/// Files in which the state at a path is saved again whenever one of its parts is opened, a given
/// number of times.
#[derive(Debug)]
struct Restless {
    path: PathBuf,
    left: std::sync::atomic::AtomicU32,
}

impl Files for Restless {
    fn open(&self, path: &Path) -> std::io::Result<Arc<dyn serdes_files::ReadAt>> {
        use std::sync::atomic::Ordering;
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 && path.to_string_lossy().ends_with(".part") {
            self.left.store(left - 1, Ordering::Relaxed);
            let save = SaveId::of_text(&left.to_string());
            save_parts(&Storage::system(), &self.path, save, None);
        }
        Storage::system().open(path)
    }
}

#[test]
fn a_state_that_is_replaced_while_it_is_opened_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sds");
    save_parts(&Storage::system(), &path, SaveId::of_text("first"), None);
    for left in [0, 1, 4] {
        let source = Storage::system().open(&path).unwrap();
        let files = Restless { path: path.clone(), left: left.into() };
        let state = serdes_device_state::Reader::from_source_among(source, &path, Arc::new(files));
        assert!(state.unwrap().verify(&ProgressMonitor::new()).unwrap().is_empty());
    }
    // A missing part of a state that was not replaced is reported as missing.
    let part = files(folder.path()).into_iter().find(|name| name.ends_with(".part")).unwrap();
    std::fs::remove_file(folder.path().join(part)).unwrap();
    let error = Storage::system().open_state(&path).unwrap_err();
    assert!(matches!(error, Error::MissingPart { .. }), "{error}");
}

#[test]
fn a_set_of_shards_takes_the_place_of_another_at_an_address() {
    use crate as tensor_io;
    use crate::TensorInfo;
    let (store, storage) = bucket();
    let path = Path::new("s3://bucket/out/m.safetensors");
    let save = |byte: u8, shard_bytes: u64| {
        let storage = storage.clone().with_monitor(&ProgressMonitor::new());
        let info = |name| TensorInfo::new(name, DType::U8, Shape::new([4]).unwrap()).unwrap();
        let target = tensor_io::create_sharded_in(&storage, path, shard_bytes, &options()).unwrap();
        let mut sink = target.begin(vec![info("a"), info("b")], &None).unwrap();
        for position in sink.order().to_vec() {
            sink.write(position, &mut std::io::repeat(byte)).unwrap();
        }
        sink.finish().unwrap();
    };
    let read = |path: &str| {
        let storage = storage.clone().with_monitor(&ProgressMonitor::new());
        let source = tensor_io::open_in(&storage, path).unwrap();
        let mut bytes = Vec::new();
        for position in 0..2 {
            source.read(position).unwrap().read_to_end(&mut bytes).unwrap();
        }
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{bytes:?}");
        bytes[0]
    };
    put(&store, "out/m-00001-of-00002.bin", Vec::new());
    let index = "s3://bucket/out/m.safetensors.index.json";
    save(1, 4);
    let plain = "out/m-00001-of-00002.safetensors".to_owned();
    assert!(keys(&store).contains(&plain));
    save(2, 4);
    assert_eq!((read(index), keys(&store).len()), (2, 4));
    assert!(!keys(&store).contains(&plain), "the old files are gone: {:?}", keys(&store));
    save(3, 100);
    assert_eq!(read("s3://bucket/out/m.safetensors"), 3);
    assert_eq!(keys(&store), ["out/m-00001-of-00002.bin", "out/m.safetensors"]);
    save(4, 4);
    assert_eq!((read(index), keys(&store).len()), (4, 4));
    assert!(!keys(&store).contains(&"out/m.safetensors".to_owned()));
    assert!(keys(&store).contains(&plain));
    // Files of unknown origin are not replaced.
    let storage = storage.clone().with_monitor(&ProgressMonitor::new());
    storage.remove(Path::new(index)).unwrap();
    save(5, 4);
    assert_eq!((read(index), keys(&store).len()), (5, 6));
}

#[test]
fn entries_are_visited_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let (store, bucket) = bucket();
    put(&store, "run/b.sds", Vec::new());
    put(&store, "run/b.sds.parts/part", Vec::new());
    std::fs::write(folder.path().join("b.sds"), b"").unwrap();
    std::fs::create_dir(folder.path().join("b.sds.parts")).unwrap();
    for (storage, path) in [
        (&bucket, "s3://bucket/run".to_owned()),
        (&bucket, "s3://bucket/run/".to_owned()),
        (&Storage::anywhere(), folder.path().display().to_string()),
    ] {
        let mut names = Vec::new();
        storage.visit(Path::new(&path), &mut |name| names.push(name.to_owned())).unwrap();
        names.sort();
        assert_eq!(names, ["b.sds", "b.sds.parts"], "{path}");
    }
    let mut count = 0;
    bucket.visit(Path::new("s3://bucket/nothing"), &mut |_| count += 1).unwrap();
    assert_eq!(count, 0);
    assert!(Storage::anywhere().visit(&folder.path().join("nothing"), &mut |_| {}).is_err());
    assert!(bucket.visit(Path::new("https://host.invalid/"), &mut |_| {}).is_err());
}

#[test]
fn a_bucket_is_a_tree_of_its_prefixes() {
    let (store, storage) = bucket();
    put(&store, "a/b/file", b"12345".to_vec());
    put(&store, "a/other", Vec::new());
    let look = |text: &str| storage.look(Path::new(text)).map_err(|error| error.kind());
    assert_eq!(look("s3://bucket"), Ok(EntryKind::Directory));
    assert_eq!(look("s3://bucket/a"), Ok(EntryKind::Directory));
    assert_eq!(look("s3://bucket/a/b/file"), Ok(EntryKind::File));
    assert_eq!(look("s3://bucket/a/b/fil"), Err(std::io::ErrorKind::NotFound));
    assert_eq!(look("s3://bucket/nothing"), Err(std::io::ErrorKind::NotFound));
    let mut entries = storage.list(Path::new("s3://bucket/a")).unwrap();
    entries.sort();
    assert_eq!(entries, ["s3://bucket/a/b", "s3://bucket/a/other"].map(PathBuf::from));
    let file = storage.open(Path::new("s3://bucket/a/b/file")).unwrap();
    let mut back = [0; 5];
    file.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(&back, b"12345");
    assert!(storage.list(Path::new("s3://bucket/a/other")).is_err());
    assert!(storage.open(Path::new("s3://bucket/a")).is_err());
}

#[test]
fn a_file_of_any_kind_appears_whole_or_not_at_all() {
    let (store, storage) = bucket();
    let path = Path::new("s3://bucket/report.json");
    let large = noise(30 << 20, 5);
    let begin = || storage.put(path, Durability::None).unwrap();
    let PendingPart { mut sink, commit } = begin();
    sink.write_all(&large).unwrap();
    sink.flush().unwrap();
    drop((sink, commit));
    assert!(keys(&store).is_empty(), "it was not committed");
    let PendingPart { mut sink, commit } = begin();
    sink.write_all(&large).unwrap();
    sink.flush().unwrap();
    drop(sink);
    commit.commit(Durability::None).unwrap();
    let back = storage.open(path).unwrap();
    let mut bytes = vec![0; back.size().unwrap() as usize];
    back.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == large);
}

#[test]
fn a_file_address_is_a_path_and_everything_else_a_path_too() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::anywhere();
    let path = folder.path().join("a b.sds");
    let address = format!("file://{}", path.display().to_string().replace(' ', "%20"));
    let writer = storage.create_state(Path::new(&address), options()).unwrap();
    writer.finish().unwrap();
    assert!(path.is_file());
    assert!(storage.open_state(&path).unwrap().is_empty());
    assert!(storage.is_of_system(Path::new(&address)));
    assert!(!storage.is_of_system(Path::new("s3://bucket/x")));
    assert!(Storage::system().is_of_system(Path::new("s3://bucket/x")));
    assert_eq!(*storage.absolute(Path::new("s3://b/x")).unwrap(), *Path::new("s3://b/x"));
    assert!(storage.absolute(Path::new("x")).unwrap().is_absolute());
}

#[test]
fn web_address_is_read_only() {
    let path = Path::new("https://host.invalid/a.sds?token=secret");
    let error = Storage::anywhere().create_state(path, options()).err().unwrap().to_string();
    assert!(error.contains("only read") && !error.contains("secret"), "{error}");
}

#[test]
fn a_stopped_work_waits_for_no_store() {
    let monitor = ProgressMonitor::new();
    let (_store, storage) = bucket();
    let storage = storage.with_monitor(&monitor);
    monitor.cancel();
    let stopped = storage.create_state(Path::new("s3://bucket/a.sds"), options());
    // A store that answers at once may finish; any other work is cancelled.
    if let Err(error) = stopped {
        assert!(matches!(error, Error::Cancelled), "{error}");
    }
}

#[test]
fn tensors_of_all_kinds_make_the_trip_to_an_address_and_back() {
    use crate as tensor_io;
    use crate::TensorInfo;
    let (store, storage) = bucket();
    let info = TensorInfo::new("w", DType::U8, Shape::new([4]).unwrap()).unwrap();
    let mut names = vec!["a.safetensors", "a.npy", "a.sds", "ckpt-1"];
    names.extend(cfg!(feature = "npz").then_some("a.npz"));
    for name in names {
        let path = format!("s3://bucket/out/{name}");
        // A second file replaces the first.
        for bytes in [[1, 2, 3, 4], [5, 6, 7, 8]] {
            // The listing of the bucket before the first save is outdated.
            let storage = storage.clone().with_monitor(&ProgressMonitor::new());
            let target = tensor_io::create_in(&storage, &path, &options()).unwrap();
            let mut sink = target.begin(vec![info.clone()], &None).unwrap();
            sink.write(0, &mut &bytes[..]).unwrap();
            sink.finish().unwrap();
            let storage = storage.with_monitor(&ProgressMonitor::new());
            let source = tensor_io::open_in(&storage, &path).unwrap();
            let mut back = Vec::new();
            source.read(0).unwrap().read_to_end(&mut back).unwrap();
            assert_eq!(back, bytes, "{name}");
        }
    }
    // The second checkpoint has other file names than the first, whose files are removed.
    let data: Vec<_> = keys(&store).into_iter().filter(|key| key.contains(".data-")).collect();
    assert_eq!(data.len(), 2, "{data:?}");
    assert!(data.iter().all(|key| key.ends_with("-of-00002")), "{data:?}");
    for name in ["a.pt", "a.h5"] {
        let path = format!("s3://bucket/out/{name}");
        assert!(tensor_io::create_in(&storage, &path, &options()).is_err(), "{name}");
    }
}
