//! Tests the references of the pages: the files and folders of this repository that they name
//! exist, and so do the tests behind the promises of `SECURITY.md`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serdes_testkit::copies::root;

/// Returns all files below a folder with one of these endings, except cargo's build output.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    pending.push(path);
                }
            } else if endings.iter().any(|ending| path.extension().is_some_and(|e| e == *ending)) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the pages by name.
fn pages() -> Vec<(String, String)> {
    let pages = ["README.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"];
    let pages = pages.map(|page| root().join(page));
    let pages: Vec<PathBuf> =
        pages.into_iter().chain(files(&root().join("docs"), &["md"])).collect();
    assert!(pages.len() > 12, "{pages:?}");
    let read = |page: PathBuf| {
        let name = page.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(page).unwrap())
    };
    pages.into_iter().map(read).collect()
}

/// Returns the texts between backticks in a line.
fn in_backticks(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns true if the text is a path that begins in one of the folders at the root.
fn is_of_the_tree(text: &str) -> bool {
    let is_path = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let folder = text.split('/').next().unwrap_or_default();
    let folders = [
        ".ci",
        "benches",
        "crates",
        "docs",
        "examples",
        "fuzz",
        "include",
        "packaging",
        "proto",
        "python",
        "src",
        "tests",
    ];
    text.contains('/') && text.chars().all(is_path) && folders.contains(&folder)
}

#[test]
fn every_path_that_a_page_names_is_there() {
    let mut named = 0;
    let mut missing = Vec::new();
    for (page, text) in pages() {
        for path in text.lines().flat_map(in_backticks).filter(|text| is_of_the_tree(text)) {
            // Names that stand for many files: `tests/golden/LINE/FORMAT/vNUMBER.bin`.
            let is_pattern = path.split(['/', '.']).any(|part| {
                part.len() > 2
                    && part.trim_start_matches('v').chars().all(|c| c.is_ascii_uppercase())
            });
            named += 1;
            if !is_pattern && !root().join(path).exists() {
                missing.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(named > 100, "{named} paths were found: this test reads the pages wrongly");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn tests_behind_promises_exist_in_the_named_file() {
    let sources = ["src", "crates", "tests"].map(|folder| files(&root().join(folder), &["rs"]));
    let sources: Vec<(PathBuf, String)> = sources
        .into_iter()
        .flatten()
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    let is_in = |test: &str, place: &Path| {
        let begin = format!("fn {test}(");
        sources.iter().any(|(path, text)| path.starts_with(place) && text.contains(&begin))
    };
    let (mut found, mut wrong) = (BTreeSet::new(), Vec::new());
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let named: Vec<&str> = in_backticks(cell).collect();
        let is_test = |name: &str| {
            name.len() > 15
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        for (at, test) in named.iter().enumerate().filter(|(_, name)| is_test(name)) {
            // A file in brackets behind a test is the file of the test.
            let behind =
                named.get(at + 1).filter(|next| cell.contains(&format!("`{test}` (`{next}`)")));
            let place = root().join(behind.unwrap_or(&""));
            found.insert(*test);
            if !is_in(test, &place) {
                wrong.push(format!("{test} in {}", place.display()));
            }
        }
    }
    assert!(found.len() > 50, "{} tests were found: this test reads the page wrongly", found.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
