//! Makes sorts stay within their arrays with any comparator.
//!
//! XLA on a CPU passes a comparator to the sort of its standard library. An unstable sort trusts
//! it: an inconsistent one leads it beyond the array, and the process ends. Stable sorts merge, and
//! stay within their array for each comparator that gives the same answer to the same question. So
//! every sort is made stable, as those of JAX are unless a program says otherwise, and comparators
//! may only have operations that compute one value from others. Functions that XLA expands to
//! unstable sorts compare plainly, or not at all.

use serdes::{codec::Status, stablehlo::Program};

use crate::status::status;

/// Operations permitted in comparators, without their versions: deterministic functions of their
/// arguments.
const OPERATIONS: &[&str] = &[
    "abs",
    "add",
    "and",
    "atan2",
    "bitcast_convert",
    "broadcast_in_dim",
    "cbrt",
    "ceil",
    "clamp",
    "compare",
    "complex",
    "constant",
    "convert",
    "cosine",
    "count_leading_zeros",
    "divide",
    "exponential",
    "exponential_minus_one",
    "floor",
    "get_tuple_element",
    "imag",
    "is_finite",
    "log",
    "log_plus_one",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "power",
    "real",
    "reduce_precision",
    "remainder",
    "reshape",
    "return",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sine",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "tuple",
    "xor",
];

/// The function that XLA expands to a sort with the program's comparator, stable or not. Its
/// comparators are a single `GT` or `LT`. To them NaNs are equal to everything, which is not a weak
/// order; but two values never both come before each other, and no value before itself. The sort of
/// libstdc++ needs no more to stay within its array: the median of three values ends its search
/// from both sides, and before each value that it inserts there is a median which that value does
/// not come before. `tests/interop/jaxlib_hostile.py` tests it with NaNs.
const WRITTEN_OUT: &str = "ApproxTopK";

/// Returns the program with stable sorts; `None` if they are stable already.
///
/// # Errors
/// INVALID_ARGUMENT for a comparator that may contradict itself, and for a sort that cannot be
/// read.
pub(super) fn made_stable(program: &Program<'_>) -> Result<Option<Vec<u8>>, Status> {
    for operation in program.comparator_operations() {
        let name = operation.rsplit_once("_v").map_or(operation, |(name, _)| name);
        if !OPERATIONS.contains(&name) {
            let name: String = name.chars().take(64).flat_map(char::escape_debug).collect();
            return Err(status!(
                InvalidArgument,
                "the program has a sort whose comparator uses the operation `{name}`; expected operations that compute one value of others, as comparators of jax.lax.sort have them: a comparator that gives different answers to the same question leads a sort beyond its array"
            ));
        }
    }
    if !program.compares_plainly(WRITTEN_OUT) {
        return Err(status!(
            InvalidArgument,
            "the program calls `{WRITTEN_OUT}` with a comparator that is more than a comparison; expected a function that tells whether the first of two arguments is greater, or less, as jax.lax.approx_max_k and approx_min_k have it"
        ));
    }
    let written = program.with_stable_sorts();
    written.map_err(|error| status!(InvalidArgument, "the program cannot be taken: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! made_stable {
        ($name:literal) => {{
            let artifact: &[u8] =
                include_bytes!(concat!("../../../../../tests/data/stablehlo/", $name, ".mlirbc"));
            let made = made_stable(&Program::read(artifact).unwrap());
            made.map(|made| made.is_some()).map_err(|status| status.message().to_owned())
        }};
    }

    #[test]
    fn sorts_that_are_not_stable_become_so_and_others_stay() {
        assert_eq!(made_stable!("sorts-1.10.9"), Ok(true));
        assert_eq!(made_stable!("endless_sort-1.10.9"), Ok(true));
        assert_eq!(made_stable!("add-1.22.0"), Ok(false));
        assert_eq!(made_stable!("approx_max_k-1.10.9"), Ok(false));
    }

    #[test]
    fn comparators_that_may_contradict_themselves_are_refused() {
        assert!(made_stable!("random_sort-1.10.9").unwrap_err().contains("`rng`"));
        assert!(made_stable!("calling_sort-1.10.9").unwrap_err().contains("`call`"));
        for refused in [made_stable!("approx_le-1.10.9"), made_stable!("approx_crossed-1.10.9")] {
            assert!(refused.unwrap_err().contains("approx_max_k"));
        }
    }
}
