//! The interface of a SavedModel: its signatures, assets and fingerprint.

use std::collections::BTreeMap;

use prost::Message as _;
use serdes_files::{ReadAt, read_at::read_arriving};
use serdes_graph_format::data_type::{self, DataType};
use serdes_graphs::graph::{Callable, Interface, Interfaces, SignatureInterface, TensorInterface};
use serdes_tensors::ifrt_types;

use super::opened::Located;

/// The name of the file with the fingerprint of a model.
const FINGERPRINT: &str = "fingerprint.pb";
/// Limit on the length of a fingerprint, in bytes: TensorFlow's have under 200.
const LONGEST: u64 = 64 << 10;

/// The interface of a SavedModel, as `saved_model_cli show --all` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ModelSummary {
    /// Its meta graphs, in the order of the file.
    pub meta_graphs: Vec<MetaGraphSummary>,
    /// The asset files that the meta graphs read, each once.
    pub assets: Vec<String>,
    /// Its fingerprint; `None` if it is missing or cannot be read.
    pub fingerprint: Option<FingerprintSummary>,
}

/// The interface of a meta graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MetaGraphSummary {
    /// Its tags, in the order of the file.
    pub tags: Vec<String>,
    /// The release that wrote it, as recorded; `None` if not recorded.
    pub tensorflow_version: Option<String>,
    /// Its signatures, by key.
    pub signatures: BTreeMap<String, SignatureSummary>,
    /// The functions of the root object of a model in the TF2 format, by name.
    pub functions: Vec<FunctionInterface>,
}

/// A function of a model, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FunctionInterface {
    /// Its name.
    pub name: String,
    /// The signatures for which it was traced.
    pub options: Vec<FunctionOption>,
}

/// A way to call a function, in Python notation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FunctionOption {
    /// Positional arguments.
    pub arguments: Vec<String>,
    /// Keyword arguments.
    pub named_arguments: BTreeMap<String, String>,
}

/// A signature of a meta graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SignatureSummary {
    /// The tensors that are fed, by name.
    pub inputs: BTreeMap<String, SignatureTensor>,
    /// The tensors that are fetched, by name.
    pub outputs: BTreeMap<String, SignatureTensor>,
    /// The name of its serving method; empty if not recorded.
    pub method_name: String,
}

/// A tensor of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SignatureTensor {
    /// The element type: IFRT's name, or TensorFlow's where IFRT has none.
    pub dtype: String,
    /// Its dimensions, -1 for an unknown one; `None` if the rank is unknown.
    pub shape: Option<Vec<i64>>,
    /// The element type's name in TensorFlow's messages: `DT_FLOAT`.
    pub tensorflow_dtype: String,
    /// The name of the tensor in the graph; empty for a composite tensor.
    pub name: String,
}

/// The fingerprint of a SavedModel. Numbers are strings, as JSON numbers do not hold 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FingerprintSummary {
    /// The hash of the file `saved_model.pb`.
    pub saved_model_checksum: String,
    /// The hash of the graph, without the parts that differ between saves.
    pub graph_def_program_hash: String,
    /// The hash of the signatures.
    pub signature_def_hash: String,
    /// The hash of the object graph.
    pub saved_object_graph_hash: String,
    /// The hash of the checkpoint's index.
    pub checkpoint_hash: String,
    /// The identifier of the save; empty in fingerprints before TensorFlow 2.14.
    pub uuid: String,
    /// The version of these hashes.
    pub version: String,
}

/// The message `tensorflow.FingerprintDef`.
#[derive(Clone, PartialEq, prost::Message)]
struct Fingerprint {
    #[prost(uint64, tag = "1")]
    saved_model_checksum: u64,
    #[prost(uint64, tag = "2")]
    graph_def_program_hash: u64,
    #[prost(uint64, tag = "3")]
    signature_def_hash: u64,
    #[prost(uint64, tag = "4")]
    saved_object_graph_hash: u64,
    #[prost(uint64, tag = "5")]
    checkpoint_hash: u64,
    #[prost(message, optional, tag = "6")]
    version: Option<Version>,
    #[prost(string, tag = "7")]
    uuid: String,
}

/// The part of `tensorflow.VersionDef` that a fingerprint uses.
#[derive(Clone, PartialEq, prost::Message)]
struct Version {
    #[prost(int32, tag = "1")]
    producer: i32,
}

