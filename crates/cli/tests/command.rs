//! The contract of the command: exit statuses, objects, and that a failure leaves what was there.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn serdes(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_serdes")).args(arguments).output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// The objects that a command printed.
fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn tiny() -> PathBuf {
    root().join("tests/data/safetensors/tiny.safetensors")
}

#[test]
fn the_trip_of_the_readme_comes_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (state, out) = (folder.path().join("state.sds"), folder.path().join("out.safetensors"));
    let save = serdes(&["save", "--from", text(&tiny()), "-o", text(&state), "--json"]);
    assert_eq!(status(&save), 0, "{save:?}");
    let report = &objects(&save)[0];
    for key in [
        "tensors",
        "bytes",
        "seconds",
        "sync_seconds",
        "total_seconds",
        "bytes_per_second",
        "serdes_version",
        "plugin",
        "verified",
    ] {
        assert!(!report[key].is_null(), "{key} in {report}");
    }
    let check = serdes(&["check", text(&state), "--verify-data", "--json"]);
    assert_eq!(status(&check), 0, "{check:?}");
    assert_eq!(objects(&check)[0]["verdict"], "acceptable");
    assert_eq!(objects(&check)[0]["kind"], "device_state");
    let restore = serdes(&["restore", text(&state), "--to", text(&out)]);
    assert_eq!(status(&restore), 0, "{restore:?}");
    assert_eq!(fs::read(tiny()).unwrap(), fs::read(&out).unwrap());
    let inspect = serdes(&["inspect", text(&state), "--json"]);
    assert_eq!(status(&inspect), 0, "{inspect:?}");
    let tensors = objects(&inspect)[0]["tensors"].as_array().unwrap().len() as u64;
    assert_eq!(Some(tensors), report["tensors"].as_u64());
    let diff = serdes(&["diff", text(&state), text(&out), "--json"]);
    assert_eq!(status(&diff), 0, "{diff:?}");
    assert!(objects(&diff).iter().all(|found| found["result"] == "equal"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
}

#[test]
fn a_part_is_restored_by_its_names_and_a_difference_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (state, part) = (folder.path().join("state.sds"), folder.path().join("part.sds"));
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny()), "-o", text(&state)])), 0);
    let inspect = serdes(&["inspect", text(&state), "--json"]);
    let name = objects(&inspect)[0]["tensors"][0]["name"].as_str().unwrap().to_owned();
    let only = serdes(&["restore", text(&state), "--only", &name, "--to", text(&part), "--json"]);
    assert_eq!(status(&only), 0, "{only:?}");
    assert_eq!(objects(&only)[0]["tensors"], 1);
    let diff = serdes(&["diff", text(&state), text(&part), "--json"]);
    assert_eq!(status(&diff), 1, "{diff:?}");
    assert!(objects(&diff).iter().any(|found| found["result"] == "only_in_a"));
    let none = serdes(&["restore", text(&state), "--only", "no such tensor *"]);
    assert_eq!(status(&none), 2, "{none:?}");
}

#[test]
fn a_failed_save_leaves_the_old_state() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.sds");
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny()), "-o", text(&state)])), 0);
    let old = fs::read(&state).unwrap();
    let damaged = folder.path().join("damaged.safetensors");
    let whole = fs::read(tiny()).unwrap();
    fs::write(&damaged, &whole[..whole.len() - 1]).unwrap();
    for arguments in [
        vec!["--from", text(&damaged)],
        vec!["--from", "absent.safetensors"],
        vec!["--from", text(&tiny()), "--plugin", "host:devices=1,memory=1000"],
        vec!["--from", text(&tiny()), "--device", "5"],
        vec!["--from", text(&tiny()), "--plugin", text(&damaged)],
        vec!["--from", text(&tiny()), "--serdes-version", "7"],
        vec!["--from", text(&tiny()), "--from", text(&tiny())],
    ] {
        let mut all = vec!["save", "-o", text(&state)];
        all.extend(&arguments);
        let output = serdes(&all);
        assert_eq!(status(&output), 2, "{arguments:?}: {output:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.starts_with("error: "), "{arguments:?}: {message}");
        assert_eq!(fs::read(&state).unwrap(), old, "{arguments:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{arguments:?}");
    }
}

