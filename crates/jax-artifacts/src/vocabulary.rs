//! Operations: which version of StableHLO brought each, and how many properties it has.
//!
//! Names, versions and properties are those of `VhloOps.td`; the versions that end are left out,
//! because every reader still takes what ended.

use crate::release::StableHlo;

/// An operation of VHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VhloOperation {
    pub(crate) name: &'static str,
    /// The numbers of attributes that its properties have.
    pub(crate) properties: u8,
    /// The version of StableHLO 1.x that brought it; 0 for all that 1.0 has.
    since_minor: u8,
}

impl VhloOperation {
    /// The version that brought it, if it is not as old as every judged release.
    pub(crate) fn since(self) -> Option<StableHlo> {
        (self.since_minor > NEWEST_OF_ALL)
            .then(|| StableHlo::new(1, u32::from(self.since_minor), 0))
    }
}

/// The version of StableHLO 1.x whose operations every judged release has.
const NEWEST_OF_ALL: u8 = 13;

/// The version of StableHLO 1.x that brought an operation, 0 for those of 1.0 and before; `None` for
/// one that is not known.
pub fn since_minor(name: &str) -> Option<u32> {
    vhlo(name).map(|operation| u32::from(operation.since_minor))
}

macro_rules! operations {
    ($($name:literal $properties:literal $since:literal,)*) => {
        &[$(VhloOperation { name: $name, properties: $properties, since_minor: $since },)*]
    };
}

/// In the order of their names.
const VHLO: &[VhloOperation] = operations! {
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

/// The operation of that name.
pub(crate) fn vhlo(name: &str) -> Option<VhloOperation> {
    let at = VHLO.binary_search_by(|operation| operation.name.cmp(name)).ok()?;
    VHLO.get(at).copied()
}

/// The operations of builtin that stand in a module, with the numbers of attributes of their
/// properties.
pub(crate) fn builtin(name: &str) -> bool {
    matches!(name, "module" | "unrealized_conversion_cast")
}

/// The operations of shardy, with the numbers of attributes of their properties where they are
/// known.
pub(crate) fn shardy(name: &str) -> Option<Option<u8>> {
    Some(match name {
        "return" => Some(0),
        "sharding_constraint" => Some(1),
        "mesh" => Some(2),
        "manual_computation" => Some(3),
        "all_gather"
        | "all_reduce"
        | "all_slice"
        | "all_to_all"
        | "collective_permute"
        | "constant"
        | "data_flow_edge"
        | "named_computation"
        | "propagation_barrier"
        | "reduce_scatter"
        | "replicated_to_unreduced"
        | "reshard"
        | "sharded_to_unreduced"
        | "sharding_group" => None,
        _ => return None,
    })
}

/// Dialects that Python's entry knows in every judged release.
const OF_PYTHON: [&str; 21] = [
    "affine",
    "arith",
    "builtin",
    "cf",
    "chlo",
    "complex",
    "func",
    "gpu",
    "llvm",
    "math",
    "memref",
    "mhlo",
    "mpmd",
    "nvgpu",
    "scf",
    "sdy",
    "shape",
    "stablehlo",
    "tensor",
    "vector",
    "vhlo",
];

/// Dialects that `jax.export` knows in every judged release.
const OF_EXPORT: [&str; 6] = ["builtin", "func", "sdy", "stablehlo", "tensor", "vhlo"];

/// True if a reader that knows `all` dialects, or only those of files of `jax.export`, knows this
/// one.
pub(crate) fn knows_dialect(name: &str, all: bool) -> bool {
    if all { OF_PYTHON.contains(&name) } else { OF_EXPORT.contains(&name) }
}

/// The operations of arith that have another property from jaxlib 0.10.1 on.
pub(crate) fn has_rounding_mode(name: &str) -> bool {
    matches!(name, "addf" | "divf" | "mulf" | "subf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhlo_operations_are_in_order() {
        for pair in VHLO.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        assert_eq!(vhlo("custom_call_v2").unwrap().since(), Some(StableHlo::new(1, 18, 0)));
        assert_eq!(vhlo("custom_call_v1").unwrap().since(), None);
        assert_eq!(vhlo("cross-replica-sum_v1").unwrap().properties, 1);
        assert_eq!(vhlo("add_v2"), None);
    }
}
