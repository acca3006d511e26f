//! Tests of `serdes save`.

use std::fs;

use crate::testkit::{objects, serdes, status, text, tiny};

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
fn direct_save_writes_the_same_bytes_and_is_reported() {
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
