//! The shape functions that are written by hand, by operation.
//!
//! Knows which operation has which. What only the ranks of its inputs decide, and outputs that are
//! always the same, is in the table of [`measured`](super::measured).

use super::{
    arrangement, control_flow, elementwise, linear, node::ShapedNode, reduction, settings,
    shape::Inferred, state, tensor::Tensor, windows,
};

/// What a node gives, by output; fewer than it has where nothing is known of the last ones.
///
/// # Errors
/// What the real function refuses for certain.
pub(super) type ShapeFunction = fn(&ShapedNode<'_>) -> Inferred<Vec<Tensor>>;

/// The function of an operation.
pub(super) fn of(operation: &str) -> Option<ShapeFunction> {
    let position = FUNCTIONS.binary_search_by_key(&operation, |(name, _)| name).ok();
    if let Some((_, function)) = position.and_then(|position| FUNCTIONS.get(position)) {
        return Some(*function);
    }
    let is_of_embedding =
        operation.starts_with("LoadTPUEmbedding") || operation.starts_with("RetrieveTPUEmbedding");
    (is_of_embedding && operation.contains("Parameters")).then_some(settings::embedding_table)
}

/// By name.
const FUNCTIONS: &[(&str, ShapeFunction)] = &[
    ("Add", elementwise::broadcast),
    ("AddN", elementwise::same),
    ("AddV2", elementwise::broadcast),
    ("All", reduction::reduce),
    ("Any", reduction::reduce),
    ("ApproximateEqual", elementwise::compared),
    ("ArgMax", reduction::arg),
    ("ArgMin", reduction::arg),
    ("AssignAddVariableOp", state::assign_variable),
    ("AssignSubVariableOp", state::assign_variable),
    ("AssignVariableOp", state::assign_variable),
    ("Atan2", elementwise::broadcast),
    ("AvgPool", windows::pool_2d),
    ("AvgPool3D", windows::pool_3d),
    ("BatchMatMul", linear::batch_matmul),
    ("BatchMatMulV2", linear::batch_matmul_broadcast),
    ("BatchMatMulV3", linear::batch_matmul_broadcast),
    ("BiasAdd", elementwise::bias_add),
    ("BitwiseAnd", elementwise::broadcast),
    ("BitwiseOr", elementwise::broadcast),
    ("BitwiseXor", elementwise::broadcast),
    ("Case", settings::shape_an_output),
    ("Cholesky", linear::square),
    ("Complex", elementwise::broadcast),
    ("Concat", arrangement::concat_before),
    ("ConcatV2", arrangement::concat_behind),
    ("Const", state::constant),
    ("Conv2D", windows::convolution_2d),
    ("Conv3D", windows::convolution_3d),
    ("DepthwiseConv2dNative", windows::depthwise),
    ("Div", elementwise::broadcast),
    ("DivNoNan", elementwise::broadcast),
    ("Einsum", linear::einsum),
    ("EluGrad", elementwise::same),
    ("EnsureShape", state::ensure_shape),
    ("Enter", control_flow::enter),
    ("Equal", elementwise::equality),
    ("EuclideanNorm", reduction::reduce),
    ("ExpandDims", arrangement::expand_dims),
    ("Fill", arrangement::fill),
    ("FloorDiv", elementwise::broadcast),
    ("FloorMod", elementwise::broadcast),
    ("Gather", arrangement::gather_first),
    ("GatherV2", arrangement::gather),
    ("Greater", elementwise::broadcast),
    ("GreaterEqual", elementwise::broadcast),
    ("Identity", control_flow::identity),
    ("If", settings::shape_an_output),
    ("Igamma", elementwise::broadcast),
    ("IgammaGradA", elementwise::broadcast),
    ("Igammac", elementwise::broadcast),
    ("IteratorGetNext", settings::shape_a_type),
    ("IteratorGetNextSync", settings::shape_a_type),
    ("LeakyReluGrad", elementwise::same),
    ("LeftShift", elementwise::broadcast),
    ("Less", elementwise::broadcast),
    ("LessEqual", elementwise::broadcast),
    ("LogicalAnd", elementwise::broadcast),
    ("LogicalOr", elementwise::broadcast),
    ("MatMul", linear::matmul),
    ("MatrixInverse", linear::square),
    ("Max", reduction::reduce),
    ("MaxPool", windows::pool_2d),
    ("MaxPool3D", windows::pool_3d),
    ("Maximum", elementwise::broadcast),
    ("Mean", reduction::reduce),
    ("Merge", control_flow::merge),
    ("Min", reduction::reduce),
    ("Minimum", elementwise::broadcast),
    ("MirrorPad", arrangement::pad),
    ("Mod", elementwise::broadcast),
    ("Mul", elementwise::broadcast),
    ("MulNoNan", elementwise::broadcast),
    ("NextAfter", elementwise::broadcast),
    ("NotEqual", elementwise::equality),
    ("OptionalGetValue", settings::shape_a_type),
    ("Pack", arrangement::pack),
    ("Pad", arrangement::pad),
    ("PadV2", arrangement::pad),
    ("Placeholder", state::placeholder),
    ("PlaceholderV2", state::placeholder_exact),
    ("PlaceholderWithDefault", state::placeholder_with_default),
    ("Polygamma", elementwise::broadcast),
    ("Pow", elementwise::broadcast),
    ("Prod", reduction::reduce),
    ("Range", reduction::range),
    ("ReadVariableOp", state::read_variable),
    ("RealDiv", elementwise::broadcast),
    ("Relu6Grad", elementwise::same),
    ("ReluGrad", elementwise::same),
    ("Reshape", arrangement::reshape),
    ("RightShift", elementwise::broadcast),
    ("Select", elementwise::select),
    ("SelectV2", elementwise::select_broadcast),
    ("SeluGrad", elementwise::same),
    ("Shape", arrangement::shape_of),
    ("Slice", arrangement::slice),
    ("SoftplusGrad", elementwise::same),
    ("SoftsignGrad", elementwise::same),
    ("Split", arrangement::split),
    ("SquaredDifference", elementwise::broadcast),
    ("Squeeze", arrangement::squeeze),
    ("StatelessCase", settings::shape_an_output),
    ("StatelessIf", settings::shape_an_output),
    ("StatelessWhile", settings::shape_a_loop_variable),
    ("Sub", elementwise::broadcast),
    ("Sum", reduction::reduce),
    ("Tile", arrangement::tile),
    ("Transpose", arrangement::transpose),
    ("TruncateDiv", elementwise::broadcast),
    ("TruncateMod", elementwise::broadcast),
    ("UncompressElement", settings::shape_a_type),
    ("Unpack", arrangement::unpack),
    ("VarHandleOp", state::variable_handle),
    ("While", settings::shape_a_loop_variable),
    ("Xdivy", elementwise::broadcast),
    ("Xlog1py", elementwise::broadcast),
    ("Xlogy", elementwise::broadcast),
    ("Zeta", elementwise::broadcast),
    ("_ReadVariablesOp", settings::read_variables),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name() {
        assert!(FUNCTIONS.is_sorted_by_key(|(name, _)| *name));
        assert!(of("MatMul").is_some() && of("LoadTPUEmbeddingADAMParameters").is_some());
        assert!(of("NoSuchOperation").is_none() && of("LoadTPUEmbedding").is_none());
    }
}
