//! Tests of `serdes versions`: listing any crate's lines, and the steps of docs/evolving.md.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serdes::version::{Date, DeviceState, Week4OldVersionAccessor};
use tempfile::TempDir;

use crate::testkit::{command, objects, root, serdes, status, text};

#[test]
fn versions_are_listed_for_any_day() {
    let listed = objects(&serdes(&["versions", "--as-of", "2026-03-19", "--json"]));
    let flag = |flag: &str| {
        listed
            .iter()
            .find(|entry| entry["line"] == "ifrt_serdes" && entry[flag] == true)
            .and_then(|entry| entry["number"].as_i64())
    };
    assert_eq!((flag("current"), flag("week_4_old"), flag("minimum")), (Some(2), Some(1), Some(0)));
    assert_eq!(status(&serdes(&["versions", "--as-of", "2026-02-30"])), 2);
    let root = root();
    assert_eq!(status(&serdes(&["versions", "lock", "--check", "--directory", text(&root)])), 0);
}

pub(crate) fn messages(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn shown(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A user's crate with a line, golden bytes and a lock: the first line of `examples/downstream`.
pub(crate) struct Crate(TempDir);

impl Crate {
    pub(crate) fn new() -> Self {
        let example = root().join("examples/downstream");
        let folder = tempfile::tempdir().unwrap();
        let text = |name: &str| fs::read_to_string(example.join(name)).unwrap();
        let registry = text("versions.toml");
        let first = registry.split_once("\n[[line]]\nname = \"runs\"").unwrap().0;
        fs::write(folder.path().join("versions.toml"), first).unwrap();
        let lock: String = text("versions.lock")
            .lines()
            .filter(|row| !row.contains("runs/") && !row.contains("\truns\t"))
            .flat_map(|row| [row, "\n"])
            .collect();
        fs::write(folder.path().join("versions.lock"), lock).unwrap();
        let golden = "tests/golden/snapshots";
        copy(&example.join(golden), &folder.path().join(golden));
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `serdes versions ARGUMENTS --directory CRATE`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["versions"];
        all.extend(arguments);
        all.extend(["--directory", self.0.path().to_str().unwrap()]);
        serdes(&all)
    }

    /// Changes the file by hand.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let text = self.text("versions.toml");
        assert_eq!(text.matches(from).count(), 1, "{from:?}");
        fs::write(self.path("versions.toml"), text.replace(from, to)).unwrap();
    }
}

#[test]
fn the_lines_of_any_crate_are_listed() {
    let trainer = Crate::new();
    let listed = objects(&trainer.run(&["--json"]));
    let flags = |number: i64| {
        let entry = listed.iter().find(|entry| entry["number"] == number).unwrap();
        ["current", "week_4_old", "minimum", "withdrawn"].map(|flag| entry[flag] == true)
    };
    assert_eq!(listed.len(), 4);
    assert!(listed.iter().all(|entry| entry["line"] == "snapshots"));
    assert_eq!(flags(0), [false, false, true, false]);
    assert_eq!(flags(1), [false, false, false, true]);
    assert_eq!(flags(2), [false, true, false, false]);
    assert_eq!(flags(3), [true, false, false, false]);
    let on = trainer.run(&["--json", "--as-of", "2026-12-08"]);
    assert_eq!(objects(&on)[3]["week_4_old"], true);
    let text = shown(&trainer.run(&[]));
    assert!(text.contains("seeds of the shards") && text.contains("those of 2026-11-20"), "{text}");
    assert!(!text.contains("ifrt_serdes"), "{text}");

    let empty = tempfile::tempdir().unwrap();
    let absent = serdes(&["versions", "--directory", empty.path().to_str().unwrap()]);
    assert_eq!(status(&absent), 2);
    trainer.edit("minimum = 0", "minimum = 7");
    assert_eq!(status(&trainer.run(&[])), 2);
}

#[test]
fn a_window_of_a_line_moves_its_selections() {
    let trainer = Crate::new();
    trainer.edit("minimum = 0", "minimum = 0\nwindow_days = 150");
    let listed = objects(&trainer.run(&["--json"]));
    // Number 2 is 102 days old, and number 1 withdrawn.
    assert_eq!(listed[0]["week_4_old"], true);
    assert_eq!(
        (&listed[0]["window_days"], &listed[0]["younger_than_window"]),
        (&150.into(), &false.into())
    );
    assert!(shown(&trainer.run(&[])).contains("window of 150 days"));
}

#[test]
fn list_says_if_a_selection_is_younger_than_its_name() {
    let on = |day: &str| {
        let listed = objects(&serdes(&["versions", "--as-of", day, "--json"]));
        listed.into_iter().find(|entry| entry["line"] == "device_state").unwrap()
    };
    let young = on("2026-11-22");
    assert_eq!((&young["week_4_old"], &young["younger_than_window"]), (&true.into(), &true.into()));
    assert_eq!(on("2026-12-18")["younger_than_window"], false);
    // Before its first day a line has no flag.
    let before = on("2026-11-19");
    for flag in ["current", "week_4_old", "minimum", "younger_than_window"] {
        assert_eq!(before[flag], false, "{flag}");
    }
    let text = shown(&serdes(&["versions", "--as-of", "2026-11-22"]));
    assert!(text.contains("week_4_old (only 2 of 28 days)"), "{text}");
}

#[test]
fn a_registry_far_behind_today_is_warned_of() {
    let trainer = Crate::new();
    trainer.edit("as_of = 2026-11-20", "as_of = 2026-11-10");
    let last = trainer.text("versions.toml");
    // Moves all days back by two years.
    let old = last.replace("2026-", "2024-");
    fs::write(trainer.path("versions.toml"), old).unwrap();
    let listed = trainer.run(&[]);
    assert_eq!(status(&listed), 0);
    let warning = messages(&listed);
    for part in ["warning", "as_of = 2024-11-10", "days behind", "versions release"] {
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(status(&trainer.run(&["release"])), 0);
    let text = trainer.text("versions.toml");
    let as_of: Date = text["as_of = ".len()..][..10].parse().unwrap();
    assert!(Date::today().days_since(as_of) <= 1, "{as_of}");
    assert!(!messages(&trainer.run(&[])).contains("warning"));
}

#[test]
fn an_entry_is_added_to_a_crate_and_then_asks_for_golden_bytes() {
    let trainer = Crate::new();
    let before = trainer.text("versions.toml");
    let added = trainer.run(&[
        "add",
        "snapshots",
        "--formats",
        "Snapshot",
        "--summary",
        "momentum",
        "--introduced",
        "2026-12-24",
        "--json",
    ]);
    assert_eq!(status(&added), 0, "{added:?}");
    let report = &objects(&added)[0];
    assert_eq!((&report["number"], &report["line"]), (&4.into(), &"snapshots".into()));
    assert_eq!(report["as_of"], "2026-12-24");
    assert_eq!(report["previous_as_of"], "2026-11-20");
    assert_eq!(report["golden"][0], "tests/golden/snapshots/Snapshot/v4.bin");
    assert!(messages(&added).contains("serdes versions lock"));
    let expected = before.replace("as_of = 2026-11-20", "as_of = 2026-12-24")
        + "\n[[line.entry]]\nnumber = 4\nintroduced = 2026-12-24\nsummary = \"momentum\"\n\
           formats = [\"Snapshot\"]\n";
    assert_eq!(trainer.text("versions.toml"), expected);

    // Nothing is released until the golden bytes exist.
    let early = trainer.run(&["release", "--date", "2026-12-25"]);
    assert_eq!(status(&early), 1);
    assert!(messages(&early).contains("v4.bin"), "{early:?}");
    assert_eq!(trainer.text("versions.toml"), expected);
    fs::write(trainer.path("tests/golden/snapshots/Snapshot/v4.bin"), [8, 4]).unwrap();
    let released = trainer.run(&["release", "--date", "2026-12-25", "--json"]);
    assert_eq!(status(&released), 0, "{released:?}");
    assert_eq!(objects(&released)[0]["frozen"].as_array().unwrap().len(), 1);
    assert!(trainer.text("versions.lock").contains("Snapshot/v4.bin"));
    assert!(trainer.text("versions.toml").starts_with("as_of = 2026-12-25\n"));
    assert_eq!(status(&trainer.run(&["lock", "--check"])), 0);
}

#[test]
fn refused_entry_writes_nothing() {
    let trainer = Crate::new();
    let before = trainer.text("versions.toml");
    let refused: [(&[&str], i32, &str); 7] = [
        (
            &["add", "snapshots", "--formats", "Snapshot", "--introduced", "2026-11-01"],
            1,
            "days never go back",
        ),
        (&["add", "snapshots", "--formats", "Snapshot", "--number", "1"], 1, "numbers only go up"),
        (
            &["add", "snapshots", "--formats", "Snapshot", "--min-consumer", "9"],
            1,
            "min_consumer 9",
        ),
        (&["add", "snapshots", "--formats", "Snapshot", "--introduced", "soon"], 2, "YYYY-MM-DD"),
        (&["add", "snapshots"], 2, "summary or formats"),
        (&["add", "nothing", "--formats", "Snapshot"], 2, "the lines are snapshots"),
        (&["release", "--date", "2026-11-19"], 1, "only goes forward"),
    ];
    for (arguments, expected, words) in refused {
        let output = trainer.run(arguments);
        assert_eq!(status(&output), expected, "{arguments:?}");
        assert!(messages(&output).contains(words), "{}", messages(&output));
        assert_eq!(trainer.text("versions.toml"), before, "{arguments:?}");
    }
    let dry = trainer.run(&["add", "snapshots", "--formats", "Snapshot", "--dry-run"]);
    assert_eq!((status(&dry), trainer.text("versions.toml")), (0, before));
}

#[test]
fn a_release_freezes_nothing_that_changed() {
    let trainer = Crate::new();
    let before = (trainer.text("versions.toml"), trainer.text("versions.lock"));
    fs::write(trainer.path("tests/golden/snapshots/Snapshot/v2.bin"), [8, 2]).unwrap();
    let refused = trainer.run(&["release", "--date", "2026-12-24"]);
    assert_eq!(status(&refused), 1);
    assert!(messages(&refused).contains("Snapshot of snapshots version 2"), "{refused:?}");
    assert_eq!((trainer.text("versions.toml"), trainer.text("versions.lock")), before);
}

#[test]
fn a_release_says_which_selections_move_and_which_are_young() {
    let trainer = Crate::new();
    let released = trainer.run(&["release", "--date", "2026-12-08", "--json"]);
    let report = &objects(&released)[0];
    assert_eq!(
        report["selections"],
        serde_json::json!([{ "line": "snapshots", "selector": "week_4_old", "before": 2, "after": 3 }])
    );
    trainer.edit("minimum = 0", "minimum = 0\nwindow_days = 1000");
    let released = trainer.run(&["release", "--date", "2026-12-09"]);
    let notes = messages(&released);
    assert!(notes.contains("snapshots 0") && notes.contains("not 1000"), "{notes}");
}

#[test]
fn a_slip_in_a_formats_name_is_said() {
    let trainer = Crate::new();
    let added = trainer.run(&["add", "snapshots", "--formats", "Snapsht", "--dry-run"]);
    assert!(messages(&added).contains("Snapsht is a format that snapshots did not have before"));
    let known = trainer.run(&["add", "snapshots", "--formats", "Snapshot", "--dry-run"]);
    assert!(!messages(&known).contains("did not have before"));
}

#[test]
fn a_registry_that_contradicts_itself_is_named_with_its_rule() {
    for (key, words) in [
        ("bad_consumers = [3]", "refuse what it writes itself"),
        ("bad_consumers_with = { Snapshot = [3] }", "refuse what it writes itself"),
        ("min_producer = 4", "above the current number 3"),
        ("window_days = 0", "1..2147483647"),
    ] {
        let trainer = Crate::new();
        trainer.edit("minimum = 0", &format!("minimum = 0\n{key}"));
        let listed = trainer.run(&["--json"]);
        assert_eq!(status(&listed), 2, "{key}");
        assert!(objects(&listed)[0]["error"].as_str().unwrap().contains(words), "{listed:?}");
    }
    let trainer = Crate::new();
    trainer.edit("minimum = 0", "minimum = 2");
    let kept = trainer.run(&[]);
    assert!(messages(&kept).contains("below the minimum 2"), "{kept:?}");
    trainer.edit(
        "summary = \"step and where the weights lie\"\nformats = [\"Snapshot\"]",
        "summary = \"step and where the weights lie\"\nformats = [\"Snapshot\"]\nremoved = [\"Snapshot\"]",
    );
    assert_eq!(status(&trainer.run(&[])), 0);
}

#[test]
fn save_for_older_builds_notes_a_younger_version() {
    let tensors = root().join("tests/data/safetensors/tiny.safetensors");
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.sds");
    let save = |options: &[&str]| {
        let mut all =
            vec!["save", "--from", tensors.to_str().unwrap(), "-o", state.to_str().unwrap()];
        all.extend(options);
        let saved = serdes(&all);
        assert_eq!(status(&saved), 0, "{saved:?}");
        messages(&saved)
    };
    let selection = Week4OldVersionAccessor::<DeviceState>::select().unwrap();
    let said = save(&["--serdes-version", "week-4-old"]);
    assert_eq!(said.contains(&selection.to_string()), selection.is_younger_than_asked(), "{said}");
    for options in [
        &["--serdes-version", "week-4-old", "--quiet"][..],
        &["--serdes-version", "current"],
        &["--serdes-version", "minimum"],
    ] {
        assert!(!save(options).contains("days old"), "{options:?}");
    }
}

/// Nothing freezes a format without golden bytes, so it is neither checked nor released, even if
/// other formats of the type have some.
#[test]
fn versions_refuse_a_format_without_golden_bytes() {
    let trainer = Crate::new();
    let added = trainer.run(&["add", "snapshots", "--formats", "Checkpoint", "--summary", "x"]);
    assert_eq!(status(&added), 0, "{added:?}");
    let before = (trainer.text("versions.toml"), trainer.text("versions.lock"));
    for arguments in [&["lock", "--check"][..], &["release"], &["golden", "--check"]] {
        let refused = trainer.run(arguments);
        assert_eq!(status(&refused), 1, "{arguments:?}");
        let said = format!("{}{}", shown(&refused), messages(&refused));
        assert!(said.contains("tests/golden/snapshots/Checkpoint/v4.bin"), "{arguments:?}: {said}");
        assert_eq!((trainer.text("versions.toml"), trainer.text("versions.lock")), before);
    }
    let missing = trainer.run(&["golden", "--check", "--json"]);
    assert_eq!(
        objects(&missing)[0]["missing"],
        serde_json::json!(["tests/golden/snapshots/Checkpoint/v4.bin"])
    );
    // The existing golden bytes can be frozen, with a message about the missing ones.
    assert!(messages(&trainer.run(&["lock"])).contains("Checkpoint/v4.bin"));
    fs::create_dir_all(trainer.path("tests/golden/snapshots/Checkpoint")).unwrap();
    fs::write(trainer.path("tests/golden/snapshots/Checkpoint/v4.bin"), [8, 4]).unwrap();
    assert_eq!(status(&trainer.run(&["golden", "--check"])), 0);
    assert_eq!(status(&trainer.run(&["release"])), 0);
    assert_eq!(status(&trainer.run(&["lock", "--check"])), 0);
}

#[test]
fn versions_refuse_a_crate_that_never_had_golden_bytes() {
    let trainer = Crate::new();
    fs::remove_dir_all(trainer.path("tests/golden")).unwrap();
    fs::remove_file(trainer.path("versions.lock")).unwrap();
    assert_eq!(status(&trainer.run(&["lock"])), 0);
    for arguments in [&["lock", "--check"][..], &["release"]] {
        let refused = trainer.run(arguments);
        assert_eq!(status(&refused), 1, "{arguments:?}");
        let said = format!("{}{}", shown(&refused), messages(&refused));
        assert!(said.contains("tests/golden/snapshots/Snapshot/v0.bin"), "{said}");
        assert!(!said.contains("v1.bin"), "a withdrawn number has none: {said}");
    }
}

#[test]
fn versions_add_refuses_a_slip_with_the_nearest_name() {
    let trainer = Crate::new();
    let before = trainer.text("versions.toml");
    for slip in ["Snapshoot", "snapshot", "Snapsht", "Snap_shot"] {
        let refused = trainer.run(&["add", "snapshots", "--formats", slip]);
        assert_eq!(status(&refused), 1, "{slip}");
        let said = messages(&refused);
        assert!(said.contains("nearly Snapshot") && said.contains("--new-names"), "{said}");
        assert_eq!(trainer.text("versions.toml"), before, "{slip}");
    }
    for other in [&["Checkpoint"][..], &["Snapshoot", "--new-names"], &["Snapshot,Shard"]] {
        let arguments = [&["add", "snapshots", "--dry-run", "--formats"][..], other].concat();
        assert_eq!(status(&trainer.run(&arguments)), 0, "{other:?}");
    }
    // An edit by hand is not checked; the check of the lock names the intended command.
    fs::write(trainer.path("versions.toml"), before + "\n[[line.entry]]\nnumber = 4\nintroduced = 2026-11-20\nsummary = \"x\"\nformats = [\"Snapshoot\"]\n").unwrap();
    let said = shown(&trainer.run(&["lock", "--check"]));
    assert!(said.contains("Snapshoot/v4.bin") && said.contains("Snapshot is another"), "{said}");
}

#[test]
fn versions_init_makes_a_first_file_and_overwrites_none() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        command().current_dir(&folder).arg("versions").args(arguments).output().unwrap()
    };
    let without = run(&["add", "snapshots", "--formats", "Snapshot"]);
    assert_eq!(status(&without), 2);
    assert!(messages(&without).contains("serdes versions init"), "{without:?}");
    let made = run(&["init", "--line", "snapshots", "--format", "Snapshot", "--json"]);
    assert_eq!(status(&made), 0, "{made:?}");
    let report = &objects(&made)[0];
    assert_eq!((&report["type"], &report["number"]), (&"Snapshots".into(), &0.into()));
    assert!(report["next"].as_array().unwrap().len() > 3);
    let listed = run(&["--directory", ".", "--json"]);
    assert_eq!(objects(&listed)[0]["current"], true, "{listed:?}");
    let again = run(&["init"]);
    assert_eq!(status(&again), 1, "{again:?}");
    assert_eq!(status(&run(&["init", "--introduced", "soon"])), 2);
    let odd = tempfile::tempdir().unwrap();
    let odd = odd.path().to_str().unwrap();
    assert_eq!(status(&run(&["init", "--directory", odd, "--line", "Snap Shots"])), 2);
    assert_eq!(fs::read_dir(odd).unwrap().count(), 0);
    // Golden bytes need tests to write them.
    let golden = run(&["golden"]);
    assert_eq!(status(&golden), 2);
    assert!(messages(&golden).contains("Cargo.toml"), "{golden:?}");
}
