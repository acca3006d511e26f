//! Operations as TensorFlow serializes them: an `OpList`, alone or in a SavedModel.
//!
//! Does not depend on the use of a list.

use std::ops::Range;

use serdes_files::ReadAt;
use serdes_graph_format::{
    scan::{ScanError, Step, Visitor, scan},
    schema::{
        Field, META_GRAPH_DEF, META_GRAPH_DEF_META_INFO_DEF, MessageId, SAVED_MODEL, TENSORFLOW,
        fields::{
            attr_value, attr_value_list_value, meta_graph_def, meta_graph_def_meta_info_def,
            name_attr_list, op_def, op_def_arg_def, op_def_attr_def, op_deprecation, op_list,
            saved_model, tensor_shape_proto, tensor_shape_proto_dim,
        },
    },
};
use serdes_wire::{Dialect, FieldValue, Malformed, WireReader};

use super::{
    ArgumentDefinition, ArgumentType, AttributeDefinition, AttributeKind, DefinitionError,
    ListError, OperationDefinition, ValueDefinition,
};

/// Limit on the length of the lists read from a SavedModel, in bytes. A list of all of TensorFlow's
/// operations has half a megabyte.
const LONGEST_LIST: u64 = 64 << 20;

/// Returns the operations of all lists in a SavedModel; `None` if there is no list. Of the model
/// only the bytes around the lists are read.
pub(crate) fn of_saved_model(
    source: &(impl ReadAt + ?Sized),
) -> Result<Option<Vec<OperationDefinition>>, ListError> {
    let mut lists = ListFinder::default();
    scan(source, TENSORFLOW, SAVED_MODEL, &mut lists).map_err(|error| match error {
        ScanError::Wire(error) => ListError::SavedModel(error),
        ScanError::Io(error) => ListError::Io(error),
    })?;
    let bytes = lists.bytes;
    if bytes > LONGEST_LIST {
        return Err(ListError::Oversized { found: bytes, limit: LONGEST_LIST });
    }
    let mut operations = Vec::new();
    for list in &lists.found {
        let mut bytes = vec![0; usize::try_from(list.end - list.start).unwrap_or_default()];
        source.read_exact_at(&mut bytes, list.start)?;
        operations.extend(of_bytes(&bytes)?);
    }
    Ok(if lists.found.is_empty() { None } else { Some(operations) })
}

/// Finds where the lists of operations are in a SavedModel.
#[derive(Default)]
struct ListFinder {
    /// The start of the last message that was entered.
    begin: u64,
    /// The start of the current list.
    list: u64,
    found: Vec<Range<u64>>,
    /// Total length of the lists in bytes.
    bytes: u64,
}

impl Visitor for ListFinder {
    fn begins(&mut self, at: u64) {
        self.begin = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS)
            | (META_GRAPH_DEF, meta_graph_def::META_INFO_DEF) => Step::Into,
            (META_GRAPH_DEF_META_INFO_DEF, meta_graph_def_meta_info_def::STRIPPED_OP_LIST) => {
                self.list = self.begin;
                Step::Into
            }
            (SAVED_MODEL | META_GRAPH_DEF | META_GRAPH_DEF_META_INFO_DEF, _) => Step::Over,
            // Enters the list, so that the scanner checks its fields.
            _ => Step::Into,
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        let left = (message, field.number);
        let list = meta_graph_def_meta_info_def::STRIPPED_OP_LIST;
        // Empty lists are not kept: a model may have any number of them.
        if left == (META_GRAPH_DEF_META_INFO_DEF, list) && at > self.list {
            self.bytes = self.bytes.saturating_add(at - self.list);
            if self.bytes <= LONGEST_LIST {
                self.found.push(self.list..at);
            }
        }
    }
}

/// Returns the operations of a serialized `OpList`.
pub(crate) fn of_bytes(list: &[u8]) -> Result<Vec<OperationDefinition>, ListError> {
    let mut operations = Vec::new();
    let mut reader = WireReader::new(Dialect::Tensorflow, list);
    while let Some(field) = reader.next_field()? {
        match (field.number, field.value) {
            (op_list::OP, FieldValue::Bytes(bytes)) => {
                operations.push(operation(reader.nested(bytes)?)?);
            }
            // The message has no other field, so this is another kind of message.
            _ => return Err(Malformed { reason: NO_LIST, at: 0 }.into()),
        }
    }
    Ok(operations)
}

