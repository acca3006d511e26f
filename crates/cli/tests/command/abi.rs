//! Tests of `serdes abi diff` as a gate: its answers and exit statuses.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

use crate::testkit::{command, root, status};

fn diff(arguments: &[&str]) -> Output {
    command().args(["abi", "diff"]).args(arguments).output().unwrap()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Writes the example of the version strategy, with all that a header can say about zero in its
/// fields, and with `more` keys.
fn example(folder: &Path, name: &str, more: &str, version: &str) -> String {
    let fields = [
        ("cannot_be_zero", "int32_t", 0, 4, r#","zero":"no-op""#),
        ("cannot_be_null", "void*", 8, 8, r#","zero":"no-op""#),
        ("can_be_zero", "int32_t", 16, 4, ""),
        ("can_be_null", "void*", 24, 8, ""),
        ("optional_zero_default", "int32_t", 32, 4, r#","zero":"meaningful""#),
        ("optional_null_default", "void*", 40, 8, r#","zero":"meaningful""#),
    ];
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, kind, offset, size, zero)| {
            format!(
                r#"{{"name":"{name}","kind":"{kind}","offset":{offset},"size":{size}{zero}{more}}}"#
            )
        })
        .collect();
    let [major, minor, patch] = version.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let text = format!(
        r#"{{"Example":{{"fields":[{}]}},"version":{{"SE_MAJOR":{major},"SE_MINOR":{minor},"SE_PATCH":{patch}}}}}"#,
        fields.join(",")
    );
    write(folder, name, &text)
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn breaking_deprecation_fails_a_gate_that_allows_minor() {
    let folder = tempfile::tempdir().unwrap();
    let old = example(folder.path(), "old.json", "", "1.0.0");
    let new = example(folder.path(), "new.json", r#","deprecated":true"#, "1.1.0");
    let found = diff(&[&old, &new, "--allow", "minor", "--json"]);
    assert_eq!(status(&found), 1);
    let object = object(&found);
    assert_eq!(object["required"], "major");
    let requires: Vec<&str> = object["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["requires"].as_str().unwrap())
        .collect();
    assert_eq!(requires, ["minor", "minor", "major", "major", "major", "major"]);
    assert_eq!(object["moved"], "minor");
    assert_eq!(object["version_step"], "too_small");
    assert_eq!(
        (&object["old_version"], &object["new_version"]),
        (&"1.0.0".into(), &"1.1.0".into())
    );
}

#[test]
fn a_word_that_zero_cannot_be_is_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"A":{"fields":[{"name":"x","kind":"int","offset":0,"size":4,"zero":"noop"}]}}"#;
    let odd = write(folder.path(), "odd.json", text);
    let found = diff(&[&odd, &odd, "--json"]);
    assert_eq!(status(&found), 2);
    assert!(object(&found)["error"].as_str().unwrap().contains("no-op"), "{found:?}");
}

#[test]
fn the_version_is_a_gate_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let old = example(folder.path(), "old.json", "", "5.0.0");
    for (version, step, gate) in [
        ("5.0.0", "as_required", 0),
        ("6.0.0", "as_required", 0),
        ("6.3.7", "lower_numbers_kept", 1),
        ("4.9.0", "backwards", 1),
    ] {
        let new = example(folder.path(), "new.json", "", version);
        let found = diff(&[&old, &new, "--json"]);
        assert_eq!(status(&found), 0, "{version}");
        assert_eq!(object(&found)["version_step"], step, "{version}");
        assert_eq!(status(&diff(&[&old, &new, "--require-moved"])), gate, "{version}");
    }
    // All published layouts call themselves 0.0.1.
    let found = diff(&["tensorflow-2.5", "tensorflow-2.8", "--require-moved", "--json"]);
    assert_eq!(status(&found), 1);
    assert_eq!(
        (&object(&found)["moved"], &object(&found)["required"]),
        (&"none".into(), &"major".into())
    );
    assert_eq!(status(&diff(&["tensorflow-2.5", "tensorflow-2.8"])), 0);
    // Without a version the answer is unknown.
    let silent = write(folder.path(), "silent.json", r#"{"A":{"fields":[]}}"#);
    let found = diff(&[&silent, &silent, "--require-moved"]);
    assert_eq!(status(&found), 2);
    assert!(String::from_utf8_lossy(&found.stderr).contains("version"), "{found:?}");
}

#[test]
fn help_says_every_key_of_a_layout() {
    let help = diff(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    for key in [
        "struct_size",
        "alignof",
        "name",
        "kind",
        "offset",
        "size",
        "signature",
        "zero",
        "no-op",
        "meaningful",
        "required",
        "deprecated",
        "replaced_by",
        "same_as",
        "values",
        "version",
        "tensorflow-2.14",
        "--require-moved",
    ] {
        assert!(help.contains(key), "{key}: {help}");
    }
}

#[test]
fn c_headers_are_compared_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let header = |minor: u32, more: &str| {
        format!(
            "#define SE_MAJOR 1\n#define SE_MINOR {minor}\n#define SE_PATCH 0\ntypedef struct Toy {{\n  size_t struct_size;\n  void* ext;  // NULL is no-op.\n{more}}} Toy;\n"
        )
    };
    let old = write(folder.path(), "old.h", &header(0, ""));
    let new = write(folder.path(), "new.h", &header(1, "  int count;  // 0 is no-op.\n"));
    let found = diff(&[&old, &new, "--allow", "minor", "--require-moved", "--json"]);
    assert_eq!(status(&found), 0, "{found:?}");
    let object = object(&found);
    assert_eq!((&object["required"], &object["moved"]), (&"minor".into(), &"minor".into()));
    assert_eq!(object["changes"][0]["field"], "count");
    // This project's own header, in its default layout.
    let root = root();
    let own = root.join("include/serdes_stream_executor.h");
    let found = diff(&["tensorflow-2.14", own.to_str().unwrap(), "--allow", "minor"]);
    assert_eq!(status(&found), 0, "{found:?}");
    let broken = write(folder.path(), "broken.h", "struct A {\n  int bits : 3;\n};\n");
    let found = diff(&[&old, &broken]);
    assert_eq!(status(&found), 2);
    assert!(String::from_utf8_lossy(&found.stderr).contains("broken.h:2"), "{found:?}");
}

#[test]
fn abi_diff_lets_an_announced_deprecation_pass() {
    let folder = tempfile::tempdir().unwrap();
    let header = |minor: u32, comment: &str, more: &str| {
        format!(
            "#define SE_MAJOR 5\n#define SE_MINOR {minor}\n#define SE_PATCH 0\ntypedef struct Device {{\n  size_t struct_size;\n  void* ext;\n  int32_t ordinal;\n\n  const char* name;{comment}\n  void* device_handle;\n{more}}} Device;\n"
        )
    };
    let old = write(folder.path(), "old.h", &header(0, "", ""));
    let better = "  const char* better_name;  // Replaces `name`.\n";
    for comment in ["  // Deprecating soon. Use `better_name`.", "  // Deprecating soon."] {
        let new = write(folder.path(), "new.h", &header(1, comment, better));
        let found = diff(&[&old, &new, "--allow", "minor", "--require-moved", "--json"]);
        assert_eq!(status(&found), 0, "{found:?}");
        let change = &object(&found)["changes"][0];
        assert_eq!(
            (&change["change"], &change["deprecation"], &change["replaced_by"]),
            (&"deprecated".into(), &"announced".into(), &"better_name".into())
        );
    }
    let text =
        diff(&[&old, &write(folder.path(), "new.h", &header(1, "  // Deprecating soon.", ""))]);
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("Device.name will be deprecated"), "{text}");
    let slip = header(1, "  // Deprecating soon. Use `beter_name`.", better);
    let found = diff(&[&old, &write(folder.path(), "new.h", &slip), "--json"]);
    assert_eq!(status(&found), 2, "{found:?}");
    assert!(object(&found)["error"].as_str().unwrap().contains("`beter_name`"), "{found:?}");
}

#[test]
fn abi_diff_of_our_header_and_its_layout_is_none() {
    let own = root().join("include/serdes_stream_executor.h");
    let own = own.to_str().unwrap();
    for (layout, number) in [("tensorflow-2.14", ""), ("rfc-257", "#SERDES_SE_LAYOUT=257")] {
        let own = format!("{own}{number}");
        for (old, new) in [(layout, own.as_str()), (&own, layout)] {
            let found = diff(&[old, new, "--json"]);
            assert_eq!(status(&found), 0, "{found:?}");
            let object = object(&found);
            assert_eq!(
                (&object["required"], &object["changes"]),
                (&"none".into(), &serde_json::json!([]))
            );
        }
    }
}
