//! Tests of artifacts at addresses of an in-memory store.

use std::{path::Path, sync::Arc};

use object_store::{ObjectStoreExt, memory::InMemory, path::Path as Key};
use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_check::{self as check, Kind, Options, Outcome};
use serdes_device_state::{Versions, WriteOptions, files::Tree};
use serdes_tensors::storage::Storage;

fn bucket() -> (Arc<InMemory>, Storage) {
    let store = Arc::new(InMemory::new());
    let storage = Storage::anywhere().with_bucket("s3://bucket", store.clone()).unwrap();
    (store, storage)
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
fn artifacts_at_an_address_are_judged_as_those_of_files() {
    let (store, storage) = bucket();
    let graph = vec![0x22, 6, 0x08, 0xaa, 0x13, 0x10, 0x88, 0x0e];
    put(&store, "models/graph.pb", graph.clone());
    // Returns a SavedModel of one meta graph with the tag `serve`.
    let mut meta_graph = vec![0x0a, 7, 0x22, 5];
    meta_graph.extend(b"serve");
    meta_graph.extend([0x12, graph.len() as u8]);
    meta_graph.extend(&graph);
    let mut model = vec![0x08, 1, 0x12, meta_graph.len() as u8];
    model.extend(&meta_graph);
    put(&store, "models/exported/saved_model.pb", model);
    put(&store, "models/notes.txt", b"no artifact".to_vec());
    let mut writer =
        storage.create_state(Path::new("s3://bucket/models/a.sds"), options()).unwrap();
    writer.add_bytes("w", &spec(3), &[1, 2, 3]).unwrap();
    writer.finish().unwrap();

    let tree: Arc<dyn Tree> = Arc::new(storage);
    let options = Options::default().with_verify_data(true);
    let mut walk = check::walk("s3://bucket/models", &options).in_tree(Arc::clone(&tree));
    let mut found = Vec::new();
    while let Some(verdicts) = walk.next_artifact() {
        let verdict = verdicts.unwrap().into_iter().next().unwrap();
        assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict:?}");
        found.push((verdict.path.clone(), verdict.kind.unwrap()));
    }
    let at = |name: &str| format!("s3://bucket/models/{name}");
    assert_eq!(
        found,
        [
            (at("a.sds"), Kind::DeviceState),
            (at("exported"), Kind::SavedModel),
            (at("graph.pb"), Kind::GraphDef)
        ]
    );
    assert_eq!(walk.skipped().count, 1);
    let artifact = check::path_in(Arc::clone(&tree), at("a.sds"), None).unwrap();
    assert_eq!(artifact.inspect().unwrap().tensors.len(), 1);
    let missing = check::path_in(tree, at("nothing"), None).unwrap_err();
    assert!(matches!(missing, check::CheckError::NotFound { .. }), "{missing}");
}
