//! Tests of the output of `serdes plugin` and `serdes explain` about plug-ins besides their
//! verdicts: the behaviours of the suite, the interface of a library, and text for people.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::testkit::{objects, printed, serdes, status};

/// Compiles a shared library that exports one function.
#[cfg(target_os = "linux")]
fn library(folder: &Path, function: &str) -> PathBuf {
    let (source, library) = (folder.join("library.c"), folder.join("library.so"));
    let text = format!("void *{function}(void);\nvoid *{function}(void) {{ return 0; }}\n");
    fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    library
}

#[test]
fn the_list_of_behaviours_is_what_verify_tries() {
    let listed = serdes(&["plugin", "verify", "--list", "--json"]);
    assert_eq!(status(&listed), 0);
    let names: Vec<Value> =
        objects(&listed).into_iter().map(|object| object["behaviour"].clone()).collect();
    let tried = serdes(&["plugin", "verify", "host", "--json"]);
    assert_eq!(status(&tried), 0, "{tried:?}");
    let tried: Vec<Value> =
        objects(&tried).into_iter().map(|object| object["behaviour"].clone()).collect();
    assert_eq!(names, tried);
    for object in objects(&listed) {
        assert!(object["demand"].as_str().unwrap().len() > 10, "{object}");
    }
}

#[test]
fn a_behaviour_is_explained_as_a_rule_is() {
    let explained = serdes(&["explain", "memcpy_dtoh"]);
    assert_eq!(status(&explained), 0, "{explained:?}");
    assert!(printed(&explained).contains("copies bytes to the host"), "{explained:?}");
    assert_eq!(status(&serdes(&["explain", "min_consumer"])), 0);
    assert_eq!(status(&serdes(&["explain", "memcpy"])), 2);
}

#[test]
fn description_of_a_device_is_printed() {
    let verified = serdes(&["plugin", "verify", "host"]);
    assert_eq!(status(&verified), 0);
    let text = printed(&verified);
    let line = text.lines().find(|line| line.contains("device_description")).unwrap();
    assert!(line.contains("PCI bus not told"), "{line}");
    assert!(!text.contains("Some(") && !text.contains("None"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_interface_of_a_library_is_told_without_loading_it() {
    let folder = tempfile::tempdir().unwrap();
    for (function, api) in [
        ("SE_InitPlugin", Value::from("stream_executor")),
        ("GetPjrtApi", Value::from("pjrt")),
        ("Something", Value::Null),
    ] {
        let library = library(folder.path(), function);
        let library = library.to_str().unwrap();
        let inspected = serdes(&["plugin", "inspect", library, "--json"]);
        assert_eq!(status(&inspected), 0);
        assert_eq!(objects(&inspected)[0]["api"], api, "{function}");
        if function == "GetPjrtApi" {
            let refused = serdes(&["plugin", "check", library, "--json"]);
            assert_eq!(status(&refused), 1);
            let reason = objects(&refused)[0]["reasons"][0].as_str().unwrap().to_owned();
            assert!(reason.contains("a table of functions"), "{reason}");
        }
    }
}

#[test]
fn state_round_trips_over_a_best_fit_platform() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Two arrays of bytes, in the form of safetensors.
    let header = r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[300],"data_offsets":[3,303]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..303).map(|index| index as u8));
    fs::write(path("in.safetensors"), file).unwrap();
    let plugin = ["--plugin", "host:allocator=bfc"];
    let saved = serdes(
        &[&["save", "--from", &path("in.safetensors"), "-o", &path("s.sds")], &plugin[..]].concat(),
    );
    assert_eq!(status(&saved), 0, "{saved:?}");
    let restored = serdes(
        &[&["restore", &path("s.sds"), "--to", &path("out.safetensors")], &plugin[..]].concat(),
    );
    assert_eq!(status(&restored), 0, "{restored:?}");
    let difference = serdes(&["diff", &path("in.safetensors"), &path("out.safetensors")]);
    assert_eq!(status(&difference), 0, "{difference:?}");
}

