//! Tests of each kind of artifact with each command that reads artifacts: what one command reads,
//! all read, or they say why they do not.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::testkit::{command, data, objects, objects_of, serdes, status, text, tiny};

/// Expected result for an artifact: read by all commands; read by check and inspect only, with the
/// message of the others; or only recognised, with that message.
enum Read {
    ByAll,
    Judged(&'static str),
    Recognised(&'static str),
}

/// Returns an artifact of each kind, created in `folder` if the test data have none.
fn artifacts(folder: &Path) -> Vec<(&'static str, PathBuf, Read)> {
    use Read::{ByAll, Judged, Recognised};
    let state = folder.join("a.sds");
    assert_eq!(status(&serdes(&["convert", text(&tiny()), text(&state)])), 0);
    let shards = folder.join("model.safetensors");
    let split = serdes(&["convert", text(&tiny()), text(&shards), "--shard-bytes", "20"]);
    assert_eq!(status(&split), 0, "{split:?}");
    let flax = folder.join("model.msgpack");
    let array = b"\x93\x91\x01\xa5uint8\xc4\x01a";
    let bytes = [&b"\x81\xa1w"[..], &[0xc7, array.len() as u8, 1], array].concat();
    fs::write(&flax, bytes).unwrap();
    let own = "with the program that it was made for";
    let ifrt = "serdes3.ConcreteEvenSharding_dev1_0_even_device.xla.ifrt.Serialized.binpb";
    let ifrt = data("ifrt/golden").join(ifrt);
    let meta = data("tensorflow/ckpt/saver_v2/ckpt.meta");
    vec![
        ("safetensors", tiny(), ByAll),
        ("npy", data("kinds/array.npy"), ByAll),
        ("npz", data("kinds/arrays.npz"), ByAll),
        ("device_state", state, ByAll),
        ("shard_index", folder.join("model.safetensors.index.json"), ByAll),
        ("tensor_bundle", data("tensorflow/ckpt/saver_v2/ckpt"), ByAll),
        ("checkpoint_v1", data("tensorflow/ckpt/saver_v1/model.ckpt"), ByAll),
        ("checkpoint_v1", data("tensorflow/checkpoint_state/v1/model.ckpt"), ByAll),
        ("checkpoint_state", data("tensorflow/checkpoint_state/run/checkpoint"), ByAll),
        ("checkpoint_state", data("tensorflow/checkpoint_state/v1/checkpoint"), ByAll),
        ("checkpoint_state", data("tensorflow/checkpoint_state/sharded/checkpoint"), ByAll),
        ("saved_model", data("tensorflow/sm/tf1_two"), ByAll),
        ("graph_def", data("rules/min_consumer.pb"), Judged("is no safetensors file")),
        ("graph_def_text", data("rules/attribute_value.pbtxt"), Judged(own)),
        ("meta_graph", meta, Judged("tensorflow/ckpt/saver_v2/ckpt")),
        ("plugin", plugin(folder), Judged("serdes plugin inspect")),
        ("ifrt_serialized", ifrt, Judged("it describes arrays")),
        ("torch_distributed", data("torch_distributed/2.15.0/checkpoint"), ByAll),
        ("torch", data("kinds/model.pt"), ByAll),
        ("torch", data("torch/2.15.0/training_state_legacy.pt"), ByAll),
        ("orbax", data("kinds/orbax"), Recognised("serdes_ml.convert")),
        ("stablehlo", data("kinds/f.mlirbc"), Judged(own)),
        ("jax_export", data("kinds/f-0.12.0.1.jaxexport"), Judged(own)),
        ("onnx", data("kinds/plain.onnx"), Recognised(own)),
        ("hdf5", data("kinds/weights.h5"), Recognised(own)),
        ("keras", data("kinds/model.keras"), Recognised(own)),
        ("tflite", data("kinds/model.tflite"), Recognised(own)),
        ("gguf", data("kinds/model.gguf"), Recognised(own)),
        ("flax", flax, Recognised("msgpack_restore")),
        ("zip", data("kinds/notes.zip"), Recognised("unpack it")),
        ("gzip", data("kinds/graph.pb.gz"), Recognised("unpack it")),
        ("html", data("kinds/login.html"), Recognised("is no safetensors file")),
        ("json", data("kinds/config.json"), Recognised("is no safetensors file")),
        ("text", data("kinds/notes.md"), Recognised("is no safetensors file")),
        ("fingerprint", data("kinds/fingerprint.pb"), Recognised(own)),
    ]
}

/// Compiles a library that exports the symbols of a plug-in, and nothing else.
fn plugin(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("plugin.c"), folder.join("plugin.so"));
    fs::write(&source, "int SE_InitPlugin(void) { return 0; }\n").unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = std::process::Command::new(compiler);
    let command = command.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(command.status().unwrap().success());
    library
}

#[test]
fn every_command_reads_a_kind_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target.sds");
    for (kind, path, read) in artifacts(folder.path()) {
        let path = text(&path);
        let inspected = serdes(&["inspect", path]);
        assert_eq!(status(&inspected), 0, "inspect {kind}: {inspected:?}");
        let checked = serdes(&["check", path]);
        let is_other = matches!(read, Read::Recognised(_)) || kind == "torch";
        assert_eq!(status(&checked) == 2, is_other, "check {kind}: {checked:?}");
        assert_eq!(objects_of(&["inspect", path, "--json"])[0]["kind"], kind, "{path}");
        let commands: [&[&str]; 3] = [
            &["convert", path, text(&target), "--skip-unsupported"],
            &["save", "--from", path, "-o", text(&target), "--skip-unsupported"],
            &["diff", path, path],
        ];
        for command in commands {
            let output = serdes(command);
            let said = String::from_utf8_lossy(&output.stderr);
            match read {
                Read::ByAll => assert_eq!(status(&output), 0, "{command:?}: {said}"),
                Read::Judged(words) | Read::Recognised(words) => {
                    assert_eq!(status(&output), 2, "{command:?}: {said}");
                    assert!(said.contains(words), "{command:?}: {said}");
                    assert!(said.contains(path), "{command:?}: {said}");
                }
            }
        }
        let restored = serdes(&["restore", path]);
        let said = String::from_utf8_lossy(&restored.stderr);
        assert_eq!(status(&restored) == 0, kind == "device_state", "restore {kind}: {said}");
        if kind != "device_state" && kind != "graph_def" {
            assert!(said.contains("only device states are restored"), "restore {kind}: {said}");
            // Only for artifacts that are converted.
            let is_converted = matches!(read, Read::ByAll) || kind == "meta_graph";
            assert_eq!(said.contains("`serdes convert"), is_converted, "restore {kind}: {said}");
        }
    }
}

