//! Tests that the help of every command equals the reviewed text, and that every command has tests.
//!
//! `cargo xtask help` writes `tests/help` anew.

use std::{collections::BTreeSet, fs, path::Path};

use crate::testkit::{command, printed};

/// Returns every command and subcommand: `versions`, `versions lock`.
fn commands() -> Vec<Vec<String>> {
    let mut found = vec![vec![]];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        for name in subcommands(&help(&path)) {
            found.push([path.clone(), vec![name]].concat());
        }
        at += 1;
    }
    found
}

fn help(path: &[String]) -> String {
    let output = command()
        .args(path)
        .arg("--help")
        .env_remove("COLUMNS")
        .env("SERDES_HOST_PLUGIN", "")
        .output()
        .unwrap();
    assert!(output.status.success(), "{path:?}: {output:?}");
    let text = printed(&output).replace("serdes.exe", "serdes");
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Returns the names in the list of commands in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        // A continuation line of a description is indented further.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn tests() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn the_help_of_every_command_is_what_was_last_read() {
    let folder = tests().join("help");
    let is_written = std::env::var_os("SERDES_REGENERATE_HELP").is_some();
    let mut expected = BTreeSet::new();
    for path in commands() {
        let name = format!("{}.txt", [vec!["serdes".to_owned()], path.clone()].concat().join("-"));
        let file = folder.join(&name);
        let found = help(&path);
        if is_written {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &found).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(kept, found, "{name}: `cargo xtask help` writes it anew");
        expected.insert(name);
    }
    assert!(expected.len() > 15, "{expected:?}");
    assert_eq!(names(&folder), expected, "a help of no command");
}

#[test]
fn every_command_has_a_file_of_tests() {
    let files: BTreeSet<String> =
        names(&tests().join("command")).union(&names(tests())).cloned().collect();
    for path in commands().iter().filter(|path| path.len() == 1) {
        let has = |file: &String| {
            let rest = file.strip_prefix(path[0].as_str());
            rest.is_some_and(|rest| {
                rest == ".rs" || (rest.starts_with('_') && rest.ends_with(".rs"))
            })
        };
        assert!(files.iter().any(has), "no file of tests for `serdes {}`", path[0]);
    }
}

#[test]
fn every_file_of_tests_is_run() {
    let main = fs::read_to_string(tests().join("command/main.rs")).unwrap();
    for file in names(&tests().join("command")) {
        let module = file.trim_end_matches(".rs");
        assert!(module == "main" || main.contains(&format!("mod {module};\n")), "{file}");
    }
}
