//! The interfaces of meta graphs: signatures, and assets.
//!
//! Depends on the messages, in the form in which `saved_model_cli` prints them, but not on the
//! existence of the tensors that a signature names.

use std::collections::BTreeMap;

use super::{
    GraphError, Message,
    source::{Form, Source},
    whole_text::WholeText,
};
use crate::{
    data_type::DataType,
    files::ReadAt,
    scan::{Piece, Step, Visitor},
    schema::{
        ASSET_FILE_DEF, Field, META_GRAPH_DEF, META_GRAPH_DEF_META_INFO_DEF,
        META_GRAPH_DEF_SIGNATURE_DEF_ENTRY, MessageId, SAVED_MODEL, SIGNATURE_DEF,
        SIGNATURE_DEF_INPUTS_ENTRY, SIGNATURE_DEF_OUTPUTS_ENTRY, TENSOR_INFO, TENSOR_SHAPE_PROTO,
        TENSOR_SHAPE_PROTO_DIM,
        fields::{
            asset_file_def, meta_graph_def, meta_graph_def_meta_info_def,
            meta_graph_def_signature_def_entry, saved_model, signature_def,
            signature_def_inputs_entry, tensor_info, tensor_shape_proto, tensor_shape_proto_dim,
        },
    },
};

/// Limit on the memory that is kept for a file, in bytes, and the fixed cost of each string or
/// number.
const MOST: usize = 4 << 20;
const EACH: usize = 64;

/// The interfaces of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interfaces {
    /// The interfaces of its meta graphs, in the order of the file.
    pub meta_graphs: Vec<Interface>,
    /// True if the limit (4 MiB) was exceeded.
    pub overflow: bool,
}

/// The interface of a meta graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Its tags, in the order of the file.
    pub tags: Vec<String>,
    /// The release that wrote it, as recorded; empty if not recorded.
    pub tensorflow_version: String,
    /// Its signatures, by key.
    pub signatures: BTreeMap<String, SignatureInterface>,
    /// The asset files that it reads, in the order of the file.
    pub assets: Vec<String>,
}

/// A signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureInterface {
    /// The tensors that are fed, by name.
    pub inputs: BTreeMap<String, TensorInterface>,
    /// The tensors that are fetched, by name.
    pub outputs: BTreeMap<String, TensorInterface>,
    /// The name of its serving method: `tensorflow/serving/predict`.
    pub method_name: String,
}

/// A tensor of a signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInterface {
    /// The name of the tensor in the graph; empty for a composite tensor.
    pub name: String,
    /// The number of its type in TensorFlow's enumeration `DataType`.
    pub data_type: i32,
    /// Its dimensions, -1 for an unknown one; `None` if the rank is unknown.
    pub shape: Option<Vec<i64>>,
}

impl TensorInterface {
    /// Returns the type's name in TensorFlow's messages, as `saved_model_cli` prints it:
    /// `DT_FLOAT`.
    #[must_use]
    pub fn data_type_name(&self) -> String {
        name_of(self.data_type)
    }
}

/// Returns the name of a number in TensorFlow's enumeration `DataType`, or the number in decimal if
/// it has none.
fn name_of(number: i32) -> String {
    if number == 0 {
        return "DT_INVALID".to_owned();
    }
    if let Some(base) = number.checked_sub(100).and_then(DataType::from_number) {
        return format!("{}_REF", name_of(base.number()));
    }
    let Some(known) = DataType::from_number(number) else {
        return number.to_string();
    };
    match known {
        DataType::Float32 => "DT_FLOAT".to_owned(),
        DataType::Float64 => "DT_DOUBLE".to_owned(),
        DataType::Float16 => "DT_HALF".to_owned(),
        other => format!("DT_{}", other.name().to_uppercase()),
    }
}

/// Reads the interface of every meta graph of a file, skipping everything else.
///
/// # Errors
/// [`GraphError`], if no parser accepts the file or the system cannot read it.
pub fn interfaces(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
) -> Result<Interfaces, GraphError> {
    let mut reader = InterfaceReader::default();
    if message == Message::MetaGraphDef {
        reader.found.meta_graphs.push(Interface::default());
    }
    Source::new(&source, message, form).walk(&mut reader)?;
    Ok(reader.found)
}

/// A walk over the meta graphs.
#[derive(Default)]
struct InterfaceReader {
    text: WholeText,
    kept: usize,
    key: String,
    signature: SignatureInterface,
    tensor_key: String,
    tensor: TensorInterface,
    dimensions: Vec<i64>,
    is_of_unknown_rank: bool,
    found: Interfaces,
}