#[test]
fn a_state_of_the_future_is_too_new_and_a_damaged_one_is_corrupt() {
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

    let mut child = Command::new(env!("CARGO_BIN_EXE_serdes"))
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

#[test]
fn plug_ins_and_layouts_are_answered_with_a_status() {
    let check = serdes(&["plugin", "check", "host:devices=2", "--json"]);
    assert_eq!(status(&check), 0, "{check:?}");
    let report = &objects(&check)[0];
    assert_eq!((&report["accepted"], &report["devices"]), (&true.into(), &2.into()));
    assert_eq!(report["layout"], "tensorflow-2.14");
    assert_eq!(status(&serdes(&["plugin", "check", text(&tiny())])), 2);
    assert_eq!(status(&serdes(&["plugin", "check", "host:devices=none"])), 2);
    let layouts = root().join("crates/abi/layouts.json");
    let section = |name: &str| format!("{}#{name}", layouts.display());
    let (old, new) = (section("history/2.6.5"), section("history/2.8.4"));
    let diff = serdes(&["abi", "diff", &old, &new, "--json"]);
    assert_eq!((status(&diff), &objects(&diff)[0]["required"]), (0, &"major".into()));
    assert_eq!(status(&serdes(&["abi", "diff", &old, &new, "--allow", "minor"])), 1);
    assert_eq!(status(&serdes(&["abi", "diff", &old, &old, "--allow", "patch"])), 0);
}

#[test]
fn rules_are_explained_and_bad_usage_is_told() {
    for rule in objects(&serdes(&["explain", "--json"])) {
        let id = rule["rule"].as_str().unwrap();
        assert_eq!(status(&serdes(&["explain", id])), 0, "{id}");
    }
    for arguments in [&["explain", "no_such_rule"][..], &["save"], &["no-such-command"], &[]] {
        assert_eq!(status(&serdes(arguments)), 2, "{arguments:?}");
    }
    for arguments in [
        &["inspect", "absent", "--json"][..],
        &["save", "--json"],
        &["save", "--from", "a", "-o", "b", "--serdes-version", "-1", "--json"],
    ] {
        let error = serdes(arguments);
        assert_eq!(status(&error), 2, "{arguments:?}");
        assert!(objects(&error)[0]["error"].is_string(), "{arguments:?}");
    }
    let absent = &objects(&serdes(&["check", "absent", "--json"]))[0]["reasons"][0];
    assert_ne!(absent["remedy"], "");
    assert_eq!(status(&serdes(&["--version"])), 0);
}

/// A graph of one node of a deprecated operation, made by `producer`.
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
    // For people: a line an artifact, and a table at the end.
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
fn what_is_warned_about_is_a_reason_if_the_caller_is_strict() {
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
    // As another kind, and as one that does not exist.
    assert_eq!(status(&serdes(&["check", text(&path), "--kind", "tensor_bundle"])), 2);
    assert_eq!(status(&serdes(&["check", text(&path), "--kind", "nonsense"])), 2);
    // A list of the caller's own.
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
fn a_checkpoint_is_checked_by_its_prefix_its_index_and_every_byte_of_it() {
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
    // A model, by its tags, and without its message.
    let model = root().join("tests/data/tensorflow/sm/tf1_two");
    assert_eq!(status(&serdes(&["check", text(&model), "--tags", "serve"])), 0);
    let found = serdes(&["check", text(&model), "--tags", "nothing", "--json"]);
    assert_eq!(
        (status(&found), &objects(&found)[0]["reasons"][0]["rule"]),
        (2, &"not_found".into())
    );
    // No tags at all are asked for by an empty list.
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

/// A checkpoint of one tensor whose data is a hole: long to read, and no room on the disk.
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
    let mut table = serdes::artifact::table::TableWriter::new(
        fs::File::create(prefix.with_extension("index")).unwrap(),
        serdes::artifact::table::TableOptions::default(),
    );
    table.add(b"", &[0x08, 1, 0x1a, 2, 0x08, 1]).unwrap();
    table.add(b"hole", &entry).unwrap();
    table.finish().unwrap();
    let data = fs::File::create(prefix.with_extension("data-00000-of-00001")).unwrap();
    data.set_len(size).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_check_of_data_is_stopped_by_ctrl_c_and_says_that_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("ckpt");
    checkpoint_of_a_hole(&prefix, 1 << 40);
    let child = Command::new(env!("CARGO_BIN_EXE_serdes"))
        .args(["check", text(&prefix), "--verify-data", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once it listens for SIGINT, and not before.
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

/// The stub plug-in of the library's tests in a folder of its own, with these habits.
#[cfg(target_os = "linux")]
fn stub(habits: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libstub.so");
    let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args(["-std=c11", "-shared", "-fPIC", "-I"])
        .arg(root().join("include"))
        .arg(root().join("tests/plugins/stub_plugin.c"))
        .arg("-o")
        .arg(&library)
        .status()
        .unwrap();
    assert!(compiled.success());
    fs::write(folder.path().join("libstub.so.habits"), format!("name=STUB\n{habits}\n")).unwrap();
    (folder, library)
}

/// Programs read standard output line by line as objects.
#[test]
#[cfg(target_os = "linux")]
fn what_a_plugin_writes_to_standard_output_is_no_result() {
    let (folder, library) = stub("say=SE_InitPlugin\nsay=memcpy_htod\nsay=memcpy_dtoh");
    for process in [&[][..], &["--in-process"]] {
        for kind in ["check", "verify"] {
            let arguments = [&["plugin", kind, text(&library), "--json"], process].concat();
            let output = serdes(&arguments);
            assert_eq!(status(&output), 0, "{output:?}");
            assert!(objects(&output).iter().all(Value::is_object));
            assert!(String::from_utf8_lossy(&output.stderr).contains("the plug-in speaks"));
        }
    }
    let state = folder.path().join("state.sds");
    let from = tiny();
    let arguments = ["save", "--from", text(&from), "-o", text(&state), "--json", "--plugin"];
    let save = serdes(&[&arguments[..], &[text(&library)]].concat());
    assert_eq!(status(&save), 0, "{save:?}");
    assert_eq!(objects(&save).len(), 1);
}

/// `exit(0)` in a plug-in is no "accepted".
#[test]
#[cfg(target_os = "linux")]
fn a_plugin_that_ends_the_process_is_refused() {
    for (habit, part) in [
        ("exit=SE_InitPlugin", "exit status 0"),
        ("crash=SE_InitPlugin", "SIGABRT"),
        ("exit=destroy_platform", "exit status 0"),
    ] {
        let (_folder, library) = stub(habit);
        let check = serdes(&["plugin", "check", text(&library), "--json"]);
        assert_eq!(status(&check), 1, "{habit}: {check:?}");
        let object = &objects(&check)[0];
        assert_eq!(object["accepted"], false, "{habit}");
        assert!(object["reasons"][0].as_str().unwrap().contains(part), "{habit}: {object}");
        let verify = serdes(&["plugin", "verify", text(&library), "--json"]);
        assert_eq!(status(&verify), 1, "{habit}: {verify:?}");
        let last = objects(&verify).pop().unwrap();
        let behaviour = if habit.contains("destroy") { "unload" } else { "registration" };
        assert_eq!((&last["behaviour"], &last["result"]), (&behaviour.into(), &"fail".into()));
        assert!(last["detail"].as_str().unwrap().contains(part), "{habit}: {last}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_suite_goes_on_behind_a_behaviour_that_crashes() {
    let sound = stub("");
    let names = |output: &Output| -> Vec<Value> {
        objects(output).iter().map(|object| object["behaviour"].clone()).collect()
    };
    let expected = names(&serdes(&["plugin", "verify", text(&sound.1), "--json"]));
    assert!(expected.len() > 50);
    let (_folder, library) = stub("crash=memset32\nexit=sync_memcpy_dtod");
    let verify = serdes(&["plugin", "verify", text(&library), "--json"]);
    assert_eq!(status(&verify), 1, "{verify:?}");
    assert_eq!(names(&verify), expected);
    for object in objects(&verify) {
        let part = match object["behaviour"].as_str().unwrap() {
            "memset32" => "SIGABRT",
            "sync_memcpy_dtod" => "exit status 0",
            _ => continue,
        };
        assert_eq!(object["result"], "fail", "{object}");
        assert!(object["detail"].as_str().unwrap().contains(part), "{object}");
    }
    let people = serdes(&["plugin", "verify", text(&library)]);
    assert_eq!(status(&people), 1);
    let failed = format!("\n{} passed, ", expected.len());
    let shown = String::from_utf8_lossy(&people.stdout).into_owned();
    assert!(shown.contains(" failed, ") && !shown.contains(&failed), "{shown}");
}

/// While an initialiser hangs, the dynamic loader's lock is held: whoever needs it to wait with a limit waits without one.
#[test]
#[cfg(target_os = "linux")]
fn a_library_whose_initialiser_hangs_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libhangs.so");
    let source = folder.path().join("hangs.c");
    fs::write(
        &source,
        "#include <unistd.h>\n\
         void SE_InitPlugin(void) {}\n\
         __attribute__((constructor)) static void hang(void) { for (;;) sleep(1000); }\n",
    )
    .unwrap();
    let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args(["-std=c11", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    for _ in 0..3 {
        let check = serdes(&["plugin", "check", text(&library), "--json", "--time-limit", "1"]);
        assert_eq!(status(&check), 2, "{check:?}");
        let error = objects(&check)[0]["error"].as_str().unwrap().to_owned();
        assert!(error.contains("dlopen did not return"), "{error}");
    }
}

/// A state of one tensor of this name, made by way of a safetensors file.
fn state_of(folder: &Path, name: &str) -> PathBuf {
    let header =
        serde_json::json!({ name: { "dtype": "U8", "shape": [2], "data_offsets": [0, 2] } });
    let header = header.to_string();
    let (source, state) = (folder.join("source.safetensors"), folder.join("state.sds"));
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), b"ab"].concat();
    fs::write(&source, bytes).unwrap();
    let save = serdes(&["save", "--from", text(&source), "-o", text(&state)]);
    assert_eq!(status(&save), 0, "{save:?}");
    state
}

#[test]
fn names_out_of_a_file_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a\nb", "red\u{1b}[31m", "turned\u{202e}name", "", "bell\u{7}/x"] {
        let state = state_of(folder.path(), name);
        let source = state.with_file_name("source.safetensors");
        fs::write(&source, fs::read(tiny()).unwrap()).unwrap();
        for command in [&["inspect", text(&state)][..], &["diff", text(&state), text(&source)]] {
            let arguments = [&["--color", "always"], command].concat();
            let shown = String::from_utf8(serdes(&arguments).stdout).unwrap();
            for part in name.split('/').filter(|part| !part.is_empty()) {
                assert!(!shown.contains(part) || part == "x", "{part:?} in {shown:?}");
            }
            assert!(!shown.contains('\u{202e}') && !shown.contains('\u{7}'), "{shown:?}");
        }
        let found = objects(&serdes(&["inspect", text(&state), "--json"]));
        assert_eq!(found[0]["tensors"][0]["name"], name);
    }
}

#[test]
fn a_state_of_a_newer_build_is_an_answer_in_every_command() {
    let future = root().join("tests/golden/device_state/future.sds");
    let (future, tiny) = (text(&future), tiny());
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.sds");
    for command in [
        &["inspect", future][..],
        &["check", future],
        &["restore", future],
        &["restore", future, "--salvage"],
        &["restore", future, "--direct"],
        &["diff", future, text(&tiny)],
        &["save", "--from", future, "-o", text(&out)],
    ] {
        let output = serdes(&[command, &["--json"]].concat());
        assert_eq!(status(&output), 1, "{command:?}: {output:?}");
        assert_eq!(objects(&output).len(), 1, "{command:?}");
    }
}

#[test]
fn a_pattern_that_nothing_matches_is_no_success_of_a_salvage() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "a");
    let whole = fs::read(&state).unwrap();
    for bytes in [&whole[..], &whole[..whole.len() - 1]] {
        fs::write(&state, bytes).unwrap();
        let none = serdes(&["restore", text(&state), "--salvage", "--only", "z*", "--json"]);
        assert_eq!(status(&none), 2, "{none:?}");
        assert!(objects(&none)[0]["error"].as_str().unwrap().contains("z*"), "{none:?}");
        let some = serdes(&["restore", text(&state), "--salvage", "--only", "a", "--json"]);
        assert_eq!(status(&some), 0, "{some:?}");
        assert_eq!(objects(&some)[0]["tensors"], 1);
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_neither_waited_for_nor_replaced() {
    use std::os::unix::fs::FileTypeExt;

    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "a");
    for name in ["a.safetensors", "a.npy", "a.npz", "a.sds", "a"] {
        let pipe = folder.path().join(name);
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for command in [
            &["save", "--from", text(&pipe), "-o", text(&state)][..],
            &["save", "--from", text(&state), "-o", text(&pipe)],
            &["restore", text(&state), "--to", text(&pipe)],
            &["restore", text(&pipe)],
            &["restore", text(&pipe), "--salvage"],
            &["diff", text(&state), text(&pipe)],
        ] {
            let output = serdes(command);
            assert_eq!(status(&output), 2, "{command:?}: {output:?}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains("a pipe"), "{command:?}: {said}");
        }
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "{name}");
    }
}

#[test]
fn a_direct_save_writes_the_same_bytes_and_says_whether_it_was_one() {
    let (folder, tiny) = (tempfile::tempdir().unwrap(), tiny());
    let (plain, direct) = (folder.path().join("plain.sds"), folder.path().join("direct.sds"));
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny), "-o", text(&plain)])), 0);
    let save = ["save", "--from", text(&tiny), "-o", text(&direct), "--direct", "--json"];
    for command in [&save[..], &["restore", text(&direct), "--direct", "--json"]] {
        let output = serdes(command);
        assert_eq!(status(&output), 0, "{output:?}");
        let went = objects(&output)[0]["direct"].as_bool().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_ne!(went, said.contains("takes no direct I/O"), "{said}");
    }
    assert_eq!(fs::read(plain).unwrap(), fs::read(direct).unwrap());
}