const NO_LIST: &str = "a field that lists of operations do not have";

fn operation(mut reader: WireReader<'_>) -> Result<OperationDefinition, ListError> {
    let mut operation = OperationDefinition::default();
    let (mut inputs, mut outputs, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(field) = reader.next_field()? {
        match (field.number, field.value) {
            (op_def::NAME, FieldValue::Bytes(name)) => operation.name = text(name),
            (op_def::INPUT_ARG, FieldValue::Bytes(bytes)) => inputs.push(reader.nested(bytes)?),
            (op_def::OUTPUT_ARG, FieldValue::Bytes(bytes)) => outputs.push(reader.nested(bytes)?),
            (op_def::ATTR, FieldValue::Bytes(bytes)) => attributes.push(reader.nested(bytes)?),
            (op_def::DEPRECATION, FieldValue::Bytes(bytes)) => {
                let before = operation.deprecated_since.unwrap_or_default();
                let version = last_integer(reader.nested(bytes)?, op_deprecation::VERSION)?;
                operation.deprecated_since = Some(version.map_or(before, |bits| bits as i32));
            }
            (op_def::IS_AGGREGATE, FieldValue::Varint(is)) => operation.is_aggregate = is != 0,
            (op_def::IS_STATEFUL, FieldValue::Varint(is)) => operation.is_stateful = is != 0,
            (op_def::IS_COMMUTATIVE, FieldValue::Varint(is)) => operation.is_commutative = is != 0,
            (op_def::ALLOWS_UNINITIALIZED_INPUT, FieldValue::Varint(allows)) => {
                operation.allows_uninitialized_input = allows != 0;
            }
            _ => {}
        }
    }
    if operation.name.is_empty() {
        let wrong = wrong("", "name", "missing", "the operation's name");
        return Err(wrong.into());
    }
    operation.inputs = inputs.into_iter().map(argument).collect::<Result<_, _>>()?;
    operation.outputs = outputs.into_iter().map(argument).collect::<Result<_, _>>()?;
    let attributes = attributes.into_iter().map(|reader| attribute(&operation.name, reader));
    operation.attributes = attributes.collect::<Result<_, _>>()?;
    Ok(operation)
}

/// Returns bytes as text. A name that is not UTF-8 cannot match any name in a graph.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wrong(
    operation: &str,
    what: impl Into<String>,
    found: &str,
    expected: &'static str,
) -> DefinitionError {
    let cut = |text: &str| text.chars().take(80).collect();
    DefinitionError { operation: cut(operation), what: what.into(), found: cut(found), expected }
}

/// Returns the last value of a field of integers.
fn last_integer(mut reader: WireReader<'_>, number: u32) -> Result<Option<u64>, Malformed> {
    let mut last = None;
    while let Some(field) = reader.next_field()? {
        if let (true, FieldValue::Varint(value)) = (field.number == number, field.value) {
            last = Some(value);
        }
    }
    Ok(last)
}

fn argument(mut reader: WireReader<'_>) -> Result<ArgumentDefinition, Malformed> {
    let (mut name, mut number_attribute) = (String::new(), String::new());
    let (mut fixed, mut attribute, mut list) = (0, String::new(), String::new());
    let mut is_reference = false;
    while let Some(field) = reader.next_field()? {
        match (field.number, field.value) {
            (op_def_arg_def::NAME, FieldValue::Bytes(bytes)) => name = text(bytes),
            (op_def_arg_def::TYPE, FieldValue::Varint(number)) => fixed = number as i32,
            (op_def_arg_def::TYPE_ATTR, FieldValue::Bytes(bytes)) => attribute = text(bytes),
            (op_def_arg_def::NUMBER_ATTR, FieldValue::Bytes(bytes)) => {
                number_attribute = text(bytes);
            }
            (op_def_arg_def::TYPE_LIST_ATTR, FieldValue::Bytes(bytes)) => list = text(bytes),
            (op_def_arg_def::IS_REF, FieldValue::Varint(is)) => is_reference = is != 0,
            _ => {}
        }
    }
    let element = if !list.is_empty() {
        ArgumentType::List(list)
    } else if !attribute.is_empty() {
        ArgumentType::Attribute(attribute)
    } else {
        ArgumentType::Fixed(fixed)
    };
    let number_attribute = Some(number_attribute).filter(|name| !name.is_empty());
    Ok(ArgumentDefinition { name, element, number_attribute, is_reference })
}

