//! Tests the freeze of the wire formats: `tests/golden/` and `proto/descriptors.binpb` hold what
//! `versions.lock` says.
//!
//! To freeze additions run `serdes versions lock`, or this test with `SERDES_REWRITE_LOCK=1`.

use serdes::version::registry;
use serdes_version_registry::lock::Package;

const REWRITE: &str = "SERDES_REWRITE_LOCK";

#[test]
fn wire_formats_are_as_they_were_frozen() {
    let package = Package::of_registry(env!("CARGO_MANIFEST_DIR"), registry());
    if std::env::var_os(REWRITE).is_some() {
        package.rewrite().unwrap_or_else(|error| panic!("nothing was written:\n{error}"));
    }
    package.check().unwrap_or_else(|error| {
        panic!("{error}\n(`serdes versions lock` is also this test with {REWRITE}=1)")
    });
    assert!(!package.frozen().unwrap().is_empty());
}
