//! Selects the implementation of packed lists, so that the benchmark can compare the two.
//!
//! Changes without notice: the feature `unstable-bench` is for the benchmarks of this crate alone.

use crate::wire::packed::Implementation;

/// Selects vector instructions, or one number at a time, for packed lists in the whole process.
/// Returns `true` if vector instructions are in use now: a processor without them keeps to one
/// number at a time.
pub fn use_vector_instructions(vector: bool) -> bool {
    let wanted = if vector { Implementation::fastest() } else { Implementation::Scalar };
    wanted.choose() != Implementation::Scalar
}
