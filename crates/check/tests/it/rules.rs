//! Tests that the table of rules is complete: each rule has an artifact that breaks it, a
//! description, and its place in `docs/rules.md`.
//!
//! `cargo xtask rules` writes the page anew.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serdes::version::registry;
use serdes_check::{self as check, Consumer, Loader, Options, Rule, Verdict};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the artifacts of `tests/data/rules`, by the rule that each is named after.
fn artifacts() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("tests/data/rules")).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("README.md"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect()
}

/// Compiles C to a shared library, in a folder that is removed when the result is dropped.
fn compiled(source: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library.so");
    let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args(["-std=c11", "-shared", "-fPIC", "-o"])
        .args([&library, source])
        .status()
        .unwrap();
    assert!(compiled.success());
    (folder, library)
}

/// Returns the options for checking the artifact of a rule: only one loader refuses unknown
/// attributes, and some rules are about older releases of jaxlib.
fn options_for(artifact: &Path) -> Options {
    let name = artifact.file_stem().unwrap_or_default();
    let is_of_load = name == Rule::UnknownAttribute.id();
    let loader = if is_of_load { Loader::Load } else { Loader::LoadV1 };
    let older = [
        (Rule::CallCrashes, "0.9.2"),
        (Rule::DerivativeRefused, "0.10.2"),
        (Rule::Expires, "0.10.2"),
    ];
    let older = older.iter().find(|(rule, _)| name == rule.id());
    let consumer =
        older.map_or_else(Consumer::newest, |(_, release)| Consumer::jax(release).unwrap());
    Options::for_consumer(consumer).with_loader(loader)
}

fn verdict(artifact: &Path) -> Verdict {
    let options = options_for(artifact);
    let first = |path: &Path| check::all(path, &options).next().unwrap().unwrap();
    if artifact.extension().is_some_and(|extension| extension == "c") {
        let (_folder, library) = compiled(artifact);
        return first(&library);
    }
    first(artifact)
}

fn is_about(verdict: &Verdict, rule: Rule) -> bool {
    verdict.reasons().iter().any(|reason| reason.rule == rule)
        || verdict.warnings().iter().any(|warning| warning.rule == rule)
}

/// Returns true for rules that no artifact can break in this build, because every line's minimum is
/// its first number.
fn is_out_of_reach(rule: Rule) -> bool {
    let minimums =
        ["device_state", "ifrt_serdes"].map(|line| registry().line(line).unwrap().minimum);
    rule == Rule::TooOld && minimums == [0, 0]
}

#[test]
fn every_rule_has_an_artifact_that_it_is_about() {
    let artifacts = artifacts();
    for rule in Rule::ALL.iter().copied().filter(|rule| !is_out_of_reach(*rule)) {
        let artifact = artifacts.iter().find(|(name, _)| name == rule.id());
        let Some((_, path)) = artifact else {
            panic!("{rule}: put an artifact that it is about into tests/data/rules/{rule}.*");
        };
        let verdict = verdict(path);
        assert!(is_about(&verdict, rule), "{verdict}");
    }
    for (name, path) in artifacts {
        assert!(name.parse::<Rule>().is_ok_and(|rule| rule.id() == name), "{path:?}");
    }
}

#[test]
fn rule_rows_have_a_meaning_and_name_no_option() {
    for &rule in Rule::ALL {
        let explanation = rule.explain();
        for words in [explanation.meaning, explanation.example, explanation.remedy] {
            assert!(words.len() > 20 && words.ends_with('.'), "{rule}: {words}");
        }
        let id = rule.id();
        assert!(id.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'), "{id}");
    }
}

/// Splits a line into words; code between two backticks is one word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut is_code) = (Vec::<String>::new(), false);
    for word in line.split(' ') {
        match words.last_mut() {
            Some(code) if is_code => {
                code.push(' ');
                code.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        is_code ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// Wraps a line of the page at 100 columns. Rows of tables and headings are not broken.
fn wrapped(line: &str) -> String {
    if line.starts_with(['|', '#']) {
        return line.to_owned();
    }
    let indentation = if line.starts_with("- ") { "  " } else { "" };
    let (mut text, mut column) = (String::new(), 0);
    for word in words(line) {
        let width = word.chars().count();
        if column > 0 && column + 1 + width <= 100 {
            text.push(' ');
            column += 1;
        } else if column > 0 {
            text.push('\n');
            text.push_str(indentation);
            column = indentation.len();
        }
        text.push_str(&word);
        column += width;
    }
    text
}

fn page() -> String {
    let mut page = "# Rules of verdicts\n\nMade from the table in `crates/check/src/rule/table.rs` by `cargo xtask rules`; do not edit. \
                    `serdes explain RULE` prints the same.\n\n| rule | verdict | about |\n|---|---|---|\n"
        .to_owned();
    for &rule in Rule::ALL {
        let first = rule.explain().meaning.split(['.', ':']).next().unwrap_or_default();
        let outcome = rule.outcome();
        let verdict = if rule.is_warning() {
            format!("warning; {outcome} with `--strict`")
        } else {
            outcome.to_string()
        };
        writeln!(page, "| [`{rule}`](#{rule}) | {verdict} | {first} |").unwrap();
    }
    page += "\nA warning counts with `--strict`, or with `--deny RULE`. Messages have `{}` around what differs; what the \
             reader of a format finds is said in the reader's own words.\n";
    for &rule in Rule::ALL {
        let explanation = rule.explain();
        write!(
            page,
            "\n## {rule}\n\n{}\n\n- Example: {}\n- Remedy: {}\n",
            explanation.meaning, explanation.example, explanation.remedy
        )
        .unwrap();
        for message in explanation.messages {
            writeln!(page, "- Message: \"{message}\"").unwrap();
        }
    }
    page.lines().map(|line| wrapped(line) + "\n").collect()
}

#[test]
fn the_page_of_rules_is_that_of_the_table() {
    let path = root().join("docs/rules.md");
    if std::env::var_os("SERDES_REGENERATE_RULES").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, page(), "`cargo xtask rules` writes docs/rules.md anew");
}
