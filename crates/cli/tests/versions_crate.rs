//! A crate with a line of its own is made from nothing by what `docs/evolving.md` says.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// A block of code of the page: its language, what stands behind that, its text.
struct Block {
    language: String,
    subject: String,
    text: String,
}

fn blocks(heading: &str) -> Vec<Block> {
    let page = fs::read_to_string(root().join("docs/evolving.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut lines = section.lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix("```") else { continue };
        let (language, subject) = head.split_once(' ').unwrap_or((head, ""));
        let text = lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]);
        blocks.push(Block {
            language: language.to_owned(),
            subject: subject.to_owned(),
            text: text.collect(),
        });
    }
    blocks
}

/// Makes a change where its unchanged and its old lines stand, which is in one place.
fn apply(file: &Path, change: &str) {
    let side = |dropped: char| -> String {
        let lines = change.lines().filter(|line| !line.starts_with(dropped));
        lines.map(|line| format!("{}\n", &line[1..])).collect()
    };
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(&side('+')).count(), 1, "{}: {change}", file.display());
    fs::write(file, text.replace(&side('+'), &side('-'))).unwrap();
}

/// Runs a line of a shell block in the folder of the crate, without the network.
fn run(line: &str, folder: &Path) -> Output {
    let line = line.replace("\"seeds of the shards\"", "seeds");
    let mut words = line.split(' ');
    let mut command = match words.next().unwrap() {
        "serdes" => Command::new(env!("CARGO_BIN_EXE_serdes")),
        "cargo" => Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        other => panic!("{other}"),
    };
    command
        .args(words)
        .current_dir(folder)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("target"))
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .unwrap()
}

/// The manifest of the page, for a serdes that is not published.
fn manifest(dependencies: &str) -> String {
    let path = |name: &str| format!("path = \"{}\"", root().join(name).display());
    let (serdes, registry) = (path(""), path("crates/version-registry"));
    let text = dependencies
        .replace("serdes = { version = \"0.1\"", &format!("serdes = {{ {serdes}"))
        .replace("registry = \"0.1\"", &format!("registry = {{ {registry} }}"))
        .replace("registry = { version = \"0.1\"", &format!("registry = {{ {registry}"));
    format!(
        "[package]\nname = \"trainer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{text}\n[workspace]\n"
    )
}

#[test]
fn page_of_a_crate_from_nothing_holds_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut commands = 0;
    for Block { language, subject, text } in blocks("A crate of one's own, from nothing") {
        let file = folder.join(&subject);
        match (language.as_str(), subject.as_str()) {
            ("sh", "") => {
                for line in text.lines() {
                    let output = run(line, folder);
                    assert!(output.status.success(), "{line}: {output:?}");
                    commands += 1;
                }
            }
            ("toml", "Cargo.toml") => fs::write(file, manifest(&text)).unwrap(),
            ("rust", _) => {
                assert!(!file.exists());
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            ("diff", _) => apply(&file, &text),
            other => panic!("{other:?}"),
        }
    }
    assert!(commands >= 8, "{commands}");
    for number in [0, 1] {
        let golden = format!("tests/golden/snapshots/Snapshot/v{number}.bin");
        assert!(folder.join(&golden).is_file(), "{golden}");
    }
    let lock = fs::read_to_string(folder.join("versions.lock")).unwrap();
    assert!(lock.contains("Snapshot/v0.bin") && lock.contains("Snapshot/v1.bin"), "{lock}");

    // A third format without a test that shows it: the command says so, and it is not released.
    let added = run("serdes versions add snapshots --formats Checkpoint --summary x", folder);
    assert!(added.status.success(), "{added:?}");
    for line in
        ["serdes versions golden", "serdes versions lock --check", "serdes versions release"]
    {
        let refused = run(line, folder);
        assert_eq!(refused.status.code(), Some(1), "{line}: {refused:?}");
        let said = [refused.stdout, refused.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("tests/golden/snapshots/Checkpoint/v2.bin"), "{line}: {said}");
    }
}

#[test]
fn example_first_line_is_that_of_the_page() {
    let example = root().join("examples/first-line");
    let files = blocks("A crate of one's own, from nothing");
    let files: Vec<_> = files.iter().filter(|block| block.language == "rust").collect();
    assert_eq!(files.len(), 3);
    for Block { subject, text, .. } in files {
        assert_eq!(fs::read_to_string(example.join(subject)).unwrap(), *text, "{subject}");
    }
    for line in ["serdes versions lock --check", "serdes versions golden --check"] {
        let held = run(line, &example);
        assert!(held.status.success(), "{line}: {held:?}");
    }
}
