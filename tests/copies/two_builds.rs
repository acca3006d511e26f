//! Tests of states between two builds of this library: one whose registry has a younger container
//! format, and one that does not know it.
//!
//! The older one is the library of this test. The younger one is a program outside the workspace
//! that depends on a copy.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serdes_testkit::copies::{cargo, copy_directory, root, workplace};

use crate::{scratch, states};

/// The day of the younger build, and its additional entry.
const YOUNGER_DAY: &str = "2026-12-20";
const YOUNGER_ENTRY: &str = r#"
[[line.entry]]
number = 1
introduced = 2026-12-20
summary = "a container that older builds must not read"
formats = ["Container"]
min_consumer = 1
"#;

const MANIFEST: &str = r#"
[package]
name = "younger"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
serdes = { path = "serdes" }
serdes-device-state = { path = "serdes/crates/device-state" }
serdes-stream-executor = { path = "CRATES/stream-executor" }

[workspace]
exclude = ["serdes"]
"#;

/// Returns the table of a manifest with this header, up to the next one.
fn table<'a>(manifest: &'a str, head: &str) -> &'a str {
    let begin = manifest.find(&format!("\n{head}\n")).unwrap_or_else(|| panic!("{head}"));
    let rest = &manifest[begin + 1..];
    &rest[..rest[1..].find("\n[").map_or(rest.len(), |end| end + 2)]
}

/// Copies the library, with another registry, into its own directory.
fn copy_library(to: &Path, registry: &str) {
    for directory in ["src", "proto", "tests/golden"] {
        if root().join(directory).exists() {
            copy_directory(&root().join(directory), &to.join(directory));
        }
    }
    for file in ["build.rs", "README.md", "versions.lock"] {
        fs::copy(root().join(file), to.join(file)).unwrap();
    }
    fs::write(to.join("versions.toml"), registry).unwrap();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let crates = root().join("crates").display().to_string();
    let dependencies =
        table(&manifest, "[workspace.dependencies]").replace("\"crates/", &format!("\"{crates}/"));
    let dependencies = dependencies.lines().filter(|line| {
        !line.starts_with("serdes = ") && !line.starts_with("serdes-device-state = ")
    });
    let copied =
        "serdes = { path = \".\" }\nserdes-device-state = { path = \"crates/device-state\" }";
    let parts = [
        table(&manifest, "[workspace.package]").to_owned(),
        dependencies.chain([copied]).collect::<Vec<_>>().join("\n"),
        "[package]\nname = \"serdes\"\nversion.workspace = true\nedition.workspace = true\n"
            .to_owned(),
        table(&manifest, "[features]").to_owned(),
        table(&manifest, "[dependencies]").to_owned(),
        table(&manifest, "[build-dependencies]").to_owned(),
    ];
    let text =
        format!("[workspace]\nmembers = [\"crates/device-state\"]\n\n{}\n", parts.join("\n"));
    fs::write(to.join("Cargo.toml"), text).unwrap();
    let (ours, theirs) = (root().join("crates/device-state"), to.join("crates/device-state"));
    copy_directory(&ours.join("src"), &theirs.join("src"));
    fs::copy(ours.join("README.md"), theirs.join("README.md")).unwrap();
    let manifest = fs::read_to_string(ours.join("Cargo.toml")).unwrap();
    let tests = table(&manifest, "[dev-dependencies]").to_owned();
    let manifest = manifest.replace(&tests, "").replace("[lints]\nworkspace = true\n", "");
    fs::write(theirs.join("Cargo.toml"), manifest).unwrap();
}

/// Returns the registry of the younger build.
fn younger_registry() -> String {
    let registry = fs::read_to_string(root().join("versions.toml")).unwrap();
    let day = registry.lines().find(|line| line.starts_with("as_of")).unwrap();
    let (head, tail) = registry.split_once("[[line]]\nname = \"device_state\"").unwrap();
    let next = tail.find("\n[[line]]").unwrap();
    let entries = &tail[..next];
    let younger =
        format!("{head}[[line]]\nname = \"device_state\"{entries}{YOUNGER_ENTRY}{}", &tail[next..]);
    younger.replace(day, &format!("as_of = {YOUNGER_DAY}"))
}

/// Builds the program of the younger build in this folder.
fn build(folder: &Path) -> PathBuf {
    copy_library(&folder.join("serdes"), &younger_registry());
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), include_str!("states/younger.rs")).unwrap();
    fs::write(folder.join("src/states.rs"), include_str!("states/mod.rs")).unwrap();
    let crates = root().join("crates").display().to_string();
    fs::write(folder.join("Cargo.toml"), MANIFEST.replace("CRATES", &crates)).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let manifest = folder.join("Cargo.toml");
    let mut build = cargo(scratch());
    // Cargo's messages tell the path of the program.
    build.args(["build", "--message-format", "json-render-diagnostics", "--manifest-path"]);
    let output = build.arg(manifest).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let messages = said.lines().map(|line| serde_json::from_str(line).unwrap());
    let built = |message: serde_json::Value| message["executable"].as_str().map(PathBuf::from);
    messages.filter_map(built).next().unwrap()
}

/// Runs the younger build with these arguments, and returns what it printed.
fn ask(younger: &Path, words: [&str; 2], path: &Path) -> String {
    let [verb, day] = words;
    let mut command = Command::new(younger);
    command.arg(verb).arg(path).args(Some(day).filter(|day| !day.is_empty()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
#[ignore = "compiles a copy of the sources; `.ci/run copies` runs it"]
fn states_pass_between_builds_with_and_without_a_new_format() {
    let folder = workplace(scratch(), "two-builds");
    let younger = build(&folder);
    let path = folder.join("a.sds");
    let younger_save = |day| ask(&younger, ["save", day], &path);
    let younger_save_in_parts = |day| ask(&younger, ["save-in-parts", day], &path);
    let younger_read = || ask(&younger, ["read", ""], &path);
    const DATA: &str = "Ok([1, 2, 3])";

    // The older build reads what the younger one writes for builds of four weeks ago.
    assert_eq!(younger_save("old"), "0");
    assert_eq!(states::read(&path), Ok(vec![1, 2, 3]));
    younger_save_in_parts("old");
    assert_eq!(states::read(&path), Ok(vec![1, 2, 3]));
    // The younger build reads what the older one writes.
    for is_for_today in [false, true] {
        assert_eq!(states::save(&path, is_for_today), 0);
        assert_eq!(younger_read(), DATA);
        states::save_in_parts(&path, is_for_today);
        assert_eq!(younger_read(), DATA);
    }
    // The older build refuses as too new what the younger one writes for builds of its own day.
    assert_eq!(younger_save("today"), "1");
    assert_eq!(younger_read(), DATA);
    assert_eq!(states::read(&path), Err("too new: 1 > 0".to_owned()));
    younger_save_in_parts("today");
    assert_eq!(younger_read(), DATA);
    assert_eq!(states::read(&path), Err("too new: 1 > 0".to_owned()));
}