/// Returns the outcomes for the test plug-in with these fault switches, and the status.
#[cfg(target_os = "linux")]
fn verify(faults: &str, arguments: &[&str]) -> (i32, Vec<Value>) {
    let (_folder, library) = crate::testkit::stub(faults);
    let library = library.to_str().unwrap();
    let output = serdes(&[&["plugin", "verify", library, "--json"], arguments].concat());
    (status(&output), objects(&output))
}

#[test]
#[cfg(target_os = "linux")]
fn robust_failures_count_by_level_and_required_ones_always() {
    let outcome = |found: &[Value], name: &str| {
        found.iter().find(|one| one["behaviour"] == name).unwrap().clone()
    };
    let robust = "crash=create_stream_dependency";
    let only = ["--only", "stream_dependency_on_itself"];
    let (status, found) = verify(robust, &only);
    let failed = outcome(&found, "stream_dependency_on_itself");
    assert_eq!((&failed["result"], &failed["class"]), (&"fail".into(), &"robust".into()));
    assert_eq!((status, &failed["counts"], found.len()), (0, &false.into(), 1));
    assert_eq!(verify(robust, &[&only[..], &["--level", "robust"]].concat()).0, 1);
    let (status, found) = verify("crash=memset32", &["--only", "mem*"]);
    let failed = outcome(&found, "memset32");
    assert_eq!(
        (status, &failed["class"], &failed["counts"]),
        (1, &"required".into(), &true.into())
    );
    assert!(found.iter().all(|one| one["behaviour"].as_str().unwrap().starts_with("mem")));
}

#[test]
#[cfg(target_os = "linux")]
fn a_known_failure_may_fail_and_must_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("known.txt");
    let known = ["--only", "mem*", "--known-failures", list.to_str().unwrap()];
    fs::write(&list, "# ours\nmemset32 # ticket 7\n").unwrap();
    let (status_of_failure, found) = verify("crash=memset32", &known);
    let failed = found.iter().find(|one| one["behaviour"] == "memset32").unwrap();
    assert_eq!((status_of_failure, &failed["known"]), (0, &true.into()), "{failed}");
    // The behaviour passes, but the list says that it fails.
    assert_eq!(verify("", &known).0, 1);
    fs::write(&list, "memset23\n").unwrap();
    let (status, found) = verify("", &known);
    let error = found[0]["error"].as_str().unwrap();
    assert!(status == 2 && error.contains("line 1") && error.contains("memset32?"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn without_a_device_one_behaviour_is_skipped() {
    let (status, found) = verify("devices=0", &[]);
    let skipped: Vec<_> = found.iter().filter(|one| one["result"] == "skipped").collect();
    assert_eq!((status, skipped.len()), (0, 1), "{found:?}");
    assert_eq!(found.last().unwrap()["behaviour"], "device_count");
}

#[test]
fn results_go_into_files_by_their_forms() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let forms = ["text", "json", "junit", "markdown", "html"];
    let formats: Vec<String> =
        forms.iter().map(|form| format!("--format={form}={}", file(form))).collect();
    let mut arguments = vec!["plugin", "verify", "host", "--only", "memset"];
    arguments.extend(formats.iter().map(String::as_str));
    let output = serdes(&arguments);
    assert_eq!(status(&output), 0, "{output:?}");
    for form in forms {
        let text = fs::read_to_string(file(form)).unwrap();
        assert!(text.contains("memset"), "{form}: {text}");
    }
    let one = ["plugin", "verify", "host", "--only", "memset", "--format", "json", "-o"];
    let json = file("one.json");
    let output = serdes(&[&one[..], &[&json]].concat());
    assert_eq!((status(&output), output.stdout.len()), (0, 0), "{output:?}");
    let line = fs::read_to_string(json).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["behaviour"], "memset");
    // Without a format it is text, as in every report, and nothing else is printed.
    let lines = file("lines.txt");
    let output = serdes(&["plugin", "verify", "host", "--only", "memset", "-o", &lines]);
    assert_eq!((status(&output), output.stdout.len()), (0, 0), "{output:?}");
    assert!(fs::read_to_string(lines).unwrap().contains("memset"));
    for wrong in [&["--format", "xml"][..], &["--format", "json="]] {
        let output = serdes(&[&["plugin", "verify", "host"], wrong].concat());
        assert_eq!(status(&output), 2, "{wrong:?}");
    }
}
