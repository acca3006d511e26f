//! Tests of plug-ins that end or change the process while it works.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::testkit::{command, status, stub_in, text, tiny};

fn serdes(folder: &Path, arguments: &[&str]) -> Output {
    command().args(arguments).current_dir(folder).output().unwrap()
}

fn error(output: &Output) -> String {
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    object["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_plugin_that_ends_the_process_is_an_error_of_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let (place, tiny) = (folder.path(), tiny());
    let save = ["save", "--from", text(&tiny), "-o", "a.sds", "--json", "--plugin", "./libstub.so"];
    let restore =
        ["restore", "whole.sds", "--to", "b.safetensors", "--json", "--plugin", "./libstub.so"];
    stub_in(place, "");
    let whole = serdes(place, &["save", "--from", text(&tiny), "-o", "whole.sds"]);
    assert_eq!(status(&whole), 0, "{whole:?}");
    assert_eq!(status(&serdes(place, &save)), 0);
    let old = fs::read(place.join("a.sds")).unwrap();
    assert_eq!(status(&serdes(place, &restore)), 0);
    for (switch, part) in [
        ("exit=SE_InitPlugin", "exit status 0"),
        ("leave=SE_InitPlugin", "exit status 0"),
        ("crash=SE_InitPlugin", "SIGABRT"),
        ("exit=sync_memcpy_htod", "exit status 0"),
        ("leave=sync_memcpy_htod", "exit status 0"),
        ("crash=sync_memcpy_dtoh", "SIGABRT"),
    ] {
        stub_in(place, switch);
        for arguments in [&save[..], &restore[..]] {
            let output = serdes(place, arguments);
            assert_eq!(status(&output), 2, "{switch} {arguments:?}: {output:?}");
            let said = error(&output);
            assert!(said.contains("libstub.so") && said.contains(part), "{switch}: {said}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
        }
        assert_eq!(fs::read(place.join("a.sds")).unwrap(), old, "{switch}");
        assert_eq!(hidden(place), 0, "{switch}");
    }
    stub_in(place, "");
    assert_eq!(status(&serdes(place, &save)), 0);
    assert_eq!(status(&serdes(place, &restore)), 0);
    assert_eq!(hidden(place), 0);
}

/// Returns the number of files that are unfinished or hidden.
fn hidden(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count()
}

#[test]
fn process_that_a_plugin_starts_has_no_pipe_of_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let source = "#include <stdlib.h>\n\
        void SE_InitPlugin(void) {}\n\
        __attribute__((constructor)) static void begin(void) { system(\"ls -l /proc/self/fd >open\"); }\n";
    fs::write(place.join("plugin.c"), source).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled = Command::new(compiler)
        .args(["-shared", "-fPIC", "-Wno-unused-result", "-o", "plugin.so", "plugin.c"])
        .current_dir(place)
        .status();
    assert!(compiled.unwrap().success());
    let tiny = tiny();
    let arguments = ["save", "--from", text(&tiny), "-o", "a.sds", "--plugin", "./plugin.so"];
    serdes(place, &arguments);
    let open = fs::read_to_string(place.join("open")).unwrap();
    // The process inherits files that its parent left open.
    let own = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let own: Vec<_> = own.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
    let pipes = open.lines().filter_map(|line| {
        let (number, target) = line.split_once(" -> ")?;
        let number: u32 = number.rsplit(' ').next()?.parse().ok()?;
        let is_own = own.iter().any(|own| own == Path::new(target));
        (number > 2 && target.starts_with("pipe:") && !is_own).then_some(number)
    });
    assert_eq!(pipes.count(), 0, "{open}");
    assert!(open.contains("-> "), "{open}");
}

#[test]
fn a_plugin_that_ends_the_process_leaves_nothing_of_any_target() {
    let folder = tempfile::tempdir().unwrap();
    let (place, tiny) = (folder.path(), tiny());
    let whole = serdes(place, &["save", "--from", text(&tiny), "-o", "whole.sds"]);
    assert_eq!(status(&whole), 0, "{whole:?}");
    fs::create_dir(place.join("inner")).unwrap();
    std::os::unix::fs::symlink("inner/real.sds", place.join("link.sds")).unwrap();
    // This file belongs to a running saver: only leftovers of dead ones are removed.
    let alive = fs::File::create(place.join(".a.sds.0123456789abcdef.partial")).unwrap();
    alive.lock().unwrap();
    let long = format!("{}.sds", "x".repeat(250));
    let save = ["a.sds", "link.sds", &*long].map(|to| ["save", "--from", text(&tiny), "-o", to]);
    let part = ["save", "--from", text(&tiny), "-o", "b.sds", "--part", "0/2", "--id", "one"];
    let restore = ["b.safetensors", "b.npz", "checkpoint"];
    let restore = restore.map(|to| ["restore", "whole.sds", "--to", to, "--only", "dense_0/*"]);
    let all = save.iter().map(|words| &words[..]).chain([&part[..]]);
    for arguments in all.chain(restore.iter().map(|words| &words[..])) {
        for switch in ["exit=sync_memcpy_dtoh", "crash=sync_memcpy_dtoh"] {
            stub_in(place, switch);
            let output = serdes(place, &[arguments, &["--plugin", "./libstub.so"]].concat());
            assert_eq!(status(&output), 2, "{switch} {arguments:?}: {output:?}");
            let left = (hidden(place), hidden(&place.join("inner")));
            assert_eq!(left, (1, 0), "{switch} {arguments:?}");
        }
    }
    drop(alive);
}

#[test]
fn save_and_restore_compare_what_a_device_gives_back() {
    let folder = tempfile::tempdir().unwrap();
    let (place, tiny) = (folder.path(), tiny());
    let whole = serdes(place, &["save", "--from", text(&tiny), "-o", "whole.sds"]);
    assert_eq!(status(&whole), 0, "{whole:?}");
    // Copies leave out the second half.
    stub_in(place, "short=1");
    let save = ["save", "--from", text(&tiny), "-o", "a.safetensors"];
    let restore = ["restore", "whole.sds", "--to", "a.safetensors"];
    for (work, words) in [
        (&save[..], "others than those of the source"),
        (&restore[..], "fail the checksums of the state"),
    ] {
        fs::write(place.join("a.safetensors"), "what was there").unwrap();
        let output = serdes(place, &[work, &["--json", "--plugin", "./libstub.so"]].concat());
        assert_eq!(status(&output), 2, "{output:?}");
        let said = error(&output);
        assert!(said.contains("does not give back what was put into"), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(fs::read(place.join("a.safetensors")).unwrap(), b"what was there");
        assert_eq!(hidden(place), 0);
    }
}

#[test]
fn whole_state_stays_if_the_plugin_then_ends_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (place, tiny) = (folder.path(), tiny());
    for switch in ["exit=destroy_platform", "crash=destroy_platform"] {
        stub_in(place, switch);
        let arguments = ["save", "--from", text(&tiny), "-o", "a.sds", "--plugin", "./libstub.so"];
        let output = serdes(place, &arguments);
        assert_eq!(status(&output), 0, "{switch}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("saved 9 tensors"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_told = said.contains("warning: ") && said.contains("libstub.so");
        assert_eq!(is_told, switch.starts_with("crash"), "{switch}: {said}");
        assert_eq!(status(&serdes(place, &["check", "a.sds", "--verify-data"])), 0);
    }
}

#[test]
fn plugin_that_changes_the_process_leaves_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (place, tiny) = (folder.path(), tiny());
    stub_in(place, "");
    let save = ["save", "--from", "in.safetensors", "-o", "a.sds", "--plugin", "./libstub.so"];
    fs::copy(&tiny, place.join("in.safetensors")).unwrap();
    assert_eq!(status(&serdes(place, &save)), 0);
    let usual = fs::metadata(place.join("a.sds")).unwrap().permissions().mode();
    for function in ["SE_InitPlugin", "sync_memcpy_htod", "create_device"] {
        stub_in(place, &format!("unsettle={function}"));
        fs::remove_file(place.join("a.sds")).unwrap();
        let output = serdes(place, &save);
        assert_eq!(status(&output), 0, "{function}: {output:?}");
        let mode = fs::metadata(place.join("a.sds")).unwrap().permissions().mode();
        assert_eq!(mode, usual, "{function}");
        let restore = ["restore", "a.sds", "--to", "b.safetensors", "--plugin", "./libstub.so"];
        let output = serdes(place, &restore);
        assert_eq!(status(&output), 0, "{function}: {output:?}");
        assert_eq!(fs::read(place.join("b.safetensors")).unwrap(), fs::read(&tiny).unwrap());
        fs::remove_file(place.join("b.safetensors")).unwrap();
    }
}

#[test]
fn streams_reach_the_process_that_works_with_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let (place, tiny) = (folder.path(), tiny());
    stub_in(place, "say=memcpy_htod\nsay=sync_memcpy_htod");
    let output = command()
        .args(["save", "--from", "-", "-o", "-", "--plugin", "./libstub.so"])
        .current_dir(place)
        .stdin(fs::File::open(&tiny).unwrap())
        .output()
        .unwrap();
    assert_eq!(status(&output), 0, "{output:?}");
    fs::write(place.join("a.sds"), &output.stdout).unwrap();
    assert_eq!(status(&serdes(place, &["check", "a.sds", "--verify-data"])), 0);
    // Bad usage is reported by the process that was started.
    let bad = serdes(place, &["restore", "absent.sds", "--plugin", "./libstub.so", "--json"]);
    assert_eq!(status(&bad), 2, "{bad:?}");
    assert!(error(&bad).contains("absent.sds"), "{bad:?}");
}

#[test]
fn server_fails_if_its_plugin_ends_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    stub_in(place, "exit=create_device");
    let failed = serdes(place, &["serve", "--plugin", "./libstub.so", "--json"]);
    assert_eq!(status(&failed), 2, "{failed:?}");
    stub_in(place, "");
    for signal in ["-TERM", "-INT"] {
        let mut child = command()
            .args(["serve", "--plugin", "./libstub.so", "--state", "state.sds"])
            .current_dir(place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}
