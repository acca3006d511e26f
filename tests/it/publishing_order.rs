//! Test of the order of publishing: the table in `RELEASING.md` has every package that is
//! published, behind those that it depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The manifests of the packages that are published, by their names.
fn published() -> BTreeMap<String, String> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let manifests = folders.chain([PathBuf::from(root())]).map(|folder| folder.join("Cargo.toml"));
    let texts =
        manifests.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap());
    texts
        .filter(|text| !text.lines().any(|line| line == "publish = false"))
        .map(|text| {
            let package = text.lines().skip_while(|line| *line != "[package]");
            let mut names = package.filter_map(|line| line.strip_prefix("name = "));
            (names.next().unwrap().trim_matches('"').to_owned(), text)
        })
        .collect()
}

/// The packages of the workspace that a manifest needs to be built.
fn needs<'a>(manifest: &'a str, packages: &BTreeMap<String, String>) -> BTreeSet<&'a str> {
    let mut section = "";
    let names = manifest.lines().filter_map(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let is_needed = matches!(section, "[dependencies]" | "[build-dependencies]");
        is_needed.then(|| line.split([' ', '.']).next().unwrap_or_default())
    });
    names.filter(|name| packages.contains_key(*name)).collect()
}

#[test]
fn packages_are_published_behind_what_they_need() {
    let packages = published();
    let page = fs::read_to_string(root().join("RELEASING.md")).unwrap();
    let rows = page.lines().skip_while(|line| *line != "|---|---|").skip(1);
    let mut above = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        for name in &names {
            let manifest = packages.get(*name);
            let manifest = manifest.unwrap_or_else(|| panic!("{name} is not published, or gone"));
            let early: Vec<&str> = needs(manifest, &packages)
                .into_iter()
                .filter(|need| !above.contains(*need))
                .collect();
            assert!(early.is_empty(), "{name} needs {early:?}, which are not in a row above it");
        }
        above.extend(names);
    }
    let named: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    assert_eq!(above, named, "left: the table in RELEASING.md; right: the packages");
}