#[test]
fn a_part_that_is_lost_is_named_and_costs_no_more_than_its_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let golden = root().join("tests/golden/device_state/v0");
    let (state, parts) = (folder.path().join("merged.sds"), folder.path().join("merged.sds.parts"));
    fs::copy(golden.join("merged.sds"), &state).unwrap();
    fs::create_dir(&parts).unwrap();
    let [first, second] =
        [0, 1].map(|number| format!("{}-00000{number}-of-000002.part", "01".repeat(16)));
    fs::copy(golden.join("merged.sds.parts").join(&first), parts.join(&first)).unwrap();
    let salvage = ["restore", text(&state), "--salvage", "--json"];
    // Missing; then of a newer build.
    for status_without in [2, 1] {
        let restore = serdes(&["restore", text(&state), "--json"]);
        assert_eq!(status(&restore), status_without, "{restore:?}");
        let salvaged = serdes(&salvage);
        assert_eq!(status(&salvaged), 1, "{salvaged:?}");
        let report = &objects(&salvaged)[0];
        assert_eq!(report["tensors"], 2);
        assert_eq!(report["lost"], serde_json::json!(["own-1", "w"]));
        assert_eq!(report["lost_parts"], serde_json::json!([second]));
        let future = root().join("tests/golden/device_state/future.sds");
        fs::copy(future, parts.join(&second)).unwrap();
    }
}
