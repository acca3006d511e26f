//! Tests of `serdes plugin`: verdicts on plug-ins, and that faulty ones do not harm the command.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::Value;

use crate::testkit::{objects, root, serdes, status, stub, text, tiny};

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

/// Programs read standard output line by line as objects.
#[test]
#[cfg(target_os = "linux")]
fn output_of_a_plugin_is_no_result() {
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

/// `exit(0)` in a plug-in does not count as "accepted".
#[test]
#[cfg(target_os = "linux")]
fn a_plugin_that_ends_the_process_is_refused() {
    for (switch, part) in [
        ("exit=SE_InitPlugin", "exit status 0"),
        ("crash=SE_InitPlugin", "SIGABRT"),
        ("exit=destroy_platform", "exit status 0"),
    ] {
        let (_folder, library) = stub(switch);
        let check = serdes(&["plugin", "check", text(&library), "--json"]);
        assert_eq!(status(&check), 1, "{switch}: {check:?}");
        let object = &objects(&check)[0];
        assert_eq!(object["accepted"], false, "{switch}");
        assert!(object["reasons"][0].as_str().unwrap().contains(part), "{switch}: {object}");
        let verify = serdes(&["plugin", "verify", text(&library), "--json"]);
        assert_eq!(status(&verify), 1, "{switch}: {verify:?}");
        let last = objects(&verify).pop().unwrap();
        let behaviour = if switch.contains("destroy") { "unload" } else { "registration" };
        assert_eq!((&last["behaviour"], &last["result"]), (&behaviour.into(), &"fail".into()));
        assert!(last["detail"].as_str().unwrap().contains(part), "{switch}: {last}");
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

/// While an initialiser hangs, the dynamic loader's lock is held: a wait with a time limit that
/// needs this lock would block.
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

#[test]
#[cfg(target_os = "linux")]
fn plugin_check_lists_functions_that_tensorflow_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("kernels.c"), folder.path().join("libkernels.so"));
    let code = "void TF_NewStatus(void);\nvoid TF_AssignVariable(void);\n\
                void SE_InitPlugin(void) { TF_NewStatus(); TF_AssignVariable(); }\n";
    fs::write(&source, code).unwrap();
    crate::testkit::compile(&source, &library);
    let inspect = |release: &str| {
        serdes(&["plugin", "inspect", text(&library), "--tensorflow", release, "--json"])
    };
    let takes = inspect("2.18.1");
    assert_eq!(status(&takes), 0, "{takes:?}");
    let expected = serde_json::json!({
        "release": "2.18", "layout": "tensorflow-2.14", "not_exported": [], "undecided": [],
    });
    assert_eq!(objects(&takes)[0]["tensorflow"], expected);
    let lacks = inspect("2.19");
    assert_eq!(status(&lacks), 1, "{lacks:?}");
    let missing = &objects(&lacks)[0]["tensorflow"]["not_exported"];
    assert_eq!(missing, &serde_json::json!(["TF_AssignVariable"]));
    let people = serdes(&["plugin", "inspect", text(&library), "--tensorflow", "latest"]);
    assert_eq!(status(&people), 1);
    let shown = String::from_utf8_lossy(&people.stdout).into_owned();
    assert!(shown.contains("TF_AssignVariable") && shown.contains("2.12 to 2.18 do"), "{shown}");
    let unknown = inspect("2.11");
    assert_eq!(status(&unknown), 2);
    assert!(objects(&unknown)[0]["error"].as_str().unwrap().contains("2.12, 2.13"));
    let plain = &objects(&serdes(&["plugin", "inspect", text(&library), "--json"]))[0];
    assert!(plain.get("tensorflow").is_none(), "{plain}");
}

#[test]
#[cfg(target_os = "linux")]
fn names_in_a_library_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("evil.c"), folder.path().join("libevil.so"));
    fs::write(&source, "void redXX31m(void) {}\n").unwrap();
    crate::testkit::compile(&source, &library);
    // No compiler writes such a name.
    let mut bytes = fs::read(&library).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - 8).filter(|&at| bytes[at..].starts_with(b"redXX31m")).collect();
    for at in places {
        bytes[at + 3..at + 5].copy_from_slice(b"\x1b[");
    }
    fs::write(&library, bytes).unwrap();
    let output = serdes(&["plugin", "inspect", text(&library), "--color", "always"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains(r"red\u{1b}[31m"), "{shown:?}");
}

#[test]
fn missing_library_comes_before_a_question_about_frameworks() {
    let error = serdes(&["plugin", "check", "absent.so", "--for", "all", "--json"]);
    assert_eq!(status(&error), 2);
    let error = objects(&error)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("No such file"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn plugin_check_of_a_folder_names_platforms_and_devices() {
    let (folder, library) = stub("");
    let path = text(folder.path()).to_owned();
    let check = serdes(&["plugin", "check", &path, "--json"]);
    assert_eq!(status(&check), 0, "{check:?}");
    let report = &objects(&check)[0];
    assert_eq!(report["platforms"].as_array().unwrap().len(), 1, "{report}");
    assert!(!report["devices"].as_array().unwrap().is_empty(), "{report}");
    // A platform that occurs twice and a file that is not a library do not affect the others.
    fs::copy(&library, folder.path().join("z_again.so")).unwrap();
    fs::write(folder.path().join("z_again.so.switches"), "name=STUB\n").unwrap();
    fs::write(folder.path().join("z_text.so"), "no library").unwrap();
    let check = serdes(&["plugin", "check", &path, "--json"]);
    assert_eq!(status(&check), 1, "{check:?}");
    let report = &objects(&check)[0];
    assert_eq!(report["platforms"].as_array().unwrap().len(), 1);
    let skipped = report["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    assert!(skipped[1]["path"].as_str().unwrap().ends_with("z_text.so"), "{skipped:?}");
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(status(&serdes(&["plugin", "check", text(empty.path())])), 1);
}
