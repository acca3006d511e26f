//! The inferred outputs of all nodes that were visited.
//!
//! Depends on the numbers of nodes and outputs only.

use super::tensor::Tensor;

/// The first outputs of each node.
#[derive(Debug)]
pub(super) struct Known {
    nodes: Vec<Outputs>,
    outputs: Vec<Tensor>,
}

/// The range of a node's outputs in the list of all.
#[derive(Clone, Copy, Debug, Default)]
struct Outputs {
    at: u32,
    count: u32,
}

impl Known {
    /// Creates a list for this number of nodes, none of which has outputs yet.
    pub(super) fn of(nodes: usize) -> Self {
        Self { nodes: vec![Outputs::default(); nodes], outputs: Vec::new() }
    }

    /// Sets the outputs of a node; trailing unknown ones are not kept.
    pub(super) fn set(&mut self, node: u32, outputs: Vec<Tensor>) {
        let last = outputs.iter().rposition(|output| *output != Tensor::nothing());
        let Some(count) = last.map(|last| last + 1) else { return };
        let (at, many) = (u32::try_from(self.outputs.len()), u32::try_from(count));
        if let (Some(place), Ok(at), Ok(many)) = (self.nodes.get_mut(node as usize), at, many) {
            *place = Outputs { at, count: many };
            self.outputs.extend(outputs.into_iter().take(count));
        }
    }

    /// Returns the inferred tensor of an output, if any.
    pub(super) fn get(&self, node: u32, output: usize) -> Option<&Tensor> {
        let Outputs { at, count } = *self.nodes.get(node as usize)?;
        self.outputs.get(at as usize..)?.get(..count as usize)?.get(output)
    }
}
