//! Operations and dialects that releases know, in addition to the table of VHLO's operations, which
//! is `serdes_mlir_bytecode::vhlo`.

use serdes_mlir_bytecode::vhlo;

use crate::release::StableHlo;

/// The version of StableHLO 1.x whose operations every judged release has.
const NEWEST_OF_ALL: u8 = 13;

/// Returns the version that introduced an operation of VHLO, `Some(None)` if every judged release
/// has it; `None` if the operation is not known.
pub(crate) fn vhlo_since(name: &str) -> Option<Option<StableHlo>> {
    let minor = vhlo::operation(name)?.since_minor;
    Some((minor > NEWEST_OF_ALL).then(|| StableHlo::new(1, u32::from(minor), 0)))
}

/// Returns true for the operations of builtin that can be in a module.
pub(crate) fn builtin(name: &str) -> bool {
    matches!(name, "module" | "unrealized_conversion_cast")
}

/// Returns the number of attributes in the properties of an operation of shardy, `Some(None)` if
/// the number is unknown; `None` if the operation is.
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

/// Dialects that Python's entry point knows in every judged release.
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

/// Returns true if a reader knows a dialect; `all` is true for readers that know more than the
/// dialects of `jax.export` files.
pub(crate) fn knows_dialect(name: &str, all: bool) -> bool {
    if all { OF_PYTHON.contains(&name) } else { OF_EXPORT.contains(&name) }
}

/// Returns true for the operations of arith that have an additional property from jaxlib 0.10.1.
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
