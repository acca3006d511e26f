//! Crates that depend on serdes have lines of versions, formats and a lock of their own: the
//! example crate outside of the workspace builds and passes its tests, and a broken rule fails a
//! build.

mod copies;

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
};

use copies::{copy_directory, root};

/// A copy of the example that finds serdes, with the dependencies of the workspace, so that nothing
/// is fetched.
fn example() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_directory(&root().join("examples/downstream"), copy.path());
    let manifest = copy.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("../..", &root().display().to_string())).unwrap();
    fs::copy(root().join("Cargo.lock"), copy.path().join("Cargo.lock")).unwrap();
    copy
}

fn cargo(command: &str, package: &Path) -> Output {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([command, "--offline", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        // A directory of its own: the one in use is locked by the cargo that runs this test.
        // A second target directory should cost little disk.
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("downstream"))
        .output()
        .unwrap()
}

#[test]
fn a_crate_with_its_own_line_passes_its_tests_and_a_broken_rule_fails_its_build() {
    let example = example();
    let output = cargo("test", example.path());
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("our_formats_are_frozen ... ok"), "{stdout}");

    let registry = example.path().join("versions.toml");
    let text = fs::read_to_string(&registry).unwrap();
    fs::write(&registry, text.replace("introduced = 2026-11-10", "introduced = 2026-11-21"))
        .unwrap();
    let output = cargo("test", example.path());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{message}");
    for part in ["versions.toml:", "line snapshots", "entry 3", "2026-11-21", "as_of = 2026-11-20"]
    {
        assert!(message.contains(part), "{message}");
    }
}
