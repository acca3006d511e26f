//! Collects the nodes of deprecated operations during a walk.
//!
//! Depends on the way uses are counted: once per graph, and inside functions once per function.

use std::collections::HashMap;

use super::{deprecation::DeprecatedOperation, rules::shown};

/// Nodes whose operation is on the list of deprecated ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeprecatedUse {
    /// The entry of the list.
    pub operation: DeprecatedOperation,
    /// The first of the nodes.
    pub node: String,
    /// The function that has them, if any.
    pub function: Option<String>,
    /// The number of its nodes.
    pub count: u64,
}

/// Limit on the uses that are kept; TensorFlow registers about two thousand operations.
const MAXIMUM_USES: usize = 1 << 16;

/// The uses of one graph so far.
#[derive(Debug, Default)]
pub struct DeprecatedUses {
    in_graph: Scope,
    in_functions: Scope,
    /// The index of the first use in the current function, whose name may follow its nodes.
    function_from: usize,
}

/// Uses, with the index of each operation among them, by its position in the list.
#[derive(Debug, Default)]
struct Scope {
    uses: Vec<DeprecatedUse>,
    known: HashMap<u32, usize>,
}

impl Scope {
    fn add(&mut self, position: u32, operation: &DeprecatedOperation, node: &[u8]) {
        if let Some(known) = self.known.get(&position).and_then(|known| self.uses.get_mut(*known)) {
            known.count += 1;
        } else if self.uses.len() < MAXIMUM_USES {
            self.known.insert(position, self.uses.len());
            let (operation, node) = (operation.clone(), shown(node));
            self.uses.push(DeprecatedUse { operation, node, function: None, count: 1 });
        }
    }
}

impl DeprecatedUses {
    /// Adds a node outside functions, whose operation is at `position` of the list.
    pub fn in_graph(&mut self, position: u32, operation: &DeprecatedOperation, node: &[u8]) {
        self.in_graph.add(position, operation, node);
    }

    /// Adds a node of the current function.
    pub fn in_function(&mut self, position: u32, operation: &DeprecatedOperation, node: &[u8]) {
        self.in_functions.add(position, operation, node);
    }

    pub fn begin_function(&mut self) {
        self.in_functions.known.clear();
        self.function_from = self.in_functions.uses.len();
    }

    pub fn end_function(&mut self, name: &[u8]) {
        for found in self.in_functions.uses.get_mut(self.function_from..).unwrap_or_default() {
            found.function = Some(shown(name));
        }
    }

    /// Returns the uses outside functions and those inside functions.
    pub fn finish(self) -> (Vec<DeprecatedUse>, Vec<DeprecatedUse>) {
        (self.in_graph.uses, self.in_functions.uses)
    }
}
