use serdes::codec::{DeserializeOptions, testing};
use serdes_version_registry::lock::Package;
use trainer::{REGISTRY, Snapshot, Snapshots};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn golden_bytes_of_snapshots() {
    testing::golden::<Snapshots, _>(ROOT, &DeserializeOptions::new(), |_| Snapshot { step: 1000 })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn formats_are_frozen() {
    Package::of_registry(ROOT, &REGISTRY).check().unwrap_or_else(|error| panic!("{error}"));
}
