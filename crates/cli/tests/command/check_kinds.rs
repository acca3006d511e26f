//! Tests of `serdes check` on files of many kinds, on directories, and on endless streams.

use std::{fs, io::Write, process::Stdio};

use serde_json::json;

use crate::testkit::{command, data, objects, objects_of, printed, serdes, status, text};

/// Creates a directory with a graph, an array, an ONNX model and notes.
fn mixed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("build")).unwrap();
    fs::write(folder.path().join("build/x.pb"), b"\x22\x03\x08\xaa\x13").unwrap();
    fs::write(folder.path().join("graph.pb"), b"\x22\x03\x08\xaa\x13").unwrap();
    for name in ["array.npy", "plain.onnx", "notes.md"] {
        fs::copy(data("kinds").join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn a_file_of_another_kind_is_unreadable_by_a_rule_of_its_own() {
    let output = serdes(&["check", text(&data("kinds/plain.onnx")), "--json"]);
    assert_eq!(status(&output), 2);
    let object = &objects(&output)[0];
    assert_eq!(object["kind"], "onnx");
    assert_eq!(object["verdict"], "unreadable");
    assert_eq!(object["reasons"][0]["rule"], "other_kind");
    for (name, kind) in [("f.mlirbc", "stablehlo"), ("f-0.10.2.jaxexport", "jax_export")] {
        let output = serdes(&["check", text(&data("kinds").join(name)), "--json"]);
        assert_eq!((status(&output), objects(&output)[0]["kind"].as_str()), (0, Some(kind)));
        let output = serdes(&["inspect", text(&data("kinds").join(name)), "--json"]);
        assert_eq!((status(&output), objects(&output)[0]["kind"].as_str()), (0, Some(kind)));
    }
    let output = serdes(&["check", text(&data("kinds/model.safetensors")), "--verify-data"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let output = serdes(&["inspect", text(&data("kinds/arrays.npz")), "--json"]);
    assert_eq!(objects(&output)[0]["tensors"].as_array().unwrap().len(), 2);
}

#[test]
fn a_walked_directory_ends_with_what_became_of_its_files() {
    let folder = mixed();
    let output = serdes(&["check", text(folder.path()), "--json"]);
    assert_eq!(status(&output), 0);
    let objects = objects(&output);
    assert_eq!(objects.len(), 4);
    let summary = &objects[3];
    let counts = ["checked", "acceptable", "unacceptable", "unreadable", "skipped"];
    assert_eq!(counts.map(|count| summary[count].as_u64().unwrap()), [3, 3, 0, 0, 2]);
    assert_eq!(summary["summary"], true);
    let skipped = ["notes.md", "plain.onnx"].map(|name| folder.path().join(name));
    assert_eq!(summary["skipped_paths"], json!(skipped));
    let output = serdes(&["check", text(folder.path())]);
    assert!(printed(&output).contains("2 files skipped (unsupported type)"), "{output:?}");
    // A file that is named has no summary; each directory has its own.
    let graph = folder.path().join("graph.pb");
    assert_eq!(objects_of(&["check", text(&graph), "--json"]).len(), 1);
    let twice = objects_of(&["check", text(folder.path()), text(folder.path()), "--json"]);
    assert_eq!(twice.iter().filter(|object| object["summary"] == true).count(), 2);
}

#[test]
fn unjudged_kinds_can_be_refused_or_left_out() {
    let folder = mixed();
    let check = |more: &[&str]| {
        let mut arguments = vec!["check", text(folder.path()), "--json"];
        arguments.extend(more);
        let output = serdes(&arguments);
        let summary = objects(&output).pop().unwrap();
        let numbers = ["checked", "skipped"].map(|count| summary[count].as_u64().unwrap());
        (status(&output), numbers)
    };
    assert_eq!(check(&["--require-known"]), (2, [3, 2]));
    for form in ["github", "markdown", "text"] {
        let output = serdes(&[
            "check",
            text(folder.path()),
            "--require-known",
            "--format",
            form,
            "--tensorflow",
            "all",
        ]);
        for name in ["notes.md", "plain.onnx"] {
            assert!(printed(&output).contains(name), "{form}: {}", printed(&output));
        }
    }
    assert_eq!(check(&["--exclude", "*.md", "--exclude", "*.onnx"]), (0, [3, 0]));
    assert_eq!(
        check(&["--exclude", "*.md", "--exclude", "*.onnx", "--require-known"]),
        (0, [3, 0])
    );
    // As in .gitignore: a folder, a path at the top, a pattern that includes again.
    assert_eq!(check(&["--exclude", "build/"]), (0, [2, 2]));
    assert_eq!(check(&["--exclude", "/x.pb"]), (0, [3, 2]));
    assert_eq!(check(&["--exclude", "**/x.pb"]), (0, [2, 2]));
    assert_eq!(check(&["--exclude", "*.pb", "--exclude", "!graph.pb"]), (0, [2, 2]));
    let wrong = serdes(&["check", text(folder.path()), "--exclude", "a{b"]);
    assert_eq!(status(&wrong), 2);
    // Files that belong to a SavedModel are neither checked nor skipped.
    let output = serdes(&["check", text(&data("tensorflow/sm")), "--json"]);
    assert_eq!(objects(&output).pop().unwrap()["skipped"], 0);
}

#[test]
fn directory_of_other_kinds_has_no_artifact_and_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data("kinds/notes.md"), folder.path().join("notes.md")).unwrap();
    let output = serdes(&["check", text(folder.path()), "--json"]);
    assert_eq!(status(&output), 2);
    let objects = objects(&output);
    assert_eq!(objects[0]["reasons"][0]["rule"], "not_found");
    assert_eq!((&objects[1]["checked"], &objects[1]["skipped"]), (&json!(0), &json!(1)));
}

#[test]
fn a_stream_without_an_end_is_answered_from_its_beginning() {
    for (pattern, rule) in [(&b"\0"[..], "corrupt"), (b"y\n", "other_kind")] {
        let mut child = command()
            .args(["check", "-", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let block = pattern.repeat(1 << 15);
        // Ends when the command has closed its end of the pipe.
        while input.write_all(&block).is_ok() {}
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert_eq!(status(&output), 2);
        assert_eq!(objects(&output)[0]["reasons"][0]["rule"], rule);
    }
}

#[test]
fn the_end_of_a_check_counts_and_says_how_many_would_not_load() {
    let folder = mixed();
    fs::write(folder.path().join("broken.pb"), b"\xff\xff").unwrap();
    let output = printed(&serdes(&["check", text(folder.path())]));
    assert!(output.contains("count"), "{output}");
    assert!(output.trim_end().ends_with("1 of 4 would not load"), "{output}");
    assert!(output.lines().all(|line| line.trim_end() == line), "{output:?}");
    assert!(output.contains("help: "), "{output}");
}

#[test]
fn unserializable_type_is_named_for_programs() {
    let found = objects_of(&["check", text(&data("rules/missing_type.bin")), "--json"]);
    let reason = &found[0]["reasons"][0];
    assert_eq!(reason["rule"], "missing_type");
    assert_eq!(reason["found"], "xla::ifrt::Something");
}

#[test]
fn a_damaged_file_of_tensors_says_how_and_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(data("kinds/model.safetensors")).unwrap();
    let longer = [&good[..], &[0; 17]].concat();
    for (name, bytes, said, helps) in [
        ("cut", &good[..good.len() - 5], "cut off, 5 bytes short", "fetch or write the file again"),
        ("longer", &longer, "17 bytes too many", "fetch or write the file again"),
        ("zeros", &[0; 4096], "never filled", "fetch or write the file again"),
        ("text", b"Entry not found", "Entry not found", "fetch or write the file again"),
        ("page", b"<!DOCTYPE html><p>", "HTML", "log in"),
        ("pointer", b"version https://git-lfs.github.com/spec/v1\n", "git-lfs", "git lfs pull"),
    ] {
        let path = folder.path().join(format!("{name}.safetensors"));
        fs::write(&path, bytes).unwrap();
        let output = serdes(&["check", text(&path)]);
        let shown = printed(&output);
        assert_eq!(status(&output), 2, "{name}: {shown}");
        assert!(shown.contains(said) && shown.contains("help: "), "{name}: {shown}");
        assert!(shown.contains(helps), "{name}: {shown}");
        let output = serdes(&["convert", text(&path), text(&folder.path().join("o.sds"))]);
        let shown = String::from_utf8(output.stderr).unwrap();
        assert!(shown.contains(said) && shown.contains("fetch or write"), "{name}: {shown}");
    }
}

#[test]
fn bytes_of_ifrt_are_never_graphs() {
    let golden: Vec<_> = fs::read_dir(data("ifrt/golden"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|is| is == "binpb"))
        .collect();
    let paths: Vec<&str> = golden.iter().map(|path| text(path)).collect();
    let found = objects_of(&[&["check", "--json"], &paths[..]].concat());
    assert_eq!(found.len(), golden.len());
    assert!(golden.len() > 100, "{}", golden.len());
    for one in found {
        let kind = one["kind"].as_str().unwrap();
        assert!(matches!(kind, "ifrt_message" | "ifrt_serialized"), "{one}");
    }
}

#[test]
fn steps_in_a_folder_of_orbax_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for step in ["1", "2"] {
        fs::create_dir(folder.path().join(step)).unwrap();
        fs::write(folder.path().join(step).join("_CHECKPOINT_METADATA"), "{}").unwrap();
    }
    let target = folder.path().join("o.sds");
    let output = serdes(&["convert", text(folder.path()), text(&target)]);
    assert_eq!(status(&output), 2);
    let said = String::from_utf8(output.stderr).unwrap();
    for step in ["1", "2"] {
        assert!(said.contains(text(&folder.path().join(step))), "{said}");
    }
    assert!(!target.exists());
}
