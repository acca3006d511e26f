//! Output of `serdes plugin` and `serdes explain` about plug-ins besides their verdicts: the
//! behaviours of the suite, the interface of a library, and text for people.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::testkit::{objects, printed, serdes, status};

/// A shared library that exports one function.
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
fn what_a_device_says_of_itself_is_told_in_words() {
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
fn a_state_makes_the_trip_over_a_platform_that_asks_for_best_fit() {
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
