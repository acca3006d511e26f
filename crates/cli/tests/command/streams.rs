//! Tests of standard input and output as files, and of which names are valid targets.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::testkit::{command, serdes, state_of, status, text, tiny};

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

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs the command in a folder, with these bytes in a pipe as standard input.
fn piped(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command()
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that reads nothing breaks the pipe.
    let writer = std::thread::spawn(move || pipe.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_state_and_its_tensors_go_through_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let (place, source) = (folder.path(), fs::read(tiny()).unwrap());
    let saved = piped(place, &["save", "--from", "-", "-o", "-", "--json"], &source);
    assert_eq!(status(&saved), 0, "{saved:?}");
    assert_eq!(object(&saved.stderr)["tensors"], 9);
    assert_eq!(object(&saved.stderr)["file_bytes"], saved.stdout.len());
    let back = piped(place, &["restore", "-", "--to", "-", "--json"], &saved.stdout);
    assert_eq!(status(&back), 0, "{back:?}");
    assert_eq!(back.stdout, source);
    assert_eq!(object(&back.stderr)["verified"], true);
    let state =
        piped(place, &["restore", "-", "--to", "-", "--to-kind", "device_state"], &saved.stdout);
    assert_eq!(state.stdout[..8], saved.stdout[..8]);
    for arguments in [
        &["diff", "-", text(&tiny()), "--json"][..],
        &["diff", text(&tiny()), "-"],
        &["restore", "-", "--salvage"],
        &["save", "--from", "-", "--kind", "device_state", "-o", "again.sds"],
    ] {
        let output = piped(place, arguments, &saved.stdout);
        assert_eq!(status(&output), 0, "{arguments:?}: {output:?}");
    }
    assert_eq!(names(place), ["again.sds"]);
    // A file as standard input is a stream as well, and is not copied.
    let output = command()
        .args(["restore", "-", "--json"])
        .stdin(fs::File::open(place.join("again.sds")).unwrap())
        .output()
        .unwrap();
    assert_eq!(object(&output.stdout)["tensors"], 9, "{output:?}");
}

#[test]
fn unsupported_stream_is_bad_usage_and_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (place, source) = (folder.path(), fs::read(tiny()).unwrap());
    let tiny = tiny();
    for arguments in [
        &["save", "--from", "-", "--from", "-", "-o", "a.sds"][..],
        &["save", "--from", text(&tiny), "--kind", "npy", "-o", "a.sds"],
        &["save", "--from", "-", "--kind", "graph_def", "-o", "a.sds"],
        &["save", "--from", "-", "--kind", "npy", "-o", "a.sds"],
        &["save", "--from", "-", "--kind", "tensor_bundle", "-o", "a.sds"],
        &["save", "--from", "-", "-o", "-", "--direct"],
        &["diff", "-", "-"],
        &["restore", "-"],
        &["restore", "-", "--direct"],
        &["restore", "-", "--to", "-", "--to-kind", "npz"],
        &["restore", "a.sds", "--to", "b.npz", "--to-kind", "npy"],
    ] {
        let output = piped(place, arguments, &source);
        assert_eq!(status(&output), 2, "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(names(place), [""; 0]);
    // An error is not written to the stream.
    let failed = piped(place, &["save", "--from", "absent.npz", "-o", "-", "--json"], b"");
    assert_eq!((status(&failed), failed.stdout.len()), (2, 0), "{failed:?}");
    // A file called `-` is given by another path.
    let saved = piped(place, &["save", "--from", text(&tiny), "-o", "./-"], b"");
    assert_eq!((status(&saved), names(place)), (0, vec!["-".to_owned()]), "{saved:?}");
    let restored = piped(place, &["restore", "./-"], b"");
    assert_eq!(status(&restored), 0, "{restored:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn paths_of_open_descriptors_are_streams_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let (log, out, state) = (place("err.log"), place("out"), place("state.sds"));
    let tiny = tiny();
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny), "-o", text(&state)])), 0);
    // As in a shell: standard output and standard error are files.
    let run = |arguments: &[&str]| {
        fs::write(&log, "precious\n").unwrap();
        let status = command()
            .args(arguments)
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::options().append(true).open(&log).unwrap())
            .status()
            .unwrap();
        (status.code(), fs::read(&out).unwrap(), fs::read_to_string(&log).unwrap())
    };
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let (status, bytes, log) = run(&["save", "--from", text(&tiny), "-o", name]);
        assert_eq!(status, Some(0), "{name}: {log}");
        assert_eq!(bytes, fs::read(&state).unwrap(), "{name}");
        assert!(log.starts_with("precious\nsaved 9 tensors"), "{name}: {log}");
        let (status, bytes, log) = run(&["restore", text(&state), "--to", name]);
        assert_eq!((status, bytes), (Some(0), fs::read(&tiny).unwrap()), "{name}: {log}");
    }
    for name in ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2", "/proc/thread-self/fd/2"] {
        for arguments in [
            &["save", "--from", text(&tiny), "-o", name][..],
            &["restore", text(&state), "--to", name],
        ] {
            let (status, _, log) = run(arguments);
            assert_eq!(status, Some(2), "{arguments:?}: {log}");
            assert!(log.starts_with("precious\nerror: "), "{arguments:?}: {log}");
        }
    }
    assert_eq!(names(folder.path()), ["err.log", "out", "state.sds"]);
}

#[test]
fn a_target_whose_ending_is_not_written_is_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.sds");
    assert_eq!(status(&serdes(&["save", "--from", text(&tiny()), "-o", text(&state)])), 0);
    fs::create_dir(folder.path().join("folder")).unwrap();
    for name in ["r.h5", "r.PT", "r.pth", "r.bin", "r.Json", "folder/", "folder", "new/"] {
        let to = format!("{}/{name}", folder.path().display());
        let output = serdes(&["restore", text(&state), "--to", &to, "--json"]);
        assert_eq!(status(&output), 2, "{name}: {output:?}");
        assert!(object(&output.stdout)["error"].is_string());
    }
    assert_eq!(names(folder.path()), ["folder", "state.sds"]);
    assert_eq!(names(&folder.path().join("folder")), [""; 0]);
    let to = folder.path().join("folder/ckpt-1");
    assert_eq!(status(&serdes(&["restore", text(&state), "--to", text(&to)])), 0);
}

/// A second reader of the stream would find no bytes, which are an acceptable graph.
#[test]
fn standard_input_is_read_once() {
    for paths in [["-", "-"], ["-", "/dev/stdin"]] {
        let output = serdes(&[&["check"][..], &paths].concat());
        assert_eq!(status(&output), 2, "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("read once"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_standard_input_is_no_empty_one() {
    let closed = |arguments: &str| {
        let script = format!("exec \"$0\" {arguments} <&-");
        Command::new("sh").args(["-c", &script]).arg(crate::testkit::BINARY).output().unwrap()
    };
    for arguments in ["check -", "inspect -", "save --from - -o never.sds", "restore -"] {
        let output = closed(arguments);
        assert_eq!(status(&output), 2, "{arguments}: {output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("standard input is closed"), "{arguments}: {error}");
    }
}
