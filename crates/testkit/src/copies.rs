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

/// Copies a directory and what is in it, but for what cargo built there.
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

/// Returns an empty folder for the copies of the test of that name. It is the same in each run, so
/// that what is built of them is replaced, not added.
pub fn workplace(scratch: &Path, test: &str) -> PathBuf {
    let folder = scratch.join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a cargo that builds what it is told to without the network.
///
/// All of these tests build into one directory: most of it is what the copies depend on, which is
/// built once so. It is not the directory in use, whose names without a hash are those of the
/// sources, but one in `scratch`, or what `SERDES_COPIES_TARGET` names.
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
