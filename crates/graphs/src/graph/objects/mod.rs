//! Finds the faults that `tf.saved_model.load` reports in the object graph of a SavedModel: in the
//! Python objects that were exported, their references, and the functions that they are or call.
//!
//! The object graph is read once, and what is kept of it is bounded. What a loader asks of the
//! checkpoint beside the model is no part of this.
//!
//! Knows the order in which a loader looks. It must never know what is in a function.

mod facts;
mod faults;
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
    facts::Facts,
    faults::{ObjectFault, ObjectFaults, Whose},
    reader::ObjectReader,
};
use super::{
    GraphError, ImportFault, Loader, MetaGraph,
    function_names::FunctionNames,
    source::{Extent, Source},
};
use crate::{ops::Registry, schema::SAVED_OBJECT_GRAPH};

/// Parts that the object graph of a file may have; a real one has one.
const MOST_PARTS: usize = 16;

/// The extents of a meta graph's object graph: a message may come in parts.
#[derive(Clone, Default)]
pub(super) struct ObjectGraph {
    parts: Vec<Extent>,
    /// True if there are more parts than the limit.
    is_oversized: bool,
}

/// Without the places: the same graph has others in its text form.
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
    /// Another part of it.
    pub(super) fn add(&mut self, part: Extent) {
        self.is_oversized |= self.parts.len() == MOST_PARTS;
        if !self.is_oversized {
            self.parts.push(part);
        }
    }

    /// Its parts, unless there are none or more than are looked at.
    pub(super) fn parts(&self) -> Option<&[Extent]> {
        let is_looked_at = !self.parts.is_empty() && !self.is_oversized;
        is_looked_at.then_some(self.parts.as_slice())
    }

    /// Says of each release that has found nothing yet what `tf.saved_model.load` finds here.
    pub(super) fn judge(
        &self,
        source: Source<'_>,
        functions: &FunctionNames,
        registries: &[Registry],
        release: i32,
        meta_graph: &mut MetaGraph,
    ) -> Result<(), GraphError> {
        let judgements = &meta_graph.graph.judgements;
        let is_open = judgements.iter().any(|judgement| judgement.fault(Loader::Load).is_none());
        if self.parts.is_empty() || self.is_oversized || !is_open {
            return Ok(());
        }
        // Where something is wrong with the nodes, one of them may be without a name.
        let are_nodes_named = meta_graph.graph.structure.is_none();
        let faults = ObjectFaults::new(registries);
        let mut reader = ObjectReader::new(functions, faults, release, are_nodes_named);
        for part in &self.parts {
            source.walk_part(*part, SAVED_OBJECT_GRAPH, &mut reader)?;
        }
        let (facts, mut faults) = reader.finish();
        if facts.is_unclear {
            return Ok(());
        }
        together::judge(&facts, &mut faults);
        let judgements = &mut meta_graph.graph.judgements;
        for (judgement, first) in judgements.iter_mut().zip(faults.first()) {
            if let Some(fault) = first
                && judgement.fault(Loader::Load).is_none()
            {
                let fault = self.in_words(source, fault, &facts, release)?;
                judgement.set_fault(Loader::Load, Some(fault));
            }
        }
        Ok(())
    }

    fn in_words(
        &self,
        source: Source<'_>,
        fault: &ObjectFault,
        facts: &Facts,
        release: i32,
    ) -> Result<ImportFault, GraphError> {
        let (node, function) = match &fault.whose {
            Whose::Graph => ("object graph".to_owned(), None),
            Whose::Object(number) => {
                (path::of_object(source, &self.parts, facts, *number, release)?, None)
            }
            Whose::Function(name) => (String::new(), Some(name.clone())),
        };
        Ok(ImportFault {
            kind: fault.kind.clone(),
            node,
            function,
            operation: String::new(),
            found: fault.found.clone(),
            expected: fault.expected.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
