//! What `CONTRIBUTING.md` says of a new rule and of a new request is what there is to do: its edits
//! fit the sources, and what they make of a copy compiles, tests and all, without a warning.
//!
//! It does so whatever the default version is, and takes minutes: once is enough.

#![cfg(not(ifrt_testing_bad_default_serdes_version))]

mod copies;
mod pages;
mod protos;

use std::{fs, path::Path};

use pages::{Block, apply, blocks, cargo, sources};

/// The sources, and what their tests include.
const DIRECTORIES: [&str; 5] = ["src", "proto", "crates", "tests", "docs"];

/// Makes the edits of a section.
fn follow(section: &str, serdes: &Path) {
    for Block { language, subject, text } in blocks("CONTRIBUTING.md", section) {
        let file = subject.first().map(|file| serdes.join(file));
        match (language.as_str(), file) {
            ("diff", Some(file)) => apply(&file, &text),
            ("rust" | "proto", Some(file)) => {
                let before = fs::read_to_string(&file).map(|text| text + "\n");
                fs::write(file, before.unwrap_or_default() + &text).unwrap();
            }
            ("console", None) => {}
            other => panic!("{other:?}: neither an edit nor commands"),
        }
    }
}

#[test]
fn a_new_rule_and_a_new_request_are_what_the_page_says() {
    let serdes = sources("contributing", &DIRECTORIES);
    follow("Add a rule of verdicts", &serdes);
    follow("Add a request of the proxy", &serdes);
    protos::write(&serdes, &protos::generate(&serdes));
    let output = cargo("contributing")
        .args(["check", "--quiet", "-p", "serdes", "--all-features"])
        .args(["--lib", "--profile", "test"])
        .env("RUSTFLAGS", "-D warnings")
        .current_dir(&serdes)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
