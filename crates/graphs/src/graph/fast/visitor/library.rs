//! The library of functions during the fast walk, and facts that concern few nodes.
//!
//! Depends on the messages of a library, but not on calls.

use super::{GraphVisitor, MAXIMUM_TEXT, NodeOwner};
use crate::{
    graph::{
        DeprecatedOperation, StructureDiagnostic, StructureDiagnosticKind, rules::shown,
        source::Extent,
    },
    schema::{
        FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, MessageId, OP_DEF,
        fields::{function_def, function_def_library, meta_graph_def_meta_info_def, op_def},
    },
};

/// Limit on the operation types that are counted separately; TensorFlow registers about two
/// thousand.
const MAXIMUM_OPERATIONS: usize = 1 << 16;

/// Limit on the deprecated functions that are kept.
const MAXIMUM_DEPRECATED: usize = 1 << 16;

impl GraphVisitor<'_> {
    #[cold]
    pub(super) fn end_of_bad_node(&mut self, diagnostic: StructureDiagnosticKind) {
        let name = shown(&self.node.name);
        if let Some(graph) = self.graph() {
            graph.structure.get_or_insert_with(|| StructureDiagnostic::new(diagnostic, name));
        }
    }

    #[cold]
    pub(super) fn end_of_deprecated_node(&mut self, position: u32, in_function: bool) {
        let operations = self.operations;
        let Some(operation) = operations.entries().get(position as usize) else { return };
        if in_function {
            self.uses.in_function(position, operation, &self.node.name);
        } else {
            self.uses.in_graph(position, operation, &self.node.name);
        }
    }

    pub(super) fn end_of_function(&mut self, end: u64) {
        self.functions.function(&self.function, Extent { start: self.function_begins, end });
        self.uses.end_function(&self.function);
        let name = &self.function;
        let deprecated = self.function_deprecated.map(|version| DeprecatedOperation {
            name: shown(name),
            version,
            replacement: None,
        });
        if let Some(scanned) = self.scanned() {
            scanned.meta_graph.graph.functions += 1;
            if scanned.deprecated_functions.len() < MAXIMUM_DEPRECATED {
                scanned.deprecated_functions.extend(deprecated);
            }
        }
    }

    /// Handles the start of a message in the library of functions.
    pub(super) fn enter_function(&mut self, message: MessageId, field: &'static Field) {
        match (message, field.number) {
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                self.function.clear();
                self.function_begins = self.begins;
                self.function_deprecated = None;
                self.uses.begin_function();
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::GRADIENT) => {
                self.functions.begin_gradient();
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::REGISTERED_GRADIENTS) => {
                self.functions.begin_registered();
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => self.in_signature = true,
            (OP_DEF, op_def::DEPRECATION) if self.in_signature => {
                self.function_deprecated.get_or_insert(0);
            }
            (FUNCTION_DEF, function_def::NODE_DEF) => {
                // Only nodes in the canonical encoding are checked for ignored attributes.
                self.bodies = None;
                self.owner = NodeOwner::Function;
                self.node.clear();
            }
            _ => {}
        }
    }

    pub(super) fn count_operation(&mut self, name: &[u8]) {
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        } else if self.counts.len() < MAXIMUM_OPERATIONS {
            self.counts.insert(name.to_vec(), 1);
        } else {
            self.overflow = true;
        }
    }

    /// Handles a complete string in the description of a meta graph.
    pub(super) fn keep_text(&mut self, field: &'static Field) {
        let text = std::mem::take(&mut self.text);
        self.text_kept += text.len() + size_of::<String>();
        if self.text_kept > MAXIMUM_TEXT {
            self.overflow = true;
            return;
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if let Some(meta_graph) = self.meta_graph() {
            match field.number {
                meta_graph_def_meta_info_def::TAGS => meta_graph.tags.push(text),
                _ => meta_graph.tensorflow_version = text,
            }
        }
    }
}
