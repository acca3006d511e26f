//! Finds the diagnostics that `tf.saved_model.load` reports in the object graph of a SavedModel: in
//! the Python objects that were exported, their references, and the functions that they are or
//! call.
//!
//! The object graph is read once, and the memory for it is bounded. The loader's checks on the
//! checkpoint of the model are not included.
//!
//! Depends on the order of a loader's checks, but not on the bodies of functions.

mod diagnostics;
mod facts;
mod names;
mod order;
mod parameters;
mod path;
mod reader;
mod structures;
mod together;
mod values;

use std::fmt;

use self::{
    diagnostics::{ObjectDiagnostic, ObjectDiagnostics, Whose},
    facts::Facts,
    reader::ObjectReader,
};
use super::{
    GraphError, ImportDiagnostic,
    function_names::FunctionNames,
    release::{PerRelease, Releases},
    source::{Extent, Source},
};
use crate::schema::SAVED_OBJECT_GRAPH;

/// Limit on the parts of the object graph of a file; a real one has one part.
const MOST_PARTS: usize = 16;

/// The extents of a meta graph's object graph: a message may come in parts.
#[derive(Clone, Default)]
pub(super) struct ObjectGraph {
    parts: Vec<Extent>,
    /// True if there are more parts than the limit.
    is_oversized: bool,
}

/// Omits the positions, which differ between the binary and the text form of a graph.
impl fmt::Debug for ObjectGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parts, is_oversized } = self;
        f.debug_struct("ObjectGraph")
            .field("parts", &parts.len())
            .field("is_oversized", is_oversized)
            .finish()
    }
}

impl ObjectGraph {
    /// Adds another part.
    pub(super) fn add(&mut self, part: Extent) {
        self.is_oversized |= self.parts.len() == MOST_PARTS;
        if !self.is_oversized {
            self.parts.push(part);
        }
    }

    /// Returns its parts; `None` if there are none, or more than the limit.
    pub(super) fn parts(&self) -> Option<&[Extent]> {
        let is_looked_at = !self.parts.is_empty() && !self.is_oversized;
        is_looked_at.then_some(self.parts.as_slice())
    }

    /// Returns the diagnostic that `tf.saved_model.load` of each release finds in the objects. The
    /// graph may have nodes without a name unless `are_nodes_named`.
    pub(super) fn diagnostics(
        &self,
        source: Source<'_>,
        functions: &FunctionNames,
        releases: Releases<'_>,
        release: i32,
        are_nodes_named: bool,
    ) -> Result<PerRelease<Option<ImportDiagnostic>>, GraphError> {
        let nothing = releases.all(None);
        if self.parts.is_empty() || self.is_oversized {
            return Ok(nothing);
        }
        let diagnostics = ObjectDiagnostics::new(releases);
        let mut reader = ObjectReader::new(functions, diagnostics, release, are_nodes_named);
        for part in &self.parts {
            source.walk_part(*part, SAVED_OBJECT_GRAPH, &mut reader)?;
        }
        let (facts, mut diagnostics) = reader.finish();
        if facts.is_unclear {
            return Ok(nothing);
        }
        together::judge(&facts, &mut diagnostics);
        diagnostics.first().try_map(|_, first| {
            first
                .map(|diagnostic| self.to_diagnostic(source, diagnostic, &facts, release))
                .transpose()
        })
    }

    fn to_diagnostic(
        &self,
        source: Source<'_>,
        diagnostic: &ObjectDiagnostic,
        facts: &Facts,
        release: i32,
    ) -> Result<ImportDiagnostic, GraphError> {
        let (node, function) = match &diagnostic.whose {
            Whose::Graph => ("object graph".to_owned(), None),
            Whose::Object(number) => {
                (path::of_object(source, &self.parts, facts, *number, release)?, None)
            }
            Whose::Function(name) => (String::new(), Some(name.clone())),
        };
        Ok(ImportDiagnostic {
            kind: diagnostic.kind.clone(),
            node,
            function,
            operation: String::new(),
            found: diagnostic.found.clone(),
            expected: diagnostic.expected.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
