//! Catalogue of VHLO's operations, types and attributes, with the version that introduced each.
//!
//! Names and numbers are StableHLO's (`VhloOps.td`, `VhloBytecode.cpp`); 1.21 and 1.22 brought no
//! new ones.

use super::StableHloVersion;

/// The dialect of portable artifacts.
pub(super) const VHLO: &str = "vhlo";

const fn minor(minor: u32) -> StableHloVersion {
    StableHloVersion::new(1, minor, 0)
}

/// Operations that came after [`StableHloVersion::OLDEST_TARGET`].
const LATER_OPERATIONS: [(&str, StableHloVersion); 6] = [
    ("async_done_v1", minor(15)),
    ("async_start_v1", minor(15)),
    ("collective_broadcast_v2", minor(20)),
    ("collective_reduce_v1", minor(19)),
    ("composite_v2", minor(14)),
    ("custom_call_v2", minor(18)),
];

/// Operations of [`StableHloVersion::OLDEST_TARGET`], in the order of their letters.
const OPERATIONS: &[&str] = &[
    "abs_v1",
    "add_v1",
    "after_all_v1",
    "all_gather_v2",
    "all_reduce_v2",
    "all_to_all_v2",
    "and_v1",
    "atan2_v1",
    "batch_norm_grad_v1",
    "batch_norm_inference_v1",
    "batch_norm_training_v1",
    "bitcast_convert_v1",
    "broadcast_in_dim_v1",
    "broadcast_v1",
    "call_v1",
    "case_v1",
    "cbrt_v2",
    "ceil_v1",
    "cholesky_v1",
    "clamp_v1",
    "collective_broadcast_v1",
    "collective_permute_v1",
    "compare_v1",
    "complex_v1",
    "composite_v1",
    "concatenate_v1",
    "constant_v1",
    "convert_v1",
    "convolution_v1",
    "cosine_v2",
    "count_leading_zeros_v1",
    "create_token_v1",
    "custom_call_v1",
    "divide_v1",
    "dot_general_v2",
    "dot_v1",
    "dynamic_broadcast_in_dim_v1",
    "dynamic_conv_v2",
    "dynamic_gather_v2",
    "dynamic_iota_v1",
    "dynamic_pad_v1",
    "dynamic_reshape_v1",
    "dynamic_slice_v1",
    "dynamic_update_slice_v1",
    "einsum_v1",
    "exponential_minus_one_v2",
    "exponential_v2",
    "fft_v1",
    "floor_v1",
    "func_v1",
    "gather_v2",
    "get_dimension_size_v1",
    "get_tuple_element_v1",
    "if_v1",
    "imag_v1",
    "infeed_v1",
    "iota_v1",
    "is_finite_v1",
    "log_plus_one_v2",
    "log_v2",
    "logistic_v2",
    "map_v1",
    "maximum_v1",
    "minimum_v1",
    "multiply_v1",
    "negate_v1",
    "not_v1",
    "optimization_barrier_v1",
    "or_v1",
    "outfeed_v1",
    "pad_v1",
    "partition_id_v1",
    "popcnt_v1",
    "power_v1",
    "real_dynamic_slice_v1",
    "real_v1",
    "recv_v2",
    "reduce_precision_v1",
    "reduce_scatter_v1",
    "reduce_v1",
    "reduce_window_v1",
    "remainder_v1",
    "replica_id_v1",
    "reshape_v1",
    "return_v1",
    "reverse_v1",
    "rng_bit_generator_v1",
    "rng_v1",
    "round_nearest_afz_v1",
    "round_nearest_even_v1",
    "rsqrt_v2",
    "scatter_v2",
    "select_and_scatter_v1",
    "select_v1",
    "send_v2",
    "set_dimension_size_v1",
    "shift_left_v1",
    "shift_right_arithmetic_v1",
    "shift_right_logical_v1",
    "sign_v1",
    "sine_v2",
    "slice_v1",
    "sort_v1",
    "sqrt_v2",
    "subtract_v1",
    "tan_v2",
    "tanh_v2",
    "torch_index_select_v1",
    "transpose_v1",
    "triangular_solve_v1",
    "tuple_v1",
    "unary_einsum_v1",
    "uniform_dequantize_v1",
    "uniform_quantize_v1",
    "while_v1",
    "xor_v1",
];

/// The version since when an operation is known; [`StableHloVersion::OLDEST_TARGET`] for all that
/// are as old or older, `None` if it is not known here.
pub(super) fn operation(name: &str) -> Option<StableHloVersion> {
    if OPERATIONS.binary_search(&name).is_ok() {
        return Some(StableHloVersion::OLDEST_TARGET);
    }
    LATER_OPERATIONS.iter().find(|(later, _)| *later == name).map(|(_, since)| *since)
}

/// As [`operation`], of the attribute with that code.
pub(super) fn attribute(code: u64) -> Option<StableHloVersion> {
    match code {
        1..=20 => Some(StableHloVersion::OLDEST_TARGET),
        21..=25 => Some(minor(16)),
        _ => None,
    }
}

/// As [`operation`], of the type with that code.
pub(super) fn of_type(code: u64) -> Option<StableHloVersion> {
    match code {
        0..=41 => Some(StableHloVersion::OLDEST_TARGET),
        FUTURE_TYPE => Some(minor(15)),
        _ => None,
    }
}

/// The version since when custom calls take futures.
pub(super) const CUSTOM_CALLS_TAKE_FUTURES: StableHloVersion = minor(17);

/// The code of the type of what an operation that runs on the side will give.
pub(super) const FUTURE_TYPE: u64 = 42;
/// Codes of attributes that are read or written here.
pub(super) mod attribute_code {
    pub(in crate::stablehlo) const ARRAY: u64 = 1;
    pub(in crate::stablehlo) const BOOLEAN: u64 = 2;
    pub(in crate::stablehlo) const STRING: u64 = 14;
    pub(in crate::stablehlo) const TENSOR: u64 = 15;
    pub(in crate::stablehlo) const SUB_AXIS: u64 = 21;
    pub(in crate::stablehlo) const AXIS_REFERENCE: u64 = 22;
    pub(in crate::stablehlo) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(in crate::stablehlo) const MESH_AXIS: u64 = 24;
    pub(in crate::stablehlo) const MESH: u64 = 25;
    /// Attributes that occur only as parts of group attributes.
    pub(in crate::stablehlo) const PARTS_OF_MESHES: [u64; 4] =
        [SUB_AXIS, AXIS_REFERENCE, MESH_AXIS, MESH];
}

/// Codes of types that are read or written here.
pub(super) mod type_code {
    pub(in crate::stablehlo) const SIGNED_64: u64 = 14;
    pub(in crate::stablehlo) const RANKED_TENSOR: u64 = 20;
}

/// Codes of MLIR's own dialect that are read here.
pub(super) mod builtin_code {
    pub(in crate::stablehlo) const ARRAY: u64 = 0;
    pub(in crate::stablehlo) const DICTIONARY: u64 = 1;
    pub(in crate::stablehlo) const STRING: u64 = 2;
    pub(in crate::stablehlo) const TYPED_STRING: u64 = 3;
    pub(in crate::stablehlo) const SYMBOL: u64 = 4;
    pub(in crate::stablehlo) const INTEGER: u64 = 8;
    pub(in crate::stablehlo) const DENSE_ELEMENTS: u64 = 18;
    pub(in crate::stablehlo) const DENSE_STRINGS: u64 = 19;
    /// The type of integers: a width and a sign.
    pub(in crate::stablehlo) const INTEGER_TYPE: u64 = 0;
}
