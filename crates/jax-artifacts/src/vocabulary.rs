//! Operations and dialects that releases know, beside the table of VHLO's operations, which is
//! `serdes_mlir_bytecode::vhlo`.

use serdes_mlir_bytecode::vhlo;

use crate::release::StableHlo;

/// The version of StableHLO 1.x whose operations every judged release has.
const NEWEST_OF_ALL: u8 = 13;

/// Returns the version that brought an operation of VHLO, `Some(None)` if it is as old as every
/// judged release; `None` if the operation is not known.
pub(crate) fn vhlo_since(name: &str) -> Option<Option<StableHlo>> {
    let minor = vhlo::operation(name)?.since_minor;
    Some((minor > NEWEST_OF_ALL).then(|| StableHlo::new(1, u32::from(minor), 0)))
}

/// Returns the operations of builtin that stand in a module, with the numbers of attributes of
/// their properties.
pub(crate) fn builtin(name: &str) -> bool {
    matches!(name, "module" | "unrealized_conversion_cast")
}

/// Returns the operations of shardy, with the numbers of attributes of their properties where they
/// are known.
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

/// Returns true if a reader that knows `all` dialects, or only those of files of `jax.export`,
/// knows this one.
pub(crate) fn knows_dialect(name: &str, all: bool) -> bool {
    if all { OF_PYTHON.contains(&name) } else { OF_EXPORT.contains(&name) }
}

/// Returns the operations of arith that have another property from jaxlib 0.10.1 on.
pub(crate) fn has_rounding_mode(name: &str) -> bool {
    matches!(name, "addf" | "divf" | "mulf" | "subf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhlo_since_is_told_of_newer_operations_alone() {
        assert_eq!(vhlo_since("custom_call_v2"), Some(Some(StableHlo::new(1, 18, 0))));
        assert_eq!(vhlo_since("custom_call_v1"), Some(None));
        assert_eq!(vhlo_since("add_v2"), None);
    }
}