fn attribute(
    operation: &str,
    mut reader: WireReader<'_>,
) -> Result<AttributeDefinition, ListError> {
    let (mut name, mut kind) = (String::new(), String::new());
    let (mut default, mut allowed) = (None, None);
    let (mut has_minimum, mut minimum) = (false, 0);
    while let Some(field) = reader.next_field()? {
        match (field.number, field.value) {
            (op_def_attr_def::NAME, FieldValue::Bytes(bytes)) => name = text(bytes),
            (op_def_attr_def::TYPE, FieldValue::Bytes(bytes)) => kind = text(bytes),
            (op_def_attr_def::DEFAULT_VALUE, FieldValue::Bytes(bytes)) => {
                default = value(reader.nested(bytes)?)?;
            }
            (op_def_attr_def::HAS_MINIMUM, FieldValue::Varint(has)) => has_minimum = has != 0,
            (op_def_attr_def::MINIMUM, FieldValue::Varint(least)) => {
                minimum = least.cast_signed();
            }
            (op_def_attr_def::ALLOWED_VALUES, FieldValue::Bytes(bytes)) => {
                allowed = value(reader.nested(bytes)?)?;
            }
            _ => {}
        }
    }
    let what = format!("the kind of attribute {name:?}");
    let kind = AttributeKind::from_name(&kind)
        .ok_or_else(|| wrong(operation, what, &kind, "a kind such as int or list(type)"))?;
    let allowed = allowed.map(|allowed| match allowed {
        ValueDefinition::List(values) => values,
        one => vec![one],
    });
    let minimum = has_minimum.then_some(minimum);
    Ok(AttributeDefinition { name, kind, default, minimum, allowed })
}

/// Returns the value of an `AttrValue`; `None` if it is empty. If several are set, the last one
/// counts.
fn value(mut reader: WireReader<'_>) -> Result<Option<ValueDefinition>, Malformed> {
    let mut value = None;
    while let Some(field) = reader.next_field()? {
        value = Some(match (field.number, field.value) {
            (attr_value::LIST, FieldValue::Bytes(bytes)) => {
                ValueDefinition::List(list(reader.nested(bytes)?)?)
            }
            (attr_value::S, FieldValue::Bytes(bytes)) => ValueDefinition::String(bytes.to_vec()),
            (attr_value::I, FieldValue::Varint(bits)) => ValueDefinition::Int(bits.cast_signed()),
            (attr_value::F, FieldValue::Fixed32(bits)) => ValueDefinition::Float(bits),
            (attr_value::B, FieldValue::Varint(bits)) => ValueDefinition::Bool(bits != 0),
            (attr_value::TYPE, FieldValue::Varint(bits)) => ValueDefinition::Type(bits as i32),
            (attr_value::SHAPE, FieldValue::Bytes(bytes)) => {
                ValueDefinition::Shape(shape(reader.nested(bytes)?)?)
            }
            (attr_value::TENSOR, FieldValue::Bytes(bytes)) => {
                ValueDefinition::Tensor(bytes.to_vec())
            }
            (attr_value::FUNC, FieldValue::Bytes(bytes)) => {
                ValueDefinition::Function(function(reader.nested(bytes)?)?)
            }
            _ => continue,
        });
    }
    Ok(value)
}

