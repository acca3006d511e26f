//! The crates of the workspace and the dependencies that their manifests name.

use std::{collections::BTreeSet, fs};

use serdes_testkit::copies::root;

/// Returns the names of the folders of `crates/` that are packages.
pub(crate) fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap());
    let packages = folders.filter(|entry| entry.path().join("Cargo.toml").is_file());
    packages.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Returns the dependencies in one table of a manifest, for example `[dependencies]`. Lines that
/// continue a list have no name of a package.
pub(crate) fn dependencies<'a>(manifest: &'a str, table: &str) -> impl Iterator<Item = &'a str> {
    let lines = manifest.lines().skip_while(move |line| *line != table).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split([' ', '.']).next())
}

#[test]
fn dependencies_are_those_of_one_table() {
    let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\nc = { path = \"c\" }\n\n\
                    [dev-dependencies]\nd = \"1\"\n";
    let of = |table| dependencies(manifest, table).filter(|name| !name.is_empty());
    assert_eq!(of("[dependencies]").collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(of("[dev-dependencies]").collect::<Vec<_>>(), ["d"]);
    assert_eq!(of("[build-dependencies]").count(), 0);
}
