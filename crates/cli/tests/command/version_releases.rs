//! Tests of `serdes versions` on lines that declare their release.

use std::{fs, process::Output};

use crate::{
    testkit::{objects, root, status},
    versions::{Crate, messages, shown},
};

/// Creates a crate whose line was released with 1.4.0.
fn released() -> Crate {
    let trainer = Crate::new();
    trainer.edit("minimum = 0", "minimum = 0\nrelease = \"1.4.0\"");
    let released = trainer.run(&["release", "--date", "2026-11-20"]);
    assert_eq!(status(&released), 0, "{released:?}");
    assert!(shown(&released).contains("snapshots: release 1.4.0, the first in the lock"));
    trainer
}

fn golden(trainer: &Crate, number: i32) {
    let path = trainer.path(&format!("tests/golden/snapshots/Snapshot/v{number}.bin"));
    fs::write(path, [8, 4]).unwrap();
}

fn said(output: &Output) -> String {
    format!("{}{}", shown(output), messages(output))
}

#[test]
fn page_of_release_kinds_holds_as_it_stands() {
    let page = fs::read_to_string(root().join("docs/evolving.md")).unwrap();
    let (_, section) = page.split_once("\n## Kinds of releases\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let blocks: Vec<(&str, &str)> = section
        .split("\n```")
        .skip(1)
        .step_by(2)
        .map(|block| block.split_once('\n').unwrap())
        .collect();
    let [("toml versions.toml", line), ("sh", refused), ("text", refusal), ("sh", moved)] =
        blocks[..]
    else {
        panic!("{blocks:?}")
    };
    let trainer = released();
    assert!(trainer.text("versions.toml").contains(line), "{line}");
    let run = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("serdes versions ").unwrap().split(' ').collect();
        trainer.run(&words)
    };
    let before = trainer.text("versions.toml");
    let output = run(refused);
    assert_eq!((status(&output), trainer.text("versions.toml")), (1, before));
    assert!(messages(&output).contains(refusal), "{}", messages(&output));
    assert_eq!(status(&run(moved)), 0);
    assert!(trainer.text("versions.toml").contains("\nrelease = \"1.5.0\"\n"));
}

#[test]
fn release_of_a_line_takes_what_its_kind_allows() {
    let trainer = released();
    let lock = trainer.text("versions.lock");
    assert_eq!(status(&trainer.run(&["lock", "--check"])), 0);
    let added = trainer.run(&["add", "snapshots", "--formats", "Snapshot", "--release", "1.5.0"]);
    assert_eq!(status(&added), 0, "{added:?}");
    golden(&trainer, 4);
    // Every command refuses it as a patch release, and nothing is written.
    trainer.edit("release = \"1.5.0\"", "release = \"1.4.1\"");
    for arguments in [&["lock", "--check"][..], &["lock"], &["release"]] {
        let refused = trainer.run(arguments);
        assert_eq!(status(&refused), 1, "{arguments:?}");
        let said = said(&refused);
        assert!(said.contains("snapshots: number 4 is new"), "{arguments:?}: {said}");
        assert!(said.contains("this is for a minor release"), "{arguments:?}: {said}");
        assert_eq!(trainer.text("versions.lock"), lock, "{arguments:?}");
    }
    trainer.edit("release = \"1.4.1\"", "release = \"1.5.0\"");
    assert_eq!(status(&trainer.run(&["lock"])), 0);
    let dry = trainer.run(&["release", "--dry-run", "--json"]);
    let expected = serde_json::json!([
        { "line": "snapshots", "before": "1.4.0", "after": "1.5.0", "kind": "minor" }
    ]);
    assert_eq!(objects(&dry)[0]["releases"], expected);
    let done = trainer.run(&["release"]);
    assert!(shown(&done).contains("release 1.5.0, a minor release after 1.4.0"), "{done:?}");
    assert_eq!(status(&trainer.run(&["lock", "--check"])), 0);
    assert!(trainer.text("versions.lock").contains("release\tsnapshots\t1.5.0\t4\t0\t0\n"));
    let listed = trainer.run(&["--json"]);
    assert_eq!(objects(&listed)[0]["release"], "1.5.0");
    assert!(shown(&trainer.run(&[])).contains("(release 1.5.0)"));
}

#[test]
fn removal_of_a_format_waits_for_a_major_release() {
    let trainer = released();
    trainer.edit("minimum = 0", "minimum = 2");
    trainer.edit(
        "summary = \"step and where the weights lie\"\nformats = [\"Snapshot\"]",
        "summary = \"step and where the weights lie\"\nformats = [\"Snapshot\"]\nremoved = [\"Snapshot\"]",
    );
    for release in ["1.4.0", "1.4.1", "1.5.0", "2.0.0"] {
        let text = trainer.text("versions.toml");
        let at = text.find("release = \"").unwrap() + "release = \"".len();
        let text = format!("{}{release}{}", &text[..at], &text[at + "1.4.0".len()..]);
        fs::write(trainer.path("versions.toml"), text).unwrap();
        let checked = trainer.run(&["lock", "--check"]);
        let is_major = release == "2.0.0";
        assert_eq!(status(&checked), i32::from(!is_major), "{release}: {checked:?}");
        assert_eq!(shown(&checked).contains("say `release = \"2.0.0\"`"), !is_major, "{release}");
    }
    assert_eq!(status(&trainer.run(&["release"])), 0);
}

#[test]
fn release_that_is_none_is_refused_with_its_form() {
    let trainer = Crate::new();
    let add = |release: &str| {
        trainer.run(&[
            "add",
            "snapshots",
            "--formats",
            "Snapshot",
            "--dry-run",
            "--release",
            release,
        ])
    };
    assert_eq!(status(&add("1.5.0")), 0);
    for release in ["1.5", "v1.5.0", "1.5.0-rc.1"] {
        let refused = add(release);
        assert_eq!(status(&refused), 2, "{release}");
        assert!(messages(&refused).contains("MAJOR.MINOR.PATCH"), "{}", messages(&refused));
    }
    trainer.edit("minimum = 0", "minimum = 0\nrelease = \"1.5\"");
    let listed = trainer.run(&[]);
    assert_eq!(status(&listed), 2);
    assert!(messages(&listed).contains("`release` is \"1.5\""), "{}", messages(&listed));
}