/// Names that say nothing about the kind, or that suggest another kind. A table with the name of an
/// index is an index.
const NAMES: [&str; 7] = ["x", "x.bin", "x.safetensors", "x.npz", "x.npy", "x.sds", "x.ckpt-1.txt"];

/// Returns true if a file of this kind and name is detected as its kind. A graph has no magic
/// number, so its name counts more.
fn is_told(kind: &str, name: &str) -> bool {
    match kind {
        "graph_def" | "meta_graph" | "graph_def_text" => false,
        // A message: any name that suggests a kind overrules it.
        "ifrt_serialized" => matches!(name, "x" | "x.bin"),
        // Text under any name is a text file, unless the name calls for a certain kind.
        "text" => !matches!(name, "x.safetensors" | "x.npz" | "x.npy" | "x.sds"),
        // An archive called `x.npz` must have arrays.
        "zip" => name != "x.npz",
        _ => true,
    }
}

#[test]
fn a_kind_is_told_by_content_whatever_its_name_is() {
    let folder = tempfile::tempdir().unwrap();
    let renamed = tempfile::tempdir().unwrap();
    let artifacts = artifacts(folder.path());
    for (kind, path, _) in artifacts.iter().filter(|(_, path, _)| path.is_file()) {
        for name in NAMES.into_iter().filter(|name| is_told(kind, name)) {
            let copy = renamed.path().join(name);
            fs::copy(path, &copy).unwrap();
            for command in ["check", "inspect"] {
                let found = objects_of(&[command, text(&copy), "--json"]);
                let found = &found[0]["kind"];
                // An inspection of something stored elsewhere has no object.
                assert!(found == kind || found.is_null(), "{command} {kind} as {name}: {found}");
                assert!(command == "inspect" || found == kind, "{kind} as {name}: {found}");
            }
            fs::remove_file(copy).unwrap();
        }
    }
}

#[test]
fn a_kind_is_told_out_of_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target.sds");
    let artifacts = artifacts(folder.path());
    for (kind, path, read) in artifacts.iter().filter(|(_, path, _)| path.is_file()) {
        let run = |arguments: &[&str]| {
            let input = fs::File::open(path).unwrap();
            command().args(arguments).stdin(input).output().unwrap()
        };
        if !matches!(*kind, "meta_graph" | "graph_def_text" | "text") {
            let found = objects(&run(&["check", "-", "--json"]));
            assert_eq!(&found[0]["kind"], kind, "{found:?}");
        }
        let converted = run(&["convert", "-", text(&target), "--skip-unsupported"]);
        let said = String::from_utf8_lossy(&converted.stderr);
        let names_others = matches!(*kind, "shard_index" | "checkpoint_state");
        let is_read = matches!(read, Read::ByAll) && !names_others;
        assert_eq!(status(&converted), if is_read { 0 } else { 2 }, "{kind}: {said}");
        if let Read::Recognised(words) = read {
            assert!(said.contains(words), "{kind}: {said}");
        }
        if names_others {
            assert!(said.contains("name it by its path"), "{kind}: {said}");
        }
    }
}

#[test]
fn content_says_what_a_file_is_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target.sds");
    for source in [
        "kinds/model.pt",
        "kinds/array.npy",
        "kinds/arrays.npz",
        "torch/2.15.0/every_type_legacy.pt",
        "tensorflow/checkpoint_state/v1/model.ckpt",
    ] {
        for name in ["x.safetensors", "x.npz", "x.sds", "x.npy", "x.bin"] {
            let path = folder.path().join(name);
            fs::copy(data(source), &path).unwrap();
            let converted = serdes(&["convert", text(&path), text(&target)]);
            assert_eq!(status(&converted), 0, "{source} as {name}: {converted:?}");
            assert_eq!(status(&serdes(&["diff", text(&path), text(&data(source))])), 0, "{name}");
        }
    }
}

#[test]
fn a_directory_says_which_of_its_files_to_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("o.sds");
    let said = |path: &Path| {
        let output = serdes(&["convert", text(path), text(&target)]);
        assert_eq!(status(&output), 2);
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(folder.path()).contains("name a file in it"), "{}", said(folder.path()));
    fs::write(folder.path().join("m.safetensors.index.json"), "{}").unwrap();
    assert!(said(folder.path()).contains("m.safetensors.index.json"));
    let shard = data("tensorflow/ckpt/saver_v2/ckpt.data-00000-of-00001");
    assert!(said(&shard).contains("name the prefix"), "{}", said(&shard));
}
