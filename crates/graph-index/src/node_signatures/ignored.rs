//! The nodes with attributes that a release does not know and ignores, although their values
//! matter.

use std::collections::HashMap;

use super::{ignored_set::IgnoredBy, table::NodeSignatures};
use crate::{IgnoredAttribute, attributes::Attributes, release::ReleaseId, rules::shown};

/// Limit on the attributes that are kept for each release.
const MAXIMUM_IGNORED: usize = 1024;

/// The uses of ignored attributes, in the order of the file.
#[derive(Debug, Default)]
pub struct IgnoredUses {
    uses: Vec<IgnoredUse>,
    /// The index in `uses`, by the number of the set.
    positions: HashMap<u32, usize>,
    /// The index of the first use that did not occur before the current function.
    function_from: usize,
}

/// A set of ignored attributes with its first node.
#[derive(Debug)]
struct IgnoredUse {
    set: u32,
    node: String,
    function: Option<String>,
    operation: String,
    /// The values of each attribute of the set.
    values: Vec<String>,
    nodes: u64,
}

impl IgnoredUses {
    /// Adds a node outside functions with ignored attributes.
    pub fn in_graph(
        &mut self,
        node_signatures: &NodeSignatures<'_>,
        set: u32,
        node: &[u8],
        operation: &[u8],
        attributes: &Attributes,
    ) {
        if set == 0 {
            return;
        }
        if let Some(known) = self.known(set) {
            known.nodes += 1;
        } else if self.uses.len() < MAXIMUM_IGNORED
            && let Some(ignored) = node_signatures.ignored(set)
        {
            let value = |ignored: &IgnoredBy| {
                let value = attributes.get(ignored.attribute);
                value.map_or_else(String::new, |value| shown(value.to_string().as_bytes()))
            };
            let values = ignored.attributes.iter().map(value).collect();
            self.positions.insert(set, self.uses.len());
            let (node, operation) = (shown(node), shown(operation));
            self.uses.push(IgnoredUse { set, node, function: None, operation, values, nodes: 1 });
        }
    }

    /// Adds another node with a set that occurred before, in a function or not.
    pub fn again(&mut self, set: u32) {
        if let Some(known) = self.known(set) {
            known.nodes += 1;
        }
    }

    /// Adds a use of a set that occurred before; the set 0 has none.
    fn known(&mut self, set: u32) -> Option<&mut IgnoredUse> {
        self.uses.get_mut(*self.positions.get(&set)?)
    }

    /// Adds a node of the current function.
    pub fn in_function(
        &mut self,
        node_signatures: &NodeSignatures<'_>,
        set: u32,
        node: &[u8],
        operation: &[u8],
        attributes: &Attributes,
    ) {
        let before = self.uses.len();
        self.in_graph(node_signatures, set, node, operation, attributes);
        if self.uses.len() > before
            && let Some(first) = self.uses.last_mut()
        {
            first.function = Some(String::new());
        }
    }

    pub fn begin_function(&mut self) {
        self.function_from = self.uses.len();
    }

    /// Sets the name of the function that was read.
    pub fn end_function(&mut self, name: &[u8]) {
        let own = self.uses.get_mut(self.function_from..).unwrap_or_default();
        for function in own.iter_mut().filter_map(|ignored| ignored.function.as_mut()) {
            *function = shown(name);
        }
    }

    /// Returns the attributes that a release ignores: each attribute of each operation once.
    pub fn of_release(
        &self,
        node_signatures: &NodeSignatures<'_>,
        release: ReleaseId,
    ) -> Vec<IgnoredAttribute> {
        let mut found: Vec<IgnoredAttribute> = Vec::new();
        let mut positions: HashMap<(&str, &str), usize> = HashMap::new();
        for ignored in &self.uses {
            let Some(set) = node_signatures.ignored(ignored.set) else { continue };
            let by = set.attributes.iter().zip(&ignored.values);
            for (by, value) in by.filter(|(by, _)| by.releases.contains(&release)) {
                let key = (ignored.operation.as_str(), by.attribute);
                let known = positions.get(&key).and_then(|position| found.get_mut(*position));
                if let Some(known) = known {
                    known.nodes += ignored.nodes;
                } else if found.len() < MAXIMUM_IGNORED {
                    positions.insert(key, found.len());
                    found.push(IgnoredAttribute {
                        node: ignored.node.clone(),
                        function: ignored.function.clone(),
                        operation: ignored.operation.clone(),
                        attribute: by.attribute.to_string(),
                        value: value.clone(),
                        since: by.since,
                        nodes: ignored.nodes,
                    });
                }
            }
        }
        found
    }
}
