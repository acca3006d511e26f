//! VHLO, the dialect of StableHLO's portable artifacts: its operations, with the version of
//! StableHLO that introduced each, and the names of its types.
//!
//! Names, versions and properties are those of `VhloOps.td`. The versions that removed operations
//! are left out, because every reader still accepts these operations.

/// An operation of VHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name, with its version and without the dialect: `add_v1`.
    pub name: &'static str,
    /// Number of attributes in its properties.
    pub properties: u8,
    /// The minor version of StableHLO 1.x that introduced it; 0 for everything in 1.0.
    pub since_minor: u8,
}

macro_rules! operations {
    ($($name:literal $properties:literal $since:literal,)*) => {
        &[$(Operation { name: $name, properties: $properties, since_minor: $since },)*]
    };
}

/// The operations, sorted by name.
const VHLO: &[Operation] = operations! {
    "abs_v1" 0 0, "add_v1" 0 0, "after_all_v1" 0 0, "all_gather_v1" 4 0, "all_gather_v2" 4 5,
    "all_reduce_v1" 3 0, "all_reduce_v2" 3 5, "all_to_all_v1" 5 0, "all_to_all_v2" 5 5,
    "and_v1" 0 0, "async_done_v1" 0 15, "async_start_v1" 0 15, "atan2_v1" 0 0,
    "batch_norm_grad_v1" 2 0, "batch_norm_inference_v1" 2 0, "batch_norm_training_v1" 2 0,
    "bitcast_convert_v1" 0 0, "broadcast_in_dim_v1" 1 0, "broadcast_v1" 1 0, "call_v1" 1 0,
    "case_v1" 0 0, "cbrt_v1" 0 0, "cbrt_v2" 1 10, "ceil_v1" 0 0, "cholesky_v1" 1 0, "clamp_v1" 0 0,
    "collective_broadcast_v1" 2 0, "collective_broadcast_v2" 3 20, "collective_permute_v1" 2 0,
    "collective_reduce_v1" 4 19, "compare_v1" 2 0, "complex_v1" 0 0, "composite_v1" 4 0,
    "composite_v2" 4 14, "concatenate_v1" 1 0, "constant_v1" 1 0, "convert_v1" 0 0,
    "convolution_v1" 17 0, "cosine_v1" 0 0, "cosine_v2" 1 10, "count_leading_zeros_v1" 0 0,
    "create_token_v1" 0 0, "cross-replica-sum_v1" 1 0, "custom_call_v1" 8 0,
    "custom_call_v2" 9 18, "divide_v1" 0 0, "dot_general_v1" 5 0, "dot_general_v2" 12 6,
    "dot_v1" 0 0, "dynamic_broadcast_in_dim_v1" 3 0, "dynamic_conv_v1" 17 0,
    "dynamic_conv_v2" 16 0, "dynamic_gather_v1" 5 0, "dynamic_gather_v2" 7 1,
    "dynamic_iota_v1" 1 0, "dynamic_pad_v1" 0 0, "dynamic_reshape_v1" 0 0, "dynamic_slice_v1" 1 0,
    "dynamic_update_slice_v1" 0 0, "einsum_v1" 1 0, "exponential_minus_one_v1" 0 0,
    "exponential_minus_one_v2" 1 10, "exponential_v1" 0 0, "exponential_v2" 1 9, "fft_v1" 2 0,
    "floor_v1" 0 0, "func_v1" 5 0, "gather_v1" 6 0, "gather_v2" 8 1, "get_dimension_size_v1" 1 0,
    "get_tuple_element_v1" 1 0, "if_v1" 0 0, "imag_v1" 0 0, "infeed_v1" 2 0, "iota_v1" 1 0,
    "is_finite_v1" 0 0, "log_plus_one_v1" 0 0, "log_plus_one_v2" 1 10, "log_v1" 0 0, "log_v2" 1 10,
    "logistic_v1" 0 0, "logistic_v2" 1 10, "map_v1" 1 0, "maximum_v1" 0 0, "minimum_v1" 0 0,
    "multiply_v1" 0 0, "negate_v1" 0 0, "not_v1" 0 0, "optimization_barrier_v1" 0 0, "or_v1" 0 0,
    "outfeed_v1" 1 0, "pad_v1" 3 0, "partition_id_v1" 0 0, "popcnt_v1" 0 0, "power_v1" 0 0,
    "real_dynamic_slice_v1" 0 0, "real_v1" 0 0, "recv_v1" 3 0, "recv_v2" 4 12,
    "reduce_precision_v1" 2 0, "reduce_scatter_v1" 4 0, "reduce_v1" 1 0, "reduce_window_v1" 5 0,
    "remainder_v1" 0 0, "replica_id_v1" 0 0, "reshape_v1" 0 0, "return_v1" 0 0, "reverse_v1" 1 0,
    "rng_bit_generator_v1" 1 0, "rng_v1" 1 0, "round_nearest_afz_v1" 0 0,
    "round_nearest_even_v1" 0 0, "rsqrt_v1" 0 0, "rsqrt_v2" 1 10, "scatter_v1" 6 0,
    "scatter_v2" 8 1, "select_and_scatter_v1" 3 0, "select_v1" 0 0, "send_v1" 3 0, "send_v2" 4 12,
    "set_dimension_size_v1" 1 0, "shift_left_v1" 0 0, "shift_right_arithmetic_v1" 0 0,
    "shift_right_logical_v1" 0 0, "sign_v1" 0 0, "sine_v1" 0 0, "sine_v2" 1 10, "slice_v1" 3 0,
    "sort_v1" 2 0, "sqrt_v1" 0 0, "sqrt_v2" 1 10, "subtract_v1" 0 0, "tan_v1" 0 4, "tan_v2" 1 10,
    "tanh_v1" 0 0, "tanh_v2" 1 10, "torch_index_select_v1" 2 0, "transpose_v1" 1 0,
    "triangular_solve_v1" 4 0, "tuple_v1" 0 0, "unary_einsum_v1" 1 0, "uniform_dequantize_v1" 0 0,
    "uniform_quantize_v1" 0 0, "while_v1" 0 0, "xor_v1" 0 0,
};

