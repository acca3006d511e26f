//! The handwritten shape functions, by operation.
//!
//! Operations of which only the ranks of inputs are checked, or whose outputs are constant, are in
//! the table of [`measured`](super::measured).

use super::{
    arrangement, control_flow, elementwise, linear, node::ShapedNode, reduction, settings,
    shape::Inferred, state, tensor::Tensor, windows,
};

/// A function that infers the outputs of a node; it may return fewer than the node has if the last
/// ones are unknown.
///
/// # Errors
/// If the real function certainly refuses the node.
pub(super) type ShapeFunction = fn(&ShapedNode<'_>) -> Inferred<Vec<Tensor>>;

/// Returns the function of an operation.
pub(super) fn of(operation: &str) -> Option<ShapeFunction> {
    let position = FUNCTIONS.binary_search_by_key(&operation, |(name, _)| name).ok();
    if let Some((_, function)) = position.and_then(|position| FUNCTIONS.get(position)) {
        return Some(*function);
    }
    let is_of_embedding =
        operation.starts_with("LoadTPUEmbedding") || operation.starts_with("RetrieveTPUEmbedding");
    if is_of_embedding && operation.contains("Parameters") {
        return Some(settings::embedding_table);
    }
    let starts_with =
        |start: &str| operation.strip_prefix("_Mkl").unwrap_or(operation).starts_with(start);
    match (starts_with("QuantizedConv2D"), starts_with("QuantizedDepthwiseConv2D")) {
        (true, _) => Some(windows::convolution_2d),
        (_, true) => Some(windows::depthwise),
        _ => None,
    }
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
    ("Assign", state::assign),
    ("AssignAdd", elementwise::same_two),
    ("AssignAddVariableOp", state::assign_variable),
    ("AssignSub", elementwise::same_two),
    ("AssignSubVariableOp", state::assign_variable),
    ("AssignVariableOp", state::assign_variable),
    ("Atan2", elementwise::broadcast),
    ("AvgPool", windows::pool_2d),
    ("AvgPool3D", windows::pool_3d),
    ("BatchMatMul", linear::batch_matmul),
    ("BatchMatMulV2", linear::batch_matmul_broadcast),
    ("BatchMatMulV3", linear::batch_matmul_broadcast),
    ("Betainc", elementwise::same_but_scalars),
    ("BiasAdd", elementwise::bias_add),
    ("BitwiseAnd", elementwise::broadcast),
    ("BitwiseOr", elementwise::broadcast),
    ("BitwiseXor", elementwise::broadcast),
    ("Case", settings::shape_an_output),
    ("Cholesky", linear::square),
    ("Complex", elementwise::broadcast),
    ("Concat", arrangement::concat_before),
    ("ConcatV2", arrangement::concat_behind),
    ("ConjugateTranspose", arrangement::transpose),
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
    ("ImmutableConst", state::said),
    ("IteratorGetNext", settings::shape_a_type),
    ("IteratorGetNextSync", settings::shape_a_type),
    ("LeakyReluGrad", elementwise::same),
    ("LeftShift", elementwise::broadcast),
    ("Less", elementwise::broadcast),
    ("LessEqual", elementwise::broadcast),
    ("LogMatrixDeterminant", linear::of_squares),
    ("LogicalAnd", elementwise::broadcast),
    ("LogicalOr", elementwise::broadcast),
    ("MatMul", linear::matmul),
    ("MatrixDeterminant", linear::of_squares),
    ("MatrixExponential", linear::square),
    ("MatrixInverse", linear::square),
    ("MatrixLogarithm", linear::square),
    ("MatrixSquareRoot", linear::square),
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
    ("PlaceholderV2", state::said),
    ("PlaceholderWithDefault", state::placeholder_with_default),
    ("Polygamma", elementwise::broadcast),
    ("Pow", elementwise::broadcast),
    ("Prod", reduction::reduce),
    ("QuantizedAvgPool", windows::pool_2d),
    ("QuantizedMaxPool", windows::pool_2d),
    ("Range", reduction::range),
    ("ReadVariableOp", state::read_variable),
    ("RealDiv", elementwise::broadcast),
    ("Relu6Grad", elementwise::same),
    ("ReluGrad", elementwise::same),
    ("Reshape", arrangement::reshape),
    ("ResourceScatterAdd", state::scatter_variable),
    ("ResourceScatterDiv", state::scatter_variable),
    ("ResourceScatterMax", state::scatter_variable),
    ("ResourceScatterMin", state::scatter_variable),
    ("ResourceScatterMul", state::scatter_variable),
    ("ResourceScatterSub", state::scatter_variable),
    ("ResourceScatterUpdate", state::scatter_variable),
    ("RightShift", elementwise::broadcast),
    ("ScatterAdd", state::scatter),
    ("ScatterDiv", state::scatter),
    ("ScatterMax", state::scatter),
    ("ScatterMin", state::scatter),
    ("ScatterMul", state::scatter),
    ("ScatterSub", state::scatter),
    ("ScatterUpdate", state::scatter),
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
    ("TemporaryVariable", state::said),
    ("Tile", arrangement::tile),
    ("Transpose", arrangement::transpose),
    ("TruncateDiv", elementwise::broadcast),
    ("TruncateMod", elementwise::broadcast),
    ("UncompressElement", settings::shape_a_type),
    ("Unpack", arrangement::unpack),
    ("VarHandleOp", state::variable_handle),
    ("Variable", state::legacy_variable),
    ("VariableV2", state::said),
    ("While", settings::shape_a_loop_variable),
    ("Xdivy", elementwise::broadcast),
    ("Xlog1py", elementwise::broadcast),
    ("Xlogy", elementwise::broadcast),
    ("Zeta", elementwise::broadcast),
    ("_MklAvgPool", windows::pool_2d),
    ("_MklAvgPool3D", windows::pool_3d),
    ("_MklConjugateTranspose", arrangement::transpose),
    ("_MklConv2D", windows::convolution_2d),
    ("_MklConv3D", windows::convolution_3d),
    ("_MklDepthwiseConv2dNative", windows::depthwise),
    ("_MklEluGrad", elementwise::same_two),
    ("_MklLeakyReluGrad", elementwise::same_two),
    ("_MklMaxPool", windows::pool_2d),
    ("_MklMaxPool3D", windows::pool_3d),
    ("_MklNativeAvgPool", windows::pool_2d),
    ("_MklNativeAvgPool3D", windows::pool_3d),
    ("_MklNativeConv2D", windows::convolution_2d),
    ("_MklNativeConv3D", windows::convolution_3d),
    ("_MklNativeDepthwiseConv2dNative", windows::depthwise),
    ("_MklNativeMaxPool", windows::pool_2d),
    ("_MklNativeMaxPool3D", windows::pool_3d),
    ("_MklQuantizedAvgPool", windows::pool_2d),
    ("_MklQuantizedMaxPool", windows::pool_2d),
    ("_MklRelu6Grad", elementwise::same_two),
    ("_MklReluGrad", elementwise::same_two),
    ("_MklTanhGrad", elementwise::same_two),
    ("_MklTranspose", arrangement::transpose),
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