/// Returns the values of a list, all of one kind.
fn list(mut reader: WireReader<'_>) -> Result<Vec<ValueDefinition>, Malformed> {
    let mut values = Vec::new();
    while let Some(field) = reader.next_field()? {
        let each = |values: &mut Vec<_>, make: fn(u64) -> ValueDefinition| {
            field.value.each_varint(Dialect::Tensorflow, |bits| values.push(make(bits)))
        };
        match (field.number, field.value) {
            (attr_value_list_value::S, FieldValue::Bytes(bytes)) => {
                values.push(ValueDefinition::String(bytes.to_vec()));
            }
            (attr_value_list_value::I, _) => {
                each(&mut values, |bits| ValueDefinition::Int(bits.cast_signed()))?;
            }
            (attr_value_list_value::F, FieldValue::Fixed32(bits)) => {
                values.push(ValueDefinition::Float(bits));
            }
            (attr_value_list_value::F, FieldValue::Bytes(packed)) => {
                let floats = packed.as_chunks().0.iter();
                values.extend(floats.map(|bits| ValueDefinition::Float(u32::from_le_bytes(*bits))));
            }
            (attr_value_list_value::B, _) => {
                each(&mut values, |bits| ValueDefinition::Bool(bits != 0))?;
            }
            (attr_value_list_value::TYPE, _) => {
                each(&mut values, |bits| ValueDefinition::Type(bits as i32))?;
            }
            (attr_value_list_value::SHAPE, FieldValue::Bytes(bytes)) => {
                values.push(ValueDefinition::Shape(shape(reader.nested(bytes)?)?));
            }
            (attr_value_list_value::TENSOR, FieldValue::Bytes(bytes)) => {
                values.push(ValueDefinition::Tensor(bytes.to_vec()));
            }
            (attr_value_list_value::FUNC, FieldValue::Bytes(bytes)) => {
                values.push(ValueDefinition::Function(function(reader.nested(bytes)?)?));
            }
            _ => {}
        }
    }
    Ok(values)
}

/// Returns the dimensions; `None` if not even the rank is known.
fn shape(mut reader: WireReader<'_>) -> Result<Option<Vec<i64>>, Malformed> {
    let (mut dimensions, mut unknown_rank) = (Vec::new(), false);
    while let Some(field) = reader.next_field()? {
        match (field.number, field.value) {
            (tensor_shape_proto::DIM, FieldValue::Bytes(bytes)) => {
                let size = last_integer(reader.nested(bytes)?, tensor_shape_proto_dim::SIZE)?;
                dimensions.push(size.unwrap_or_default().cast_signed());
            }
            (tensor_shape_proto::UNKNOWN_RANK, FieldValue::Varint(is)) => unknown_rank = is != 0,
            _ => {}
        }
    }
    Ok(if unknown_rank { None } else { Some(dimensions) })
}

