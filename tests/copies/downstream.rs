//! Tests that crates that depend on serdes can have their own lines of versions, formats and lock:
//! the example crate outside the workspace builds and passes its tests, and a broken rule fails its
//! build.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serdes_testkit::copies::{cargo, copy_directory, root, workplace};

use crate::scratch;

/// Copies the example so that it finds serdes, with the dependencies of the workspace, so that
/// nothing is fetched.
fn example() -> PathBuf {
    let copy = workplace(scratch(), "downstream");
    copy_directory(&root().join("examples/downstream"), &copy);
    let manifest = copy.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("../..", &root().display().to_string())).unwrap();
    fs::copy(root().join("Cargo.lock"), copy.join("Cargo.lock")).unwrap();
    copy
}

fn test(package: &Path) -> Output {
    cargo(scratch())
        .args(["test", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .output()
        .unwrap()
}

#[test]
#[ignore = "compiles a copy of the sources; `.ci/run copies` runs it"]
fn downstream_crate_passes_and_a_broken_rule_fails_its_build() {
    let example = example();
    let output = test(&example);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("our_formats_are_frozen ... ok"), "{stdout}");

    let registry = example.join("versions.toml");
    let text = fs::read_to_string(&registry).unwrap();
    fs::write(&registry, text.replace("introduced = 2026-11-10", "introduced = 2026-11-21"))
        .unwrap();
    let output = test(&example);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{message}");
    for part in ["versions.toml:", "line snapshots", "entry 3", "2026-11-21", "as_of = 2026-11-20"]
    {
        assert!(message.contains(part), "{message}");
    }
}
