//! Tests that the checked-in files (`src/proto/generated/` and `proto/descriptors.binpb`) are those
//! that `proto/` generates.
//!
//! Users need neither protoc nor a build script: the generated code is part of the repository. To
//! change a message:
//!
//! 1. Edit a file under `proto/`, or add one: every `.proto` file there is used, in any directory.
//!    A message that real builds write keeps its package, names and numbers.
//! 2. Run `SERDES_REGENERATE_PROTO=1 cargo test -p serdes --test it proto_generated`.
//! 3. For a new package only: add its module to `src/proto/mod.rs`, nested like the package.
//!
//! To generate stubs of gRPC services as well, give `generator` in `protos` a service generator.

use std::path::Path;

use serdes_testkit::protos;

const REGENERATE: &str = "SERDES_REGENERATE_PROTO";

#[test]
fn the_generated_code_is_what_the_proto_files_say() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fresh = protos::generate(package);
    if std::env::var_os(REGENERATE).is_some() {
        protos::write(package, &fresh);
    }
    let present = protos::present(package);
    let paths = fresh.keys().chain(present.keys());
    let differing: Vec<_> = paths.filter(|path| fresh.get(*path) != present.get(*path)).collect();
    assert!(
        differing.is_empty(),
        "proto/ and what is generated from it differ in {differing:?}: run the test again with {REGENERATE}=1 and \
         commit what it writes"
    );
}
