//! Tests that the steps in `docs/evolving.md` create a crate with its own line from nothing.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serdes_testkit::{
    copies::{cargo, root},
    pages::{Block, apply, blocks},
};

use crate::testkit::BINARY;

/// Returns the blocks of the page's section.
fn section() -> Vec<Block> {
    blocks("docs/evolving.md", "A crate of one's own, from nothing")
}

/// Runs a line of a shell block in the folder of the crate, without the network.
fn run(line: &str, folder: &Path) -> Output {
    let line = line.replace("\"seeds of the shards\"", "seeds");
    let mut words = line.split(' ');
    let mut command = match words.next().unwrap() {
        "serdes" => Command::new(BINARY),
        "cargo" => cargo(Path::new(env!("CARGO_TARGET_TMPDIR"))),
        other => panic!("{other}"),
    };
    command.args(words).current_dir(folder).output().unwrap()
}

/// Returns the page's manifest, adapted to an unpublished serdes.
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
#[ignore = "compiles a crate from nothing; `.ci/run copies` runs it"]
fn page_of_a_crate_from_nothing_holds_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut commands = 0;
    for Block { language, subject, text } in section() {
        let subject = subject.concat();
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

    // A third format without a test for it: the command says so, and does not release it.
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
    let files = section();
    let files: Vec<_> = files.iter().filter(|block| block.language == "rust").collect();
    assert_eq!(files.len(), 3);
    for Block { subject, text, .. } in files {
        let subject = subject.concat();
        assert_eq!(fs::read_to_string(example.join(&subject)).unwrap(), *text, "{subject}");
    }
    for line in ["serdes versions lock --check", "serdes versions golden --check"] {
        let held = run(line, &example);
        assert!(held.status.success(), "{line}: {held:?}");
    }
}
