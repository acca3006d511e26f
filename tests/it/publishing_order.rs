//! Tests the order of publishing: the table in `RELEASING.md` has every published package, after
//! those that it depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serdes_testkit::copies::root;

use crate::manifests;

/// Returns the manifests of the published packages, by name.
fn published() -> BTreeMap<String, String> {
    let folders = manifests::crates().into_iter().map(|name| root().join("crates").join(name));
    let manifests = folders.chain([root()]).map(|folder| folder.join("Cargo.toml"));
    let texts = manifests.map(|path| fs::read_to_string(path).unwrap());
    texts
        .filter(|text| !text.lines().any(|line| line == "publish = false"))
        .map(|text| {
            let package = text.lines().skip_while(|line| *line != "[package]");
            let mut names = package.filter_map(|line| line.strip_prefix("name = "));
            (names.next().unwrap().trim_matches('"').to_owned(), text)
        })
        .collect()
}

/// Returns the packages of the workspace that a package needs to be built.
fn needs<'a>(manifest: &'a str, packages: &BTreeMap<String, String>) -> BTreeSet<&'a str> {
    let tables = ["[dependencies]", "[build-dependencies]"];
    let names = tables.into_iter().flat_map(|table| manifests::dependencies(manifest, table));
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