/// Returns the operation of that name, or `None` if it is not known.
///
/// ```
/// let operation = serdes_mlir_bytecode::vhlo::operation("custom_call_v2").expect("a known one");
/// assert_eq!((operation.properties, operation.since_minor), (9, 18));
/// ```
#[must_use]
pub fn operation(name: &str) -> Option<Operation> {
    let at = VHLO.binary_search_by(|operation| operation.name.cmp(name)).ok()?;
    VHLO.get(at).copied()
}

/// The names of VHLO's types that have no parts, by code.
const TYPES: [&str; 41] = [
    "i1",
    "",
    "bf16",
    "f16",
    "f32",
    "f64",
    "f8E4M3FN",
    "f8E5M2",
    "",
    "index",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "ui4",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
    "",
    "",
    "token",
    "",
    "",
    "",
    "witness",
    "f8E4M3FNUZ",
    "f8E5M2FNUZ",
    "f8E4M3B11FNUZ",
    "",
    "i2",
    "ui2",
    "none",
    "tf32",
    "f8E4M3",
    "f8E3M4",
    "f4E2M1FN",
    "f6E2M3FN",
    "f6E3M2FN",
    "f8E8M0FNU",
];

/// Returns the name of a type of VHLO that has no parts, by its code.
#[must_use]
pub fn type_name(code: u64) -> Option<&'static str> {
    let name = usize::try_from(code).ok().and_then(|code| TYPES.get(code))?;
    (!name.is_empty()).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhlo_operations_are_in_order() {
        for pair in VHLO.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        assert_eq!(operation("cross-replica-sum_v1").unwrap().properties, 1);
        assert_eq!(operation("add_v2"), None);
    }

    #[test]
    fn type_name_is_none_for_types_with_parts() {
        assert_eq!(type_name(40), Some("f8E8M0FNU"));
        assert_eq!(type_name(20), None);
        assert_eq!(type_name(41), None);
    }
}
