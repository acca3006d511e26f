//! Each kind of artifact and each command that reads one: what one command reads all read, or say in
//! words why they do not.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::testkit::{data, objects_of, serdes, status, text, tiny};

/// Expected result for an artifact: read by all; by check and inspect alone, with the message of
/// the others; or recognised, with the message of the others.
enum Read {
    ByAll,
    Judged(&'static str),
    Recognised(&'static str),
}

/// An artifact of each kind, made in this folder where there is none among the data.
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
    vec![
        ("safetensors", tiny(), ByAll),
        ("npy", data("kinds/array.npy"), ByAll),
        ("npz", data("kinds/arrays.npz"), ByAll),
        ("device_state", state, ByAll),
        ("shard_index", folder.join("model.safetensors.index.json"), ByAll),
        ("tensor_bundle", data("tensorflow/ckpt/saver_v2/ckpt"), ByAll),
        ("saved_model", data("tensorflow/sm/tf1_two"), ByAll),
        ("graph_def", data("rules/min_consumer.pb"), Judged("is no safetensors file")),
        ("graph_def_text", data("rules/attribute_value.pbtxt"), Judged(own)),
        ("torch", data("kinds/model.pt"), ByAll),
        ("torch", data("torch/2.15.0/training_state_legacy.pt"), ByAll),
        ("orbax", data("kinds/orbax"), Recognised("serdes_ml.convert")),
        ("stablehlo", data("kinds/f.mlirbc"), Recognised(own)),
        ("jax_export", data("kinds/f-0.12.0.1.jaxexport"), Recognised(own)),
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
