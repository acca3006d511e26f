//! The implementation of packed lists that is in use, which the benchmark compares with the other
//! one.
//!
//! Changes without notice: the feature `unstable-bench` is for the benchmarks of this crate alone.

use crate::wire::packed::Implementation;

/// Has packed lists read and written with vector instructions, or one number at a time, in the
/// whole process. Answers whether it is with vector instructions now: a processor without them
/// stays with one at a time.
pub fn use_vector_instructions(vector: bool) -> bool {
    let wanted = if vector { Implementation::fastest() } else { Implementation::Scalar };
    wanted.choose() != Implementation::Scalar
}
