//! Kinds of artifacts by file name.

use std::path::Path;

use serdes_checkpoints::checkpoint_state;
use serdes_tensors as tensor_io;

use super::super::Kind;

/// Returns the judged kind that a name implies: it takes precedence over content without a mark.
pub(in super::super) fn of_judged(file: &str) -> Option<Kind> {
    let kind = if file == "saved_model.pb" || file == "saved_model.pbtxt" {
        Kind::SavedModel
    } else if file.ends_with(".sds") {
        Kind::DeviceState
    } else if file.ends_with(".meta") {
        Kind::MetaGraph
    } else if file.ends_with(".pbtxt") {
        Kind::GraphDefText
    } else if tensor_io::is_index(Path::new(file)) {
        Kind::ShardIndex
    } else if file.ends_with(".index") {
        Kind::TensorBundle
    } else if file.contains(".ckpt") {
        Kind::CheckpointV1
    } else {
        match extension(&file.to_ascii_lowercase()) {
            "safetensors" => Kind::Safetensors,
            "npy" => Kind::Npy,
            "npz" => Kind::Npz,
            "mlirbc" => Kind::StableHlo,
            "jaxexport" | "jax_export" => Kind::JaxExport,
            _ => return None,
        }
    };
    Some(kind)
}

/// Returns the other kind that a name, in lower case, implies: it is used where nothing else
/// decides.
pub(super) fn of_other(file: &str) -> Option<Kind> {
    if file == "fingerprint.pb" {
        return Some(Kind::Fingerprint);
    }
    let kind = match extension(file) {
        "onnx" => Kind::Onnx,
        "h5" | "hdf5" => Kind::Hdf5,
        "keras" => Kind::Keras,
        "tflite" => Kind::Tflite,
        "pt" | "pth" => Kind::Torch,
        "gguf" => Kind::Gguf,
        "msgpack" => Kind::Flax,
        "zip" => Kind::Zip,
        "gz" | "tgz" => Kind::Gzip,
        "html" | "htm" => Kind::Html,
        "json" => Kind::Json,
        _ if says_text(file) => Kind::Text,
        _ => return None,
    };
    Some(kind)
}

/// Returns the kind of an empty file by its name; `None` for a graph.
pub(in super::super) fn of_empty_file(file: &str) -> Option<Kind> {
    let lower = file.to_ascii_lowercase();
    let library = || (extension(&lower) == "so").then_some(Kind::Plugin);
    // TensorFlow reads the file even if it is empty.
    let list = || (file == checkpoint_state::FILE_NAME).then_some(Kind::CheckpointState);
    // A message of IFRT in a file named after its type: xla.ifrt.ShapeProto.binpb.
    let message = || {
        let is_one = extension(&lower) == "binpb" && lower.contains("xla.ifrt.");
        is_one.then_some(Kind::IfrtMessage)
    };
    of_judged(file).or_else(list).or_else(|| of_other(&lower)).or_else(library).or_else(message)
}

/// Returns true if a name, in lower case, is that of a text, even if it resembles another kind:
/// `model.ckpt-notes.txt`.
pub(super) fn says_text(file: &str) -> bool {
    matches!(
        extension(file),
        "txt"
            | "md"
            | "rst"
            | "csv"
            | "tsv"
            | "log"
            | "py"
            | "yaml"
            | "yml"
            | "toml"
            | "ini"
            | "cfg"
    )
}

/// Returns true if a name, in lower case, is that of a TensorFlow message in protobuf form.
pub(super) fn says_protobuf(file: &str) -> bool {
    extension(file) == "pb"
}

fn extension(file: &str) -> &str {
    file.rsplit_once('.').map_or("", |(_, extension)| extension)
}
