//! Tests of `serdes serve --state`: its path, what SIGHUP and a stop do, and how they fail.
use std::{fs, time::Duration};

use crate::{
    serving::{Serving, serve},
    testkit::{serdes, state_of, text, tiny},
};

#[test]
fn a_place_where_no_state_can_be_is_found_out_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.sds");
    fs::write(&damaged, "no state").unwrap();
    for (path, words) in [
        (folder.path().join("nowhere/x.sds"), "make it, or name a file"),
        (folder.path().to_path_buf(), "directory"),
        (damaged, "no device state"),
    ] {
        let output = serve(&["--state", text(&path)]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(output.stdout.is_empty());
    }
    let keep = serve(&["--keep", "2"]).output().unwrap();
    assert_eq!(keep.status.code(), Some(2));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_stop_whose_save_fails_ends_with_2_and_leaves_the_old_state() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let state = inner.join("x.sds");
    let server = Serving::start(&["--state", text(&state)]);
    fs::rename(&inner, folder.path().join("away")).unwrap();
    let (status, said) = server.stop();
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("tries again"), "{said}");

    fs::rename(folder.path().join("away"), &inner).unwrap();
    let (status, said) = Serving::start(&["--state", text(&state)]).stop();
    assert_eq!(status, Some(0), "{said}");
    let before = fs::read(&state).unwrap();
    let (status, said) = Serving::start(&["--state", text(&state), "--keep", "3"]).stop();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(fs::read(&state).unwrap(), before);
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
}

#[test]
fn a_hangup_without_a_state_says_what_is_missing() {
    let server = Serving::start(&[]);
    server.signal("-HUP");
    std::thread::sleep(Duration::from_millis(200));
    let (status, said) = server.stop();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("start the server with --state"), "{said}");
}

#[test]
fn sighup_keeps_earlier_states_and_writes_the_asked_version() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("x.sds");
    let server =
        Serving::start(&["--state", text(&state), "--keep", "2", "--serdes-version", "minimum"]);
    let is_lock = |entry: &fs::DirEntry| entry.file_name() == ".x.sds.lock";
    let count = || {
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|entry| !is_lock(entry.as_ref().unwrap()))
            .count()
    };
    for files in 1..=3 {
        server.signal("-HUP");
        while count() < files || !state.with_extension("sds").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let (status, said) = server.stop();
    assert_eq!(status, Some(0), "{said}");
    for name in ["x.sds", "x.sds.1", "x.sds.2"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    let refused = serve(&["--state", text(&state), "--serdes-version", "new"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn state_by_a_link_to_nothing_yet_has_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let (state, link) = (folder.path().join("two.sds"), folder.path().join("link.sds"));
    std::os::unix::fs::symlink("two.sds", &link).unwrap();
    for (one, other) in [(&state, &link), (&link, &state)] {
        let first = Serving::start(&["--state", text(one)]);
        let second = serve(&["--state", text(other)]).output().unwrap();
        let said = String::from_utf8(second.stderr).unwrap();
        assert_eq!(second.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("process {}", first.child.id())), "{said}");
        drop(first);
    }
}

#[test]
fn state_of_a_running_server_is_written_by_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (state, link, older) = (path("x.sds"), path("link.sds"), path("x.sds.1"));
    let source = state_of(folder.path(), "small");
    std::os::unix::fs::symlink("x.sds", &link).unwrap();
    let part = ["--part", "0/1", "--id", "one"];
    let save = |to: &str| serdes(&["save", "--from", text(&source), "-o", to]);
    let parts =
        serdes(&[&["save", "--from", text(&source), "-o", text(&state)][..], &part].concat());
    assert_eq!(parts.status.code(), Some(0), "{parts:?}");
    let server = Serving::start(&["--state", text(&state)]);
    server.signal("-HUP");
    while !state.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = fs::read(&state).unwrap();
    let address = format!("file://{}", text(&state));
    for to in [text(&state), text(&link), text(&older), &*address] {
        for output in [
            save(to),
            serdes(&["convert", text(&tiny()), to]),
            serdes(&["restore", text(&source), "--to", to]),
            serdes(&[&["save", "--from", text(&source), "-o", to][..], &part].concat()),
            serdes(&["merge", to, "--id", "one"]),
        ] {
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{to}: {said}");
            assert!(said.contains(&format!("process {}", server.child.id())), "{to}: {said}");
            assert!(said.contains("stop the server first"), "{to}: {said}");
        }
    }
    assert_eq!(fs::read(&state).unwrap(), before);
    // Another file in the directory can be written.
    assert_eq!(save(text(&path("y.sds"))).status.code(), Some(0));
    let (status, said) = server.stop();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(save(text(&link)).status.code(), Some(0));
}
