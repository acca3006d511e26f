//! Runs the fuzz targets of the proxy over their corpora, `fuzz/corpus/<target>/`.

use std::{fs, path::Path};

#[allow(unreachable_pub, reason = "a crate of its own in fuzz/")]
#[path = "../../../fuzz/src/calls.rs"]
mod calls;
#[allow(unreachable_pub, reason = "a crate of its own in fuzz/")]
#[path = "../../../fuzz/src/proxy.rs"]
mod requests;

/// Runs `target` over the corpus `name`; panics with the name of the file on a finding.
fn replay(name: &str, target: fn(&[u8])) {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let directory = corpora.join(name);
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

#[test]
fn proxy_requests() {
    replay("proxy_requests", requests::proxy_requests);
}

#[test]
fn proxy_calls() {
    replay("proxy_calls", calls::proxy_calls);
}
