//! Tests of `serdes convert`: files of other programs, into a state and back.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a file that real PyTorch wrote.
fn torch(name: &str) -> PathBuf {
    root().join("tests/data/torch/2.15.0").join(name)
}

fn serdes(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_serdes")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn done(arguments: &[&str]) -> Output {
    let output = serdes(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

/// Runs a command that fails; asserts that it wrote nothing, and returns its message.
fn refused(arguments: &[&str], target: &Path) -> String {
    let output = serdes(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    assert!(!target.exists(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn inspect(path: &Path) -> Value {
    object(&done(&["inspect", text(path), "--json"]))
}

fn names(inspected: &Value) -> Vec<&str> {
    let tensors = inspected["tensors"].as_array().unwrap();
    tensors.iter().map(|tensor| tensor["name"].as_str().unwrap()).collect()
}

#[test]
fn a_file_of_torch_becomes_a_state_and_the_state_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["training_state.pt", "training_state_legacy.pt", "every_type.pt", "views.pt"] {
        let state = folder.path().join(format!("{file}.sds"));
        let report = object(&done(&["convert", text(&torch(file)), text(&state), "--json"]));
        assert!(report["bytes"].as_u64().unwrap() > 0, "{report}");
        done(&["check", text(&state), "--verify-data"]);
        done(&["diff", text(&torch(file)), text(&state)]);
    }
    let inspected = inspect(&folder.path().join("training_state.pt.sds"));
    assert!(names(&inspected).contains(&"model/0.weight"), "{inspected}");
    assert!(names(&inspected).contains(&"optimizer/state/0/exp_avg"));
    // The parameters are the tensors of the model.
    assert!(!names(&inspected).contains(&"parameters/0"));
}

#[test]
fn aliases_are_stored_once_in_a_state_and_written_out_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let [state, weights, again] =
        ["a.sds", "a.safetensors", "b.sds"].map(|name| folder.path().join(name));
    done(&["convert", text(&torch("views.pt")), text(&state)]);
    assert!(!names(&inspect(&state)).contains(&"again"));
    done(&["convert", text(&state), text(&weights)]);
    let inspected = inspect(&weights);
    let found = names(&inspected);
    assert!(found.contains(&"again") && found.contains(&"base"), "{found:?}");
    done(&["diff", text(&torch("views.pt")), text(&weights)]);
    // A state converted from a state keeps its metadata.
    done(&["convert", text(&state), text(&again)]);
    assert_eq!(fs::metadata(&state).unwrap().len(), fs::metadata(&again).unwrap().len());
    done(&["diff", text(&state), text(&again)]);
    // If only the other name is selected, the tensor has that name.
    let only = folder.path().join("only.sds");
    done(&["convert", text(&state), text(&only), "--only", "again"]);
    assert_eq!(names(&inspect(&only)), ["again"]);
}

#[test]
fn save_and_diff_read_files_of_torch_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a.sds");
    done(&["save", "--from", text(&torch("views.pt")), "-o", text(&state)]);
    done(&["diff", text(&state), text(&torch("views_legacy.pt"))]);
    assert!(!names(&inspect(&state)).contains(&"again"));
}

#[test]
fn shards_are_written_with_their_index_and_read_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let [shards, one] = ["m.safetensors", "one.safetensors"].map(|name| folder.path().join(name));
    let source = torch("training_state.pt");
    done(&["convert", text(&source), text(&shards), "--shard-bytes", "50"]);
    let index = folder.path().join("m.safetensors.index.json");
    assert!(index.exists() && !shards.exists());
    done(&["convert", text(&index), text(&one)]);
    done(&["diff", text(&source), text(&one)]);
    let mut files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let first = files.find(|path| text(path).contains("m-00001-of-"));
    fs::remove_file(first.unwrap()).unwrap();
    let target = folder.path().join("none.sds");
    let said = refused(&["convert", text(&index), text(&target)], &target);
    assert!(said.contains("m-00001-of-"), "{said}");
}

#[test]
fn unsupported_value_is_refused_or_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a.sds");
    let source = torch("others.pt");
    let said = refused(&["convert", text(&source), text(&state)], &state);
    assert!(said.contains("sparse") && said.contains("--skip-unsupported"), "{said}");
    let output = done(&["convert", text(&source), text(&state), "--skip-unsupported", "--json"]);
    let skipped = object(&output)["skipped"].clone();
    assert_eq!(skipped, serde_json::json!(["sparse", "conjugate", "quantized"]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("_rebuild_qtensor"));
    assert_eq!(names(&inspect(&state)), ["w"]);
    for (file, word) in [("module.pt", "Linear"), ("program.pt", "TorchScript")] {
        let target = folder.path().join("none.sds");
        let said = refused(&["convert", text(&torch(file)), text(&target)], &target);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn streams_are_read_and_written() {
    let source = fs::File::open(torch("views.pt")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_serdes"))
        .args(["convert", "-", "-", "--to-kind", "safetensors"])
        .stdin(source)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let mut file = fs::File::create(&path).unwrap();
    std::io::copy(child.stdout.as_mut().unwrap(), &mut file).unwrap();
    assert!(child.wait().unwrap().success());
    done(&["diff", text(&torch("views.pt")), text(&path)]);
}

#[test]
fn wrong_arguments_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.sds");
    let source = torch("alone.pt");
    for (arguments, word) in [
        (vec!["--shard-bytes", "10"], "safetensors"),
        (vec!["--to-kind", "npy"], "--to-kind"),
        (vec!["--kind", "npy"], "--kind"),
        (vec!["--only", "nothing*"], "nothing*"),
        (vec!["--serdes-version", "99"], "--serdes-version"),
    ] {
        let all = [vec!["convert", text(&source), text(&target)], arguments].concat();
        let said = refused(&all, &target);
        assert!(said.contains(word), "{said}");
    }
    let written = folder.path().join("a.pt");
    let said = refused(&["convert", text(&source), text(&written)], &written);
    assert!(said.contains(".pt are not written"), "{said}");
    assert_eq!(serdes(&["convert", text(&source)]).status.code(), Some(2));
    // Two sources with one name.
    let said = refused(&["convert", text(&source), text(&source), text(&target)], &target);
    assert!(said.contains("alone"), "{said}");
}

#[test]
fn a_folder_of_orbax_is_told_with_who_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("_CHECKPOINT_METADATA"), "{}").unwrap();
    let target = folder.path().join("a.sds");
    let said = refused(&["convert", text(folder.path()), text(&target)], &target);
    assert!(said.contains("serdes_ml.convert") && said.contains("serdes-ml[orbax]"), "{said}");
    // The paths are quoted inside the quotes of the shell.
    assert!(said.contains(r#"python -c 'import serdes_ml; serdes_ml.convert(""#), "{said}");
}

#[test]
fn convert_takes_options_anywhere_between_its_paths() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, out] =
        ["a.safetensors", "second_array.npy", "o.sds"].map(|name| folder.path().join(name));
    fs::copy(root().join("tests/data/kinds/model.safetensors"), &a).unwrap();
    fs::copy(root().join("tests/data/kinds/array.npy"), &b).unwrap();
    let (a, b, out) = (text(&a), text(&b), text(&out));
    for arguments in [
        vec!["convert", a, "--quiet", out],
        vec!["convert", a, "--only", "*", out],
        vec!["convert", a, "--skip-unsupported", b, "--sync", "none", out],
        vec!["convert", "--json", a, "-q", b, "--only", "*", out],
        vec!["convert", a, b, out, "--quiet"],
        vec!["diff", a, "--quiet", a],
        vec!["diff", "--rtol", "0", a, "--atol", "0", a],
        vec!["check", a, "--quiet", b, "--strict"],
        vec!["save", "--from", a, "--quiet", "--from", b, "-o", out],
        vec!["ops", "2.16", "--quiet", "MatMul"],
        vec!["explain", "--quiet", "corrupt"],
    ] {
        done(&arguments);
    }
    for too_few in [vec!["convert"], vec!["convert", a], vec!["convert", a, "--quiet"]] {
        assert_eq!(serdes(&too_few).status.code(), Some(2), "{too_few:?}");
    }
}

#[test]
fn convert_lists_what_is_not_kept_with_a_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let [state, npz] = ["a.sds", "a.npz"].map(|name| folder.path().join(name));
    let source = torch("values.pt");
    let said = refused(&["convert", text(&source), text(&state)], &state);
    assert!(said.contains("bytes") && said.contains("leave such values out"), "{said}");
    let skip = "--skip-unsupported";
    let output = done(&["convert", text(&source), text(&state), skip, "--json"]);
    let report = object(&output);
    assert_eq!(report["skipped"], serde_json::json!(["bytes"]));
    let left_out = report["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 5, "{left_out:?}");
    assert!(left_out.iter().any(|one| one["name"] == "parameter"), "{left_out:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("\"tag\", a str, is not kept"), "{said}");
    // Values that are not arrays are left out.
    let output = done(&["convert", text(&source), text(&npz), "--only", "w", skip, "--json"]);
    let left_out = object(&output)["left_out"].as_array().unwrap().clone();
    for value in ["lr", "count", "word", "rng/0"] {
        assert!(left_out.iter().any(|one| one["name"] == value), "{value}: {left_out:?}");
    }
}

#[test]
fn convert_names_all_that_it_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a.sds");
    let said = refused(&["convert", text(&torch("others.pt")), text(&state)], &state);
    for name in ["sparse", "conjugate", "quantized"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn torch_distributed_checkpoint_is_judged_shown_and_converted() {
    for release in ["2.2.2", "2.15.0"] {
        let folder = tempfile::tempdir().unwrap();
        let source = root().join("tests/data/torch_distributed").join(release).join("checkpoint");
        for arguments in [&["check", "--json"][..], &["check", "--json", "--verify-data"]] {
            let verdict = object(&done(&[arguments, &[text(&source)]].concat()));
            assert_eq!(verdict["kind"], "torch_distributed", "{verdict}");
            assert_eq!(verdict["verdict"], "acceptable", "{verdict}");
        }
        let found = inspect(&source);
        let tensors = found["tensors"].as_array().unwrap();
        let grid = tensors.iter().find(|tensor| tensor["name"] == "model/grid").unwrap();
        assert_eq!(grid["shape"], serde_json::json!([5, 7, 2]));
        assert_eq!(grid["pieces"], 4);
        let state = folder.path().join("a.sds");
        assert_eq!(
            object(&done(&["convert", text(&source), text(&state), "--json"]))["tensors"],
            5
        );
        done(&["diff", text(&source), text(&state)]);
        let saved = folder.path().join("b.sds");
        done(&["save", "--from", text(&source), "-o", text(&saved)]);
        done(&["diff", text(&state), text(&saved)]);
        // A part alone does not have the names of its tensors.
        let part = source.join("__0_0.distcp");
        let target = folder.path().join("none.sds");
        let said = refused(&["convert", text(&part), text(&target)], &target);
        assert!(said.contains("name the folder"), "{said}");
    }
}
