//! Tests of work that signals cancel, and of signals that do not cancel it.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    serving::Serving,
    testkit::{BINARY, command, hear_signals, serdes, status, stub_in, text, tiny},
};

/// Creates four hundred tensors, and a plug-in that takes 50 milliseconds for each.
fn long_work(folder: &Path) -> (PathBuf, PathBuf) {
    let library = stub_in(
        folder,
        "slow=memcpy_htod\nslow=sync_memcpy_htod\nslow=memcpy_dtoh\nslow=sync_memcpy_dtoh",
    );
    let source = folder.join("many.safetensors");
    let entries: Vec<String> = (0..400)
        .map(|n| {
            format!("\"t{n}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{n},{}]}}", n + 1)
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 400]];
    fs::write(&source, bytes.concat()).unwrap();
    (library, source)
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Returns the child processes of `process`.
fn children(process: u32) -> Vec<u32> {
    let list = format!("/proc/{process}/task/{process}/children");
    let list = fs::read_to_string(list).unwrap_or_default();
    list.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Starts a save in a shell after the command `before`, and waits until it writes.
fn saving(before: &str, folder: &Path) -> Child {
    hear_signals();
    let (library, source) = long_work(folder);
    let child = Command::new("sh")
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(BINARY)
        .args(["save", "--from", text(&source), "-o"])
        .arg(folder.join("a.sds"))
        .args(["--plugin", text(&library)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = || {
        let entries = fs::read_dir(folder).unwrap();
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".partial"))
    };
    while !begun() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn partials(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap();
    entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count()
}

#[test]
fn the_first_request_takes_back_what_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["-INT", "-TERM", "-HUP"] {
        let child = saving("", folder.path());
        send(signal, child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(status(&output), 2, "{signal}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cancelled"), "{output:?}");
        assert_eq!((partials(folder.path()), folder.path().join("a.sds").exists()), (0, false));
    }
}

#[test]
fn the_second_request_ends_the_process_and_its_worker_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    let child = saving("", folder.path());
    // No process can clean up.
    let workers = children(child.id());
    assert_eq!(workers.len(), 1);
    send("-STOP", workers[0]);
    send("-TERM", child.id());
    std::thread::sleep(Duration::from_millis(300));
    send("-TERM", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    assert_eq!(partials(folder.path()), 0);
    let gone = || !Path::new(&format!("/proc/{}", workers[0])).exists();
    for _ in 0..200 {
        if gone() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone());
}

#[test]
fn a_signal_to_the_whole_group_is_one_request() {
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let (library, source) = long_work(folder.path());
    let child = Command::new("timeout")
        .args(["--signal=TERM", "1", env!("CARGO_BIN_EXE_serdes")])
        .args(["save", "--from", text(&source), "-o"])
        .arg(folder.path().join("a.sds"))
        .args(["--plugin", text(&library)])
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), 124, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cancelled"), "{output:?}");
    assert_eq!(partials(folder.path()), 0);
}

#[test]
fn signals_that_were_ignored_stay_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let child = saving("trap '' HUP INT;", folder.path());
    let workers = children(child.id());
    for process in workers.into_iter().chain([child.id()]) {
        send("-HUP", process);
        send("-INT", process);
    }
    std::thread::sleep(Duration::from_millis(100));
    send("-TERM", child.id());
    let output = child.wait_with_output().unwrap();
    // Only the last signal took effect: otherwise it would have been the second one.
    assert_eq!(status(&output), 2, "{output:?}");
    let nohup = Command::new("sh")
        .args(["-c", "trap '' HUP; kill -HUP $$; exec \"$0\" versions"])
        .arg(BINARY)
        .output()
        .unwrap();
    assert_eq!(status(&nohup), 0);
}

/// Starts a server over this plug-in, in a shell after the command `before`; returns it with its
/// state.
fn serving(before: &str, folder: &Path, plugin: &str) -> (Serving, PathBuf) {
    let state = folder.join("x.sds");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$0\" \"$@\""), BINARY, "serve"]).args([
        "--plugin",
        plugin,
        "--state",
        text(&state),
    ]);
    (Serving::run(command), state)
}