impl ModelSummary {
    /// Summarizes a model from its message.
    pub(super) fn of(
        found: Interfaces,
        callables: Vec<Vec<Callable>>,
        directory: Option<&Located>,
    ) -> Self {
        let mut assets = Vec::new();
        let mut meta_graphs = Vec::with_capacity(found.meta_graphs.len());
        let mut callables = callables.into_iter();
        for mut interface in found.meta_graphs {
            assets.append(&mut interface.assets);
            let functions = callables.next().unwrap_or_default();
            meta_graphs.push(MetaGraphSummary::of(interface, functions));
        }
        let mut seen = std::collections::HashSet::new();
        assets.retain(|asset| seen.insert(asset.clone()));
        Self { meta_graphs, assets, fingerprint: directory.and_then(fingerprint_of) }
    }
}

impl MetaGraphSummary {
    fn of(interface: Interface, functions: Vec<Callable>) -> Self {
        let version = interface.tensorflow_version;
        let signatures = interface.signatures.into_iter();
        Self {
            tags: interface.tags,
            tensorflow_version: (!version.is_empty()).then_some(version),
            signatures: signatures.map(|(key, one)| (key, SignatureSummary::of(one))).collect(),
            functions: functions.into_iter().map(FunctionInterface::of).collect(),
        }
    }
}

impl FunctionInterface {
    fn of(function: Callable) -> Self {
        let options = function.options.into_iter().map(|option| FunctionOption {
            arguments: option.arguments,
            named_arguments: option.named_arguments.into_iter().collect(),
        });
        Self { name: function.name, options: options.collect() }
    }
}

impl SignatureSummary {
    fn of(signature: SignatureInterface) -> Self {
        let tensors = |tensors: BTreeMap<String, TensorInterface>| {
            tensors.into_iter().map(|(name, one)| (name, SignatureTensor::of(one))).collect()
        };
        Self {
            inputs: tensors(signature.inputs),
            outputs: tensors(signature.outputs),
            method_name: signature.method_name,
        }
    }
}

impl SignatureTensor {
    fn of(tensor: TensorInterface) -> Self {
        let tensorflow_dtype = tensor.data_type_name();
        let dtype = match DataType::from_number(tensor.data_type) {
            Some(known) => ifrt_types::ifrt_name(known).to_owned(),
            None if tensor.data_type == 0 => tensorflow_dtype.clone(),
            None => data_type::describe(tensor.data_type),
        };
        Self { dtype, shape: tensor.shape, tensorflow_dtype, name: tensor.name }
    }
}

/// Returns the fingerprint in a directory, if it can be read.
fn fingerprint_of(directory: &Located) -> Option<FingerprintSummary> {
    let path = directory.path.join(FINGERPRINT);
    if !directory.tree.has_file(&path) {
        return None;
    }
    let file = directory.tree.open(&path).ok()?;
    let size = file.size().ok().filter(|size| *size <= LONGEST)?;
    let bytes = read_arriving(&*file, 0, size).ok()?;
    let found = Fingerprint::decode(&bytes[..]).ok()?;
    Some(FingerprintSummary {
        saved_model_checksum: found.saved_model_checksum.to_string(),
        graph_def_program_hash: found.graph_def_program_hash.to_string(),
        signature_def_hash: found.signature_def_hash.to_string(),
        saved_object_graph_hash: found.saved_object_graph_hash.to_string(),
        checkpoint_hash: found.checkpoint_hash.to_string(),
        uuid: found.uuid,
        version: found.version.unwrap_or_default().producer.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use crate as check;

    fn model(name: &str) -> check::Inspection {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tensorflow/sm");
        check::path(root.join(name)).unwrap().inspect().unwrap()
    }

    #[test]
    fn a_model_has_its_signatures_and_fingerprint() {
        let model = model("tf2").model.unwrap();
        let signature = &model.meta_graphs[0].signatures["serving_default"];
        let x = &signature.inputs["x"];
        assert_eq!((x.dtype.as_str(), x.tensorflow_dtype.as_str()), ("F32", "DT_FLOAT"));
        assert_eq!(x.shape, Some(vec![-1, 2]));
        let init = &model.meta_graphs[0].signatures["__saved_model_init_op"];
        let init = &init.outputs["__saved_model_init_op"];
        assert_eq!((init.dtype.as_str(), &init.shape), ("DT_INVALID", &None));
        let function = &model.meta_graphs[0].functions[0];
        let x = "TensorSpec(shape=(None, 2), dtype=tf.float32, name='x')";
        assert_eq!(
            (function.name.as_str(), &function.options[0].arguments[..]),
            ("f", &[x.to_owned()][..])
        );
        let fingerprint = model.fingerprint.unwrap();
        assert!(fingerprint.saved_model_checksum.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn a_damaged_fingerprint_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("saved_model.pb"), [0x08, 0x01]).unwrap();
        fs::write(folder.path().join("fingerprint.pb"), [0xff; 9]).unwrap();
        let found = check::path(folder.path()).unwrap().inspect().unwrap().model.unwrap();
        assert_eq!((found.fingerprint, found.meta_graphs.len()), (None, 0));
    }
}
