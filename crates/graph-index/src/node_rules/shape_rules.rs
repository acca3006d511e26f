//! Shape attributes that the shape functions of TensorFlow refuse for any inputs, because they are
//! invalid.
//!
//! Measured: every operation of TensorFlow 2.12 and 2.21 that has an attribute of shapes was
//! imported with a dimension below -1, with dimensions beside an unknown rank, with over 2^63
//! elements and with 255 dimensions. The operations in the lists refuse these, in both releases;
//! all others accept them. The relations between input shapes are not checked.

use super::{NodeRuleDiagnostic, diagnostic::shape};
use crate::attributes::{AttributeValue, Attributes, ShapeValue};

/// Operations and the attribute, a shape or a list of shapes, that each one reads; by name.
pub(super) const READERS: [(&str, &str); 49] = [
    ("AccumulateNV2", "shape"),
    ("AnonymousMutableDenseHashTable", "value_shape"),
    ("AnonymousMutableHashTableOfTensors", "value_shape"),
    ("Case", "output_shapes"),
    ("CollectiveBcastRecv", "shape"),
    ("CollectiveBcastSend", "shape"),
    ("DatasetToSingleElement", "output_shapes"),
    ("EnsureShape", "shape"),
    ("FakeParam", "shape"),
    ("GetElementAtIndex", "output_shapes"),
    ("If", "output_shapes"),
    ("ImmutableConst", "shape"),
    ("InfeedDequeue", "shape"),
    ("InfeedDequeueTuple", "shapes"),
    ("IteratorGetNext", "output_shapes"),
    ("IteratorGetNextSync", "output_shapes"),
    ("MapDefun", "output_shapes"),
    ("MultiDeviceIteratorGetNextFromShard", "output_shapes"),
    ("MutableDenseHashTableV2", "value_shape"),
    ("MutableHashTableOfTensorsV2", "value_shape"),
    ("OptionalGetValue", "output_shapes"),
    ("OutfeedDequeue", "shape"),
    ("OutfeedDequeueTuple", "shapes"),
    ("OutfeedDequeueV2", "shape"),
    ("ParseExample", "dense_shapes"),
    ("ParseExampleV2", "dense_shapes"),
    ("Placeholder", "shape"),
    ("PlaceholderV2", "shape"),
    ("PlaceholderWithDefault", "shape"),
    ("ReduceDataset", "output_shapes"),
    ("StatelessCase", "output_shapes"),
    ("StatelessIf", "output_shapes"),
    ("StatelessWhile", "output_shapes"),
    ("TemporaryVariable", "shape"),
    ("TensorArrayGatherV3", "element_shape"),
    ("TensorArrayV3", "element_shape"),
    ("TensorListConcat", "element_shape"),
    ("UncompressElement", "output_shapes"),
    ("VarHandleOp", "shape"),
    ("Variable", "shape"),
    ("VariableV2", "shape"),
    ("While", "output_shapes"),
    ("XlaCallModule", "Sout"),
    ("XlaRecvFromHost", "shape"),
    ("_ParallelConcatStart", "shape"),
    ("_ScopedAllocatorConcat", "shape"),
    ("_ScopedAllocatorSplit", "shapes"),
    ("_VarHandlesOp", "shapes"),
    ("_XlaAotOnlyVarHandleOp", "shape"),
];

/// The attribute that the tensor of a constant is in.
const VALUE: &str = "value";

/// Returns the reason why the shape function of an operation certainly refuses these attributes.
/// The value of each attribute must be valid for the operation.
pub fn shape_diagnostic(
    operation: &str,
    attributes: &Attributes,
) -> Option<Box<NodeRuleDiagnostic>> {
    let invalid = |name: &'static str, is_valid: fn(ShapeValue<'_>) -> bool| {
        let value = attributes.get(name)?;
        let found = value.invalid_shape(is_valid)?;
        let expected = "a shape: dimensions from -1 on, at most 254, under 2^63 elements";
        Some(NodeRuleDiagnostic::of_value(shape, name, found, expected.to_owned()))
    };
    let read = READERS.binary_search_by_key(&operation, |(name, _)| name).ok();
    let read = read.and_then(|position| READERS.get(position));
    match (operation, read) {
        ("Const", _) => invalid(VALUE, |shape| shape.is_full_shape()),
        (_, Some((_, name))) => match attributes.get(name) {
            Some(value @ AttributeValue::Placeholder(_)) => {
                Some(NodeRuleDiagnostic::of_value(shape, name, value, "a shape".to_owned()))
            }
            _ => invalid(name, |shape| shape.is_partial_shape()),
        },
        _ => None,
    }
}
