//! Copies of parts of this repository, for tests that build crates outside of the workspace.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Copies a directory with its contents, except for build results of cargo.
pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "target" {
            copy_directory(&entry.path(), &target);
        }
    }
}

/// Returns an empty folder for the copies of a test. It is the same in each run, so that build
/// results are replaced instead of accumulated.
pub fn workplace(scratch: &Path, test: &str) -> PathBuf {
    let folder = scratch.join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a cargo command that builds without the network.
///
/// All of these tests build into one directory, so that the copies' common dependencies are built
/// once. It is not the workspace's directory, whose names without a hash belong to the sources, but
/// one in `scratch`, or the one in `SERDES_COPIES_TARGET`.
pub fn cargo(scratch: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let target = env::var_os("SERDES_COPIES_TARGET");
    let target = target.map_or_else(|| scratch.join("target"), PathBuf::from);
    cargo
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true");
    cargo
}
