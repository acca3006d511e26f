//! Runs the fuzz targets over their corpora, `fuzz/corpus/`.

use std::{fs, path::Path};

use serdes_jax_artifacts::Kind;

#[allow(unreachable_pub, reason = "a file of the crate in fuzz/")]
#[path = "../../../../fuzz/src/jax.rs"]
mod target;

fn replay(name: &str, kind: Kind) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut replayed = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{name}: {error}")) {
        let path = entry.unwrap().path();
        let data = fs::read(&path).unwrap();
        let result = std::panic::catch_unwind(|| target::jax_artifacts(kind, &data));
        assert!(result.is_ok(), "{} is a finding", path.display());
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}

#[test]
fn jax_exports() {
    replay("jax_exports", Kind::JaxExport);
}

#[test]
fn portable_artifacts() {
    replay("portable_artifacts", Kind::StableHlo);
}