/// Returns the name of a function.
fn function(mut reader: WireReader<'_>) -> Result<String, Malformed> {
    let mut name = String::new();
    while let Some(field) = reader.next_field()? {
        if let (name_attr_list::NAME, FieldValue::Bytes(bytes)) = (field.number, field.value) {
            name = text(bytes);
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use serdes_testkit::fields::field;

    use crate::{Registry, read_list, read_saved_model};

    fn model(name: &str) -> Vec<u8> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tensorflow");
        fs::read(data.join(name).join("saved_model.pb")).unwrap()
    }

    /// Returns a SavedModel with these lists of operations, each in its own meta graph with a
    /// graph.
    fn listing(lists: &[Vec<u8>]) -> Vec<u8> {
        let meta_graph = |list: &Vec<u8>| {
            field(2, &[field(1, &field(2, list)), field(2, b"\x22\x02\x08\x01")].concat())
        };
        [vec![8, 1], lists.iter().flat_map(meta_graph).collect()].concat()
    }

    #[test]
    fn operations_listed_by_models_are_those_of_their_release() {
        for (release, name) in [("2.12", "old/2.12.0/sm"), ("2.21", "sm/sm_tf2_no_fingerprint")] {
            let registry = Registry::tensorflow(release).unwrap();
            let listed = of_saved_model(&model(name)).unwrap().unwrap();
            assert!(listed.len() > 10, "{name}: {}", listed.len());
            for operation in listed {
                let known = registry.operation(&operation.name).unwrap().to_definition();
                assert_eq!(operation, known, "{name}");
            }
        }
    }

    #[test]
    fn operation_of_tensorflow_is_not_the_models_own() {
        assert_eq!(read_saved_model(&model("old/2.12.0/sm")).unwrap(), []);
        let list = [field(1, &field(1, b"MatMul")), field(1, &field(1, b"OurFusedOp"))].concat();
        let own = read_saved_model(&listing(&[list])).unwrap();
        assert_eq!(own, [OperationDefinition::new("OurFusedOp")]);
    }

    #[test]
    fn operation_list_is_read_alone_and_in_each_meta_graph() {
        let input = field(2, &[field(1, b"x"), field(4, b"T"), field(5, b"N")].concat());
        let output = field(3, &[field(1, b"y"), vec![0x18, 1], vec![0x80, 1, 1]].concat());
        let types = field(1, &field(6, &[1, 3])); // a packed list
        let element = field(4, &[field(1, b"T"), field(2, b"type"), field(7, &types)].concat());
        let number = field(4, &[field(1, b"N"), field(2, b"int"), vec![0x28, 1, 0x30, 2]].concat());
        let default = field(3, &[0x25, 0, 0, 0x80, 0x3f]); // 1.0
        let scale = field(4, &[field(1, b"scale"), field(2, b"float"), default].concat());
        let deprecation = field(8, &[0x08, 30]);
        let parts =
            [field(1, b"Ours"), input, output, element, number, scale, deprecation].concat();
        let list = field(1, &[parts, vec![0x88, 1, 1]].concat());
        let read = read_list(&list).unwrap();
        let expected = r#"{"name": "Ours",
            "inputs": [{"name": "x", "type_attr": "T", "number_attr": "N"}],
            "outputs": [{"name": "y", "type": "DT_FLOAT", "is_ref": true}],
            "attrs": [{"name": "T", "type": "type", "allowed_values": ["DT_FLOAT", "DT_INT32"]},
                {"name": "N", "type": "int", "minimum": 2},
                {"name": "scale", "type": "float", "default": 1.0}],
            "is_stateful": true, "deprecation": 30}"#;
        assert_eq!(read, read_list(expected.as_bytes()).unwrap());
        let list = |name: &[u8]| field(1, &field(1, name));
        let both = listing(&[list(b"OurA"), list(b"OurB")]);
        let names = |operations: Vec<OperationDefinition>| -> Vec<String> {
            operations.into_iter().map(|operation| operation.name).collect()
        };
        assert_eq!(names(read_saved_model(&both).unwrap()), ["OurA", "OurB"]);
    }

    #[test]
    fn bytes_that_are_no_list_are_an_error() {
        let list = |operation: &[u8]| read_list(&field(1, operation)).unwrap_err().to_string();
        assert!(list(b"\x12\x00").contains("the operation's name"));
        let attribute = [field(1, b"a"), field(2, b"number")].concat();
        let error = list(&[field(1, b"A"), field(4, &attribute)].concat());
        assert!(error.contains("is number; expected a kind"), "{error}");
        assert!(list(b"\x0a\x05A").contains("longer than the message"));
        let other = [field(1, &field(1, b"A")), vec![0x10, 1]].concat();
        assert!(read_list(&other).unwrap_err().to_string().contains("do not have"));
    }

    #[test]
    fn a_model_that_lists_nothing_or_is_none_is_an_error() {
        let error = |bytes: &[u8]| read_saved_model(bytes).unwrap_err();
        assert!(matches!(error(b"\x08\x01"), ListError::NotListed));
        assert!(matches!(error(&listing(&[vec![]])), ListError::NotListed));
        for name in ["sm/sm_tf2_garbage_pb", "sm/sm_tf2_meta_info_stripped_op_list"] {
            let bytes = model(name);
            let _ = read_saved_model(&bytes);
            for end in 0..bytes.len().min(2000) {
                let _ = read_saved_model(&bytes[..end]);
            }
        }
        let cut = model("old/2.12.0/sm");
        assert!(matches!(error(&cut[..cut.len() - 1]), ListError::SavedModel(_)));
    }
}
