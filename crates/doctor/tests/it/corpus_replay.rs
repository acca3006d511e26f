//! Runs the fuzz target over its corpus, `fuzz/corpus/environments`.

use std::{fs, path::Path, time::Instant};

#[allow(unreachable_pub, reason = "a file of the crate in fuzz/")]
#[path = "../../../../fuzz/src/environments.rs"]
mod target;

#[test]
fn environments() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/environments");
    let mut replayed = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::read(&path).unwrap();
        let began = Instant::now();
        let result = std::panic::catch_unwind(|| target::environments(&data));
        assert!(result.is_ok(), "{} is a finding", path.display());
        assert!(began.elapsed().as_secs() < 30, "{} takes too long", path.display());
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", folder.display());
}
