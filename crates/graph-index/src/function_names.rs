//! The function names of a graph's library, as hashes.
//!
//! Records the functions and their places, and possible duplicates of names; does not depend on
//! their contents.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hasher},
};

use self::table::FunctionTable;
pub use self::table::LibraryFunction;
use super::source::Extent;

mod table;

/// Number of bytes of a function's name that distinguish it from others.
pub const LONGEST_NAME: usize = 1 << 16;

/// The names of the functions so far, and those that have a gradient.
#[derive(Clone, Default)]
pub struct FunctionNames {
    hasher: foldhash::quality::RandomState,
    functions: FunctionTable,
    count: u32,
    gradients: HashSet<u64>,
    /// Gradient functions and the functions whose gradients they are, as far as they were not in
    /// the library before.
    gradient_parts: Vec<u64>,
    /// The gradient that is being read.
    gradient_is: u64,
    /// The function whose gradient is being read.
    gradient_of: u64,
    /// The hash of the gradient function, by the hash of the operation that it is registered for;
    /// the function need not be in the library; the last registration counts.
    registered: HashMap<u64, u64>,
    /// The registered gradient that is being read: its operation, if it says one, and its function.
    registering: (Option<u64>, u64),
    repeated: bool,
}

/// Without output: the hashes are meaningless outside, and differ from run to run.
impl std::fmt::Debug for FunctionNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FunctionNames")
            .field("functions", &self.count)
            .field("repeated", &self.repeated)
            .finish_non_exhaustive()
    }
}

impl FunctionNames {
    /// Adds the next function of the library. Of a longer name, more than [`LONGEST_NAME`] bytes
    /// must be passed.
    pub fn function(&mut self, name: &[u8], place: Extent) {
        let (name, is_whole) = match name.get(..LONGEST_NAME) {
            Some(beginning) => (beginning, name.len() == LONGEST_NAME),
            None => (name, true),
        };
        let number = self.count;
        self.count = self.count.saturating_add(1);
        let hash = self.hash(name);
        self.repeated |= !self.functions.add(hash, is_whole.then_some(number), place);
    }

    /// Starts a gradient, for the function without a name until a name is read.
    pub fn begin_gradient(&mut self) {
        self.gradient_of = self.hash(b"");
        self.gradient_is = self.gradient_of;
    }

    pub fn gradient_of(&mut self, name: &[u8]) {
        self.gradient_of = self.hash(name);
    }

    pub fn gradient_is(&mut self, name: &[u8]) {
        self.gradient_is = self.hash(name);
    }

    pub fn end_gradient(&mut self) {
        for part in [self.gradient_of, self.gradient_is] {
            let is_known = self.functions.position(part).is_some();
            if !is_known && self.gradient_parts.last() != Some(&part) {
                self.gradient_parts.push(part);
            }
        }
        self.repeated |= !self.gradients.insert(self.gradient_of);
    }

    /// Starts a registered gradient, with neither operation nor name until they are read.
    pub fn begin_registered(&mut self) {
        self.registering = (None, self.hash(b""));
    }

    pub fn registered_of(&mut self, operation: &[u8]) {
        self.registering.0 = Some(self.hash(operation)).filter(|_| !operation.is_empty());
    }

    pub fn registered_is(&mut self, name: &[u8]) {
        self.registering.1 = self.hash(name);
    }

    pub fn end_registered(&mut self) {
        if let (Some(operation), function) = self.registering {
            self.registered.insert(operation, function);
        }
    }

    /// Returns the hash of the registered gradient function of an operation, which need not be in
    /// the library.
    pub fn registered(&self, operation: &[u8]) -> Option<u64> {
        if self.registered.is_empty() {
            return None;
        }
        self.registered.get(&self.hash(operation)).copied()
    }

    /// Returns true if a gradient names a function that is not in the library; false for a library
    /// without functions, whose gradients loaders ignore.
    pub fn has_unresolved_gradient(&self) -> bool {
        let is_unresolved = |part: &u64| self.functions.position(*part).is_none();
        !self.is_empty() && self.gradient_parts.iter().any(is_unresolved)
    }

    /// Returns true if every function has a gradient, so that the chain of gradients never ends.
    pub fn has_gradients_alone(&self) -> bool {
        let has_gradient = |function| self.gradients.contains(&function);
        !self.is_empty() && self.functions.hashes().all(has_gradient)
    }

    /// Returns true if the library has no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.len() == 0
    }

    /// Returns the hash for the function of this name, if it exists.
    pub fn find(&self, name: &[u8]) -> Option<u64> {
        Some(self.hash(name)).filter(|hash| self.functions.position(*hash).is_some())
    }

    /// Returns the function for a hash.
    pub fn get(&self, hash: u64) -> Option<LibraryFunction> {
        Some(self.functions.get(self.functions.position(hash)?)?.1)
    }

    /// Returns the functions, each name once, with their hashes, in the order of the library.
    pub fn iter(&self) -> impl Iterator<Item = (u64, LibraryFunction)> + '_ {
        (0..self.places()).filter_map(|position| self.at(position))
    }

    /// Returns an upper bound of the positions of functions.
    pub fn places(&self) -> usize {
        self.functions.len()
    }

    /// Returns the function at a position in the order of the library, with its hash; `None` if its
    /// name is too long to be distinguished.
    pub fn at(&self, position: usize) -> Option<(u64, LibraryFunction)> {
        self.functions.get(position)
    }

    /// Returns the position of the function for a hash.
    pub fn position(&self, hash: u64) -> Option<usize> {
        self.functions.position(hash)
    }

    /// Returns the position of the first function of a name that begins at this byte.
    pub fn position_at(&self, start: u64) -> Option<usize> {
        self.functions.position_at(start)
    }

    /// Returns true if two functions, or two gradients of one function, may have the same name.
    pub fn repeated(&self) -> bool {
        self.repeated
    }

    /// Returns a hash of another name, as opaque as those of functions.
    pub fn hash_of(&self, name: &mut dyn Iterator<Item = u8>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        name.for_each(|byte| hasher.write_u8(byte));
        hasher.finish()
    }

    fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name);
        hasher.finish()
    }
}
