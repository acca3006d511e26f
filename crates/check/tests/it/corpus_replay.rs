//! Runs every fuzz target over its corpus, `fuzz/corpus/<target>/`.

use std::{fs, path::Path};

#[allow(unreachable_pub, reason = "a crate of its own in fuzz/")]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

/// Runs `target` over the corpus `name`; panics with the name of the file on a finding.
fn replay(name: &str, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut replayed = 0;
    for entry in fs::read_dir(&directory).unwrap_or_else(|error| panic!("{name}: {error}")) {
        let path = entry.unwrap().path();
        let data = fs::read(&path).unwrap();
        let result = std::panic::catch_unwind(|| target(&data));
        assert!(result.is_ok(), "{} is a finding", path.display());
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", directory.display());
}

macro_rules! replay {
    ($($target:ident),* $(,)?) => {$(
        #[test]
        fn $target() {
            replay(stringify!($target), targets::$target);
        }
    )*};
}

replay!(
    device_state,
    merged_state,
    graphs,
    operations,
    artifacts,
    ifrt_values,
    ifrt_serialized,
    ifrt_text,
    ifrt_remap_plan,
    ifrt_programs,
    stablehlo_programs,
    table,
    tensor_bundle,
    checkpoint_v1
);

replay!(addresses);

replay!(torch);

#[test]
fn changed_graph_is_judged_alone_as_among_all_releases() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/operations");
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::read(&path).unwrap();
        for seed in 0..24 {
            let changed = targets::changed_operations(&data, seed);
            let result = std::panic::catch_unwind(|| targets::operations(&changed));
            assert!(result.is_ok(), "{} changed with seed {seed} is a finding", path.display());
        }
    }
}
