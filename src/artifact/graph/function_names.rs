//! The names of the functions of a graph's library, as hashes.
//!
//! Knows which functions are there, and whether a name may have come twice; nothing of what they
//! do.

use std::{
    collections::HashSet,
    hash::{BuildHasher, Hasher},
};

/// Bytes of a function's name that tell it from others.
pub(super) const LONGEST_NAME: usize = 1 << 16;

/// The names of the functions so far, and those that have a gradient.
#[derive(Clone, Default)]
pub(super) struct FunctionNames {
    hasher: foldhash::quality::RandomState,
    functions: HashSet<u64>,
    gradients: HashSet<u64>,
    /// The function that the gradient which is being read is of.
    gradient_of: u64,
    repeated: bool,
}

/// The hashes say nothing to anybody, and differ from run to run.
impl std::fmt::Debug for FunctionNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FunctionNames")
            .field("functions", &self.functions.len())
            .field("repeated", &self.repeated)
            .finish_non_exhaustive()
    }
}

impl FunctionNames {
    pub(super) fn function(&mut self, name: &[u8]) {
        let hash = self.hash(name);
        self.repeated |= !self.functions.insert(hash);
    }

    /// A gradient begins, of the function without a name until it says of which.
    pub(super) fn begin_gradient(&mut self) {
        self.gradient_of = self.hash(b"");
    }

    pub(super) fn gradient_of(&mut self, name: &[u8]) {
        self.gradient_of = self.hash(name);
    }

    pub(super) fn end_gradient(&mut self) {
        self.repeated |= !self.gradients.insert(self.gradient_of);
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The hash that stands for the function of this name, if there is one.
    pub(super) fn find(&self, name: &[u8]) -> Option<u64> {
        Some(self.hash(name)).filter(|hash| self.functions.contains(hash))
    }

    /// Whether a name may have come twice, of a function or of one that has a gradient.
    pub(super) fn repeated(&self) -> bool {
        self.repeated
    }

    fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name);
        hasher.finish()
    }
}
