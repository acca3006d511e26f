//! Files: read at any position, past the system's cache or through it, appearing whole or not at all;
//! and the progress of long work.
//!
//! The code is the crate `serdes-files`; programs get from here what they need of it. This room must
//! never know what the bytes mean.

pub use serdes_files::{
    Cancelled, Durability, EntryKind, FileSystem, Files, LONGEST_STREAM, Phase, Progress, ReadAt,
    Stamp, Tree, Watch, remove_leftovers_of, spool,
};

pub(crate) use serdes_files::*;

/// Bytes for the tests of the modules above.
#[cfg(test)]
pub(crate) mod tests {
    /// Bytes without a pattern that a swap could hide in.
    pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let step = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        std::iter::repeat_with(step).take(bytes).collect()
    }
}
