//! Tests of `serdes check`: verdicts on graphs, checkpoints, states and directories.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use crate::testkit::{command, objects, root, serdes, status, text};

#[test]
fn future_state_is_too_new_and_a_damaged_one_corrupt() {
    let future = root().join("tests/golden/device_state/future.sds");
    let check = serdes(&["check", text(&future), "--json"]);
    assert_eq!(status(&check), 1, "{check:?}");
    assert_eq!(objects(&check)[0]["reasons"][0]["rule"], "too_new");
    assert_eq!(status(&serdes(&["restore", text(&future)])), 1);
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.sds");
    for bytes in [&b""[..], b"not a state at all"] {
        fs::write(&damaged, bytes).unwrap();
        let check = serdes(&["check", text(&damaged), "--json"]);
        assert_eq!(status(&check), 2, "{check:?}");
        assert_eq!(objects(&check)[0]["kind"], "device_state");
        assert_eq!(objects(&check)[0]["reasons"][0]["rule"], "corrupt");
        assert_eq!(status(&serdes(&["restore", text(&damaged)])), 2);
    }
}

#[test]
fn graphs_are_judged_for_the_consumer_that_is_asked_about() {
    // versions { producer: 2474 min_consumer: 1400 }
    let graph = [0x22, 0x06, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.pb");
    fs::write(&path, graph).unwrap();
    assert_eq!(status(&serdes(&["check", text(&path)])), 0);
    let old = serdes(&["check", text(&path), "--tensorflow", "2.12.0", "--json"]);
    assert_eq!(status(&old), 1, "{old:?}");
    let reason = &objects(&old)[0]["reasons"][0];
    assert_eq!((&reason["rule"], &reason["found"]), (&"min_consumer".into(), &"1400".into()));
    let named = serdes(&["check", text(&path), "--consumer", "graph_def=2500:2475", "--json"]);
    assert_eq!(objects(&named)[0]["reasons"][0]["rule"], "producer_too_old");
    assert_eq!(status(&serdes(&["check", text(&path), "--tensorflow", "9.9"])), 2);
    assert_eq!(status(&serdes(&["check", text(&path), "absent", "--tensorflow", "2.12"])), 2);

    let mut child = command()
        .args(["check", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&graph).unwrap();
    let piped = child.wait_with_output().unwrap();
    assert_eq!(status(&piped), 0);
    assert_eq!(objects(&piped)[0]["path"], "-");
}

/// Returns a graph with one node of a deprecated operation, made by `producer`.
fn old_graph(producer: u8) -> Vec<u8> {
    [&[0x0a, 8, 0x0a, 1, b'a', 0x12, 3, b'O', b'l', b'd', 0x22, 2, 0x08][..], &[producer]].concat()
}

#[test]
fn a_directory_is_walked_and_the_worst_verdict_decides() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    fs::write(folder.path().join("good.pb"), [0x22, 2, 0x08, 7]).unwrap();
    fs::write(folder.path().join("notes.txt"), "nothing").unwrap();
    let verdicts = |path: &Path| {
        let found = serdes(&["check", text(path), "--json"]);
        // The last object counts the others.
        let objects = objects(&found);
        let verdicts = objects.iter().filter(|object| object["summary"].is_null());
        let verdicts: Vec<_> =
            verdicts.map(|object| object["verdict"].as_str().unwrap().to_owned()).collect();
        (status(&found), verdicts)
    };
    assert_eq!(verdicts(folder.path()), (0, vec!["acceptable".to_owned()]));
    fs::write(below.join("old.pb"), old_graph(8)).unwrap();
    assert_eq!(verdicts(folder.path()).0, 1);
    fs::write(below.join("broken.pb"), [0x07]).unwrap();
    let (status_of_all, all) = verdicts(folder.path());
    assert_eq!(
        (status_of_all, all),
        (2, vec!["unreadable".into(), "unacceptable".into(), "acceptable".into()])
    );
    // For people: one line per artifact, and a table at the end.
    let shown = serdes(&["check", text(folder.path())]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("old.pb") && !shown.contains("notes.txt"), "{shown}");
    let table: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(table.contains(&vec!["1", "graph_def", "unacceptable"]), "{shown}");
    // A pattern that the shell left alone.
    let pattern = below.join("*.pb");
    assert_eq!(verdicts(&pattern).1.len(), 2);
    assert_eq!(verdicts(&below.join("*.nothing")).0, 2);
    // Several paths, one object each, in their order.
    let good = folder.path().join("good.pb");
    let found = serdes(&["check", text(&below.join("old.pb")), text(&good), "--json"]);
    assert_eq!((status(&found), objects(&found).len()), (1, 2));
    assert_eq!(objects(&found)[1]["path"], text(&good));
    let empty = tempfile::tempdir().unwrap();
    let found = serdes(&["check", text(empty.path()), "--json"]);
    assert_eq!(
        (status(&found), &objects(&found)[0]["reasons"][0]["rule"]),
        (2, &"not_found".into())
    );
}

#[test]
fn warnings_are_reasons_under_strict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.pb");
    fs::write(&path, old_graph(7)).unwrap();
    let found = serdes(&["check", text(&path), "--json"]);
    assert_eq!(
        (status(&found), &objects(&found)[0]["warnings"][0]["rule"]),
        (0, &"deprecated_op".into())
    );
    let strict = serdes(&["check", text(&path), "--strict", "--json"]);
    assert_eq!(
        (status(&strict), &objects(&strict)[0]["reasons"][0]["rule"]),
        (1, &"deprecated_op".into())
    );
    assert_eq!(objects(&strict)[0]["reasons"][0]["where"], "a");
    // As another kind, and as a kind that does not exist.
    assert_eq!(status(&serdes(&["check", text(&path), "--kind", "tensor_bundle"])), 2);
    assert_eq!(status(&serdes(&["check", text(&path), "--kind", "nonsense"])), 2);
    // A list of operations of the caller.
    let list = folder.path().join("list.json");
    fs::write(&list, r#"{"deprecated": [{"name": "Old", "version": 5, "replacement": "New"}]}"#)
        .unwrap();
    let found = serdes(&["check", text(&path), "--deprecated", text(&list), "--json"]);
    assert_eq!(
        (status(&found), &objects(&found)[0]["reasons"][0]["rule"]),
        (1, &"deprecated_op".into())
    );
}

#[test]
fn checkpoint_is_checked_by_prefix_index_and_every_byte() {
    let data = root().join("tests/data/tensorflow/ckpt");
    let base = data.join("base/ckpt");
    for path in
        [base.clone(), base.with_extension("index"), base.with_extension("data-00000-of-00001")]
    {
        let found = serdes(&["check", text(&path), "--verify-data", "--json"]);
        assert_eq!(
            (status(&found), &objects(&found)[0]["kind"]),
            (0, &"tensor_bundle".into()),
            "{path:?}"
        );
    }
    let flipped = data.join("data_flip_zeta/ckpt");
    assert_eq!(status(&serdes(&["check", text(&flipped)])), 0);
    let found = serdes(&["check", text(&flipped), "--verify-data", "--json"]);
    assert_eq!((status(&found), &objects(&found)[0]["reasons"][0]["rule"]), (2, &"corrupt".into()));
    assert_eq!(status(&serdes(&["check", text(&data.join("hdr_minc_2/ckpt"))])), 1);
    // A model selected by its tags, and one without its message.
    let model = root().join("tests/data/tensorflow/sm/tf1_two");
    assert_eq!(status(&serdes(&["check", text(&model), "--tags", "serve"])), 0);
    let found = serdes(&["check", text(&model), "--tags", "nothing", "--json"]);
    assert_eq!(
        (status(&found), &objects(&found)[0]["reasons"][0]["rule"]),
        (2, &"not_found".into())
    );
    // An empty list asks for a meta graph without tags.
    let untagged = tempfile::tempdir().unwrap();
    fs::write(untagged.path().join("saved_model.pb"), [0x12, 2, 0x12, 0]).unwrap();
    assert_eq!(status(&serdes(&["check", text(untagged.path()), "--tags", ""])), 0);
    assert_eq!(status(&serdes(&["check", text(untagged.path()), "--tags", "serve"])), 2);
    assert_eq!(status(&serdes(&["check", text(&model), "--tags", ""])), 2);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("variables")).unwrap();
    fs::copy(base.with_extension("index"), folder.path().join("variables/variables.index"))
        .unwrap();
    let found = serdes(&["check", text(folder.path()), "--json"]);
    assert_eq!((status(&found), &objects(&found)[0]["kind"]), (2, &"saved_model".into()));
    assert_eq!(objects(&found)[0]["reasons"][0]["rule"], "not_found");
}