impl InterfaceReader {
    /// Reserves memory for a value; returns false if it exceeds the limit.
    fn keeps(&mut self, bytes: usize) -> bool {
        self.kept = self.kept.saturating_add(bytes).saturating_add(EACH);
        self.found.overflow |= self.kept > MOST || self.text.oversized;
        !self.found.overflow
    }

    fn end_of_tensor(&mut self, is_input: bool) {
        let key = std::mem::take(&mut self.tensor_key);
        let mut tensor = std::mem::take(&mut self.tensor);
        let dimensions = std::mem::take(&mut self.dimensions);
        tensor.shape = (!self.is_of_unknown_rank).then_some(dimensions);
        if self.found.overflow {
            return;
        }
        let tensors = match is_input {
            true => &mut self.signature.inputs,
            false => &mut self.signature.outputs,
        };
        tensors.insert(key, tensor);
    }
}

impl Visitor for InterfaceReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                if !self.keeps(0) {
                    return Step::Over;
                }
                self.found.meta_graphs.push(Interface::default());
            }
            (META_GRAPH_DEF, meta_graph_def::SIGNATURE_DEF) => {
                self.key.clear();
                self.signature = SignatureInterface::default();
            }
            (SIGNATURE_DEF, signature_def::INPUTS | signature_def::OUTPUTS) => {
                self.tensor_key.clear();
                self.tensor = TensorInterface::default();
                self.dimensions.clear();
                self.is_of_unknown_rank = false;
            }
            (TENSOR_INFO, tensor_info::COO_SPARSE | tensor_info::COMPOSITE_TENSOR) => {
                // The last of several alternatives for the tensor counts.
                self.tensor.name.clear();
                return Step::Over;
            }
            (TENSOR_SHAPE_PROTO, tensor_shape_proto::DIM) => {
                if !self.keeps(0) {
                    return Step::Over;
                }
                self.dimensions.push(0);
            }
            (META_GRAPH_DEF, meta_graph_def::META_INFO_DEF | meta_graph_def::ASSET_FILE_DEF)
            | (META_GRAPH_DEF_SIGNATURE_DEF_ENTRY, meta_graph_def_signature_def_entry::VALUE)
            | (
                SIGNATURE_DEF_INPUTS_ENTRY | SIGNATURE_DEF_OUTPUTS_ENTRY,
                signature_def_inputs_entry::VALUE,
            )
            | (TENSOR_INFO, tensor_info::TENSOR_SHAPE) => {}
            _ => return Step::Over,
        }
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (META_GRAPH_DEF, meta_graph_def::SIGNATURE_DEF) => {
                let (key, signature) =
                    (std::mem::take(&mut self.key), std::mem::take(&mut self.signature));
                if let Some(graph) = self.found.meta_graphs.last_mut()
                    && !self.found.overflow
                {
                    graph.signatures.insert(key, signature);
                }
            }
            (SIGNATURE_DEF, signature_def::INPUTS) => self.end_of_tensor(true),
            (SIGNATURE_DEF, signature_def::OUTPUTS) => self.end_of_tensor(false),
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            // An enumeration uses the low 32 bits of its varint.
            (TENSOR_INFO, tensor_info::DTYPE) => self.tensor.data_type = value as i32,
            (TENSOR_SHAPE_PROTO, tensor_shape_proto::UNKNOWN_RANK) => {
                self.is_of_unknown_rank = value != 0;
            }
            (TENSOR_SHAPE_PROTO_DIM, tensor_shape_proto_dim::SIZE) => {
                if let Some(dimension) = self.dimensions.last_mut() {
                    *dimension = value.cast_signed();
                }
            }
            _ => {}
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let is_wanted = matches!(
            (message, field.number),
            (
                META_GRAPH_DEF_META_INFO_DEF,
                meta_graph_def_meta_info_def::TAGS
                    | meta_graph_def_meta_info_def::TENSORFLOW_VERSION
            ) | (META_GRAPH_DEF_SIGNATURE_DEF_ENTRY, meta_graph_def_signature_def_entry::KEY)
                | (
                    SIGNATURE_DEF_INPUTS_ENTRY | SIGNATURE_DEF_OUTPUTS_ENTRY,
                    signature_def_inputs_entry::KEY
                )
                | (SIGNATURE_DEF, signature_def::METHOD_NAME)
                | (TENSOR_INFO, tensor_info::NAME)
                | (ASSET_FILE_DEF, asset_file_def::FILENAME)
        );
        if !is_wanted {
            return;
        }
        let Some(text) = self.text.take(piece, is) else { return };
        let text = String::from_utf8_lossy(text).into_owned();
        if !self.keeps(text.len()) {
            return;
        }
        let Some(graph) = self.found.meta_graphs.last_mut() else { return };
        match (message, field.number) {
            (META_GRAPH_DEF_META_INFO_DEF, meta_graph_def_meta_info_def::TAGS) => {
                graph.tags.push(text);
            }
            (META_GRAPH_DEF_META_INFO_DEF, _) => graph.tensorflow_version = text,
            (META_GRAPH_DEF_SIGNATURE_DEF_ENTRY, _) => self.key = text,
            (SIGNATURE_DEF_INPUTS_ENTRY | SIGNATURE_DEF_OUTPUTS_ENTRY, _) => self.tensor_key = text,
            (SIGNATURE_DEF, _) => self.signature.method_name = text,
            (TENSOR_INFO, _) => self.tensor.name = text,
            _ => graph.assets.push(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::field;

    fn tensor(name: &[u8], data_type: u8, shape: &[u8]) -> Vec<u8> {
        [field(1, name), vec![0x10, data_type], field(3, shape)].concat()
    }

    fn model(signature: &[u8]) -> Vec<u8> {
        let info = [field(4, b"serve"), field(5, b"2.21.0")].concat();
        let asset = field(6, &field(2, b"vocab.txt"));
        let signature = field(5, &[field(1, b"serving_default"), field(2, signature)].concat());
        let graph = [field(1, &info), signature, asset].concat();
        [vec![0x08, 1], field(2, &graph)].concat()
    }

    fn read(bytes: &[u8]) -> Interface {
        let mut found = interfaces(bytes, Message::SavedModel, Form::Binary).unwrap();
        assert!(!found.overflow);
        assert_eq!(found.meta_graphs.len(), 1);
        found.meta_graphs.remove(0)
    }

    #[test]
    fn tags_signatures_and_assets_are_read() {
        let unknown_rows =
            [field(2, &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])];
        let shape = [unknown_rows.concat(), field(2, &[0x08, 3])].concat();
        let input = [field(1, b"x"), field(2, &tensor(b"x:0", 1, &shape))].concat();
        let output = [field(1, b"y"), field(2, &tensor(b"y:0", 7, &[0x18, 1]))].concat();
        let signature = [field(1, &input), field(2, &output), field(3, b"predict")].concat();
        let found = read(&model(&signature));
        assert_eq!(found.tags, ["serve"]);
        assert_eq!((found.tensorflow_version.as_str(), found.assets.len()), ("2.21.0", 1));
        let signature = &found.signatures["serving_default"];
        assert_eq!(signature.method_name, "predict");
        let (x, y) = (&signature.inputs["x"], &signature.outputs["y"]);
        assert_eq!((x.data_type_name(), &x.shape), ("DT_FLOAT".into(), &Some(vec![-1, 3])));
        assert_eq!((y.data_type_name(), &y.shape), ("DT_STRING".into(), &None));
    }

    #[test]
    fn the_last_way_to_say_a_tensor_counts() {
        let sparse = [field(1, b"values:0"), field(4, &field(1, b"values:0"))].concat();
        let input = [field(1, b"x"), field(2, &sparse)].concat();
        let found = read(&model(&field(1, &input)));
        let tensor = &found.signatures["serving_default"].inputs["x"];
        assert_eq!((tensor.name.as_str(), tensor.data_type_name().as_str()), ("", "DT_INVALID"));
    }

    #[test]
    fn reference_types_have_their_own_names() {
        assert_eq!(name_of(102), "DT_DOUBLE_REF");
        assert_eq!(name_of(24), "DT_FLOAT8_E5M2");
        assert_eq!(name_of(77), "77");
    }

    #[test]
    fn more_than_is_kept_is_said() {
        let name = vec![b'n'; 3 << 10];
        let inputs: Vec<u8> = (0..2000u32)
            .flat_map(|number| {
                let key = number.to_le_bytes().map(|byte| byte & 0x7f);
                let entry = [field(1, &key), field(2, &tensor(&name, 1, &[]))].concat();
                field(1, &entry)
            })
            .collect();
        let found = interfaces(&model(&inputs)[..], Message::SavedModel, Form::Binary).unwrap();
        assert!(found.overflow);
    }
}