#[test]
fn serve_hears_a_hangup_that_was_ignored_and_no_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let library = stub_in(folder.path(), "");
    for plugin in ["host", text(&library)] {
        let (server, state) = serving("trap '' HUP INT;", folder.path(), plugin);
        // If it took effect, this would be the first of two requests to stop.
        server.signal("-INT");
        server.signal("-HUP");
        let since = Instant::now();
        while !state.exists() {
            assert!(since.elapsed() < Duration::from_secs(60), "{plugin}: nothing was saved");
            std::thread::sleep(Duration::from_millis(5));
        }
        let (status, said) = server.stop();
        assert_eq!(status, Some(0), "{plugin}: {said}");
        fs::remove_file(&state).unwrap();
    }
}

/// Runs `arguments` with a plug-in that hangs in one of its functions; once it hangs, asks the
/// process to stop, and returns its output.
fn stopped_in_a_hang(folder: &Path, arguments: &[&str], function: &str, signal: &str) -> Value {
    let library = stub_in(folder, &format!("hang={function}\nsay={function}"));
    let mut child = command()
        .args(arguments)
        .args(["--json", "--plugin", text(&library)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Only the stub's own hang sleeps; no other call does.
    let sleeps = || {
        let workers = children(child.id());
        let call = workers.iter().flat_map(|worker| {
            let tasks =
                fs::read_dir(format!("/proc/{worker}/task")).into_iter().flatten().flatten();
            tasks.filter_map(|task| fs::read_to_string(task.path().join("wchan")).ok())
        });
        call.into_iter().any(|call| call.contains("nanosleep"))
    };
    let since = Instant::now();
    while !sleeps() && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let since = Instant::now();
    send(signal, child.id());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{function} {signal}: still there");
        std::thread::sleep(Duration::from_millis(20));
    };
    let output = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(2), "{function} {signal}: {output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("error: "), "{function} {signal}: {said}");
    let last = output.stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap();
    serde_json::from_slice(last).unwrap()
}

#[test]
fn the_first_request_ends_work_whose_plugin_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let (state, whole, back) =
        (place.join("a.sds"), place.join("whole.sds"), place.join("b.safetensors"));
    let made = serdes(&["save", "--from", text(&tiny()), "-o", text(&whole)]);
    assert_eq!(status(&made), 0, "{made:?}");
    let source = tiny();
    let save = ["save", "--from", text(&source), "-o", text(&state)];
    let restore = ["restore", text(&whole), "--to", text(&back)];
    for (arguments, function, signal) in [
        (&save[..], "SE_InitPlugin", "-TERM"),
        (&save[..], "create_device", "-INT"),
        (&save[..], "sync_memcpy_htod", "-TERM"),
        (&save[..], "sync_memcpy_dtoh", "-HUP"),
        (&restore[..], "sync_memcpy_htod", "-INT"),
        (&restore[..], "sync_memcpy_dtoh", "-TERM"),
    ] {
        fs::write(&state, "the old state").unwrap();
        fs::write(&back, "the old file").unwrap();
        let said = stopped_in_a_hang(place, arguments, function, signal);
        let error = said["error"].as_str().unwrap();
        assert!(error.contains("asked to stop and hung"), "{function} {signal}: {error}");
        assert!(error.contains("libstub.so"), "{error}");
        assert_eq!(fs::read(&state).unwrap(), b"the old state");
        assert_eq!(fs::read(&back).unwrap(), b"the old file");
        assert_eq!(partials(place), 0, "{function} {signal}");
    }
}

#[test]
fn a_limit_of_the_size_of_files_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.npy");
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (400000,), }\n";
    let head = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()];
    fs::write(&large, [head.concat(), vec![7; 400_000]].concat()).unwrap();
    let state = folder.path().join("state.sds");
    let made =
        command().args(["save", "--from", text(&large), "-o", text(&state)]).output().unwrap();
    assert_eq!(status(&made), 0);
    for to in ["a.sds", "b.npz", "c.npy", "d.safetensors"] {
        let limited = Command::new("sh")
            .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
            .arg(BINARY)
            .args(["restore", text(&state), "--to"])
            .arg(folder.path().join(to))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&limited.stderr).into_owned();
        assert_eq!(limited.status.code(), Some(2), "{to}: {said}");
        assert!(said.contains("File too large") && said.lines().count() == 1, "{to}: {said}");
        assert_eq!((partials(folder.path()), folder.path().join(to).exists()), (0, false));
    }
}