/// Creates a checkpoint of one tensor in a sparse data file, which takes long to read and no space
/// on the disk.
#[cfg(target_os = "linux")]
fn checkpoint_of_a_hole(prefix: &Path, size: u64) {
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    // dtype: DT_UINT8, shape { dim { size } }, size
    let dim = [vec![0x08], varint(size)].concat();
    let shape = [vec![0x12, dim.len() as u8], dim].concat();
    let entry = [vec![0x08, 4, 0x12, shape.len() as u8], shape, vec![0x28], varint(size)].concat();
    let mut table = serdes_checkpoints::table::TableWriter::new(
        fs::File::create(prefix.with_extension("index")).unwrap(),
        serdes_checkpoints::table::TableOptions::default(),
    );
    table.add(b"", &[0x08, 1, 0x1a, 2, 0x08, 1]).unwrap();
    table.add(b"hole", &entry).unwrap();
    table.finish().unwrap();
    let data = fs::File::create(prefix.with_extension("data-00000-of-00001")).unwrap();
    data.set_len(size).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn check_of_data_stopped_by_ctrl_c_has_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("ckpt");
    checkpoint_of_a_hole(&prefix, 1 << 40);
    let child = command()
        .args(["check", text(&prefix), "--verify-data", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Not before the process handles SIGINT.
    let process = format!("/proc/{}/status", child.id());
    let listens = || {
        let state = fs::read_to_string(&process).unwrap();
        let caught = state.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(caught, 16).unwrap() & 2 != 0
    };
    while !listens() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let found = child.wait_with_output().unwrap();
    assert_eq!(status(&found), 2, "{found:?}");
    assert!(objects(&found)[0]["error"].as_str().unwrap().contains("cancelled"), "{found:?}");
}

/// A bracket alone does not make a name a pattern.
#[test]
fn a_name_that_is_no_pattern_and_of_no_file_is_not_found() {
    for name in ["absent[1", "absent[1]", "absent-*"] {
        let output = serdes(&["check", name, "--json"]);
        assert_eq!(status(&output), 2, "{output:?}");
        assert_eq!(objects(&output)[0]["reasons"][0]["rule"], "not_found", "{name}");
    }
}
