//! The path of an object: the names of the children that lead to it from the root object.
//!
//! Reads the object graph once more, for the names alone, and only for a diagnostic. Depends on
//! names of children, but not on objects' kinds.

use super::facts::Facts;
use crate::{
    graph::{
        GraphError,
        rules::shown,
        source::{Extent, Source},
        whole_text::WholeText,
    },
    scan::{Piece, Step, Visitor},
    schema::{
        Field, MessageId, SAVED_OBJECT, SAVED_OBJECT_GRAPH,
        TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
        fields::{
            saved_object, saved_object_graph,
            trackable_object_graph_trackable_object_object_reference as object_reference,
        },
    },
};

/// Limit on the names in a path; a deeper object is shown by its number.
const LONGEST: usize = 16;

/// Describes an object by the names that lead to it, or by its number.
pub(super) fn of_object(
    source: Source<'_>,
    places: &[Extent],
    facts: &Facts,
    number: u32,
    release: i32,
) -> Result<String, GraphError> {
    let Some(steps) = steps(facts, number) else { return Ok(format!("object {number}")) };
    let names = vec![String::new(); steps.len()];
    let mut reader = NameReader {
        steps,
        names,
        release,
        object: 0,
        child: 0,
        name: Vec::new(),
        text: WholeText::default(),
    };
    for place in places {
        source.walk_part(*place, SAVED_OBJECT_GRAPH, &mut reader)?;
    }
    let names = reader.names.iter().rev().fold("root".to_owned(), |path, name| path + "." + name);
    Ok(format!("object {}", shown(names.as_bytes())))
}

/// Returns the steps from the root object to the object `number`, in reverse order; `None` if they
/// are unknown or too many.
fn steps(facts: &Facts, number: u32) -> Option<Vec<(u32, u32)>> {
    let mut steps = Vec::new();
    let mut object = number;
    while object != 0 {
        let parent = facts.parents.get(object as usize)?.checked_sub(1)?;
        if steps.len() == LONGEST {
            return None;
        }
        steps.push((parent, object));
        object = parent;
    }
    Some(steps)
}

/// A walk over an object graph that reads the names of some children.
struct NameReader {
    steps: Vec<(u32, u32)>,
    names: Vec<String>,
    release: i32,
    object: u32,
    child: u32,
    name: Vec<u8>,
    text: WholeText,
}

impl Visitor for NameReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (SAVED_OBJECT_GRAPH, saved_object_graph::NODES) => Step::Into,
            (SAVED_OBJECT, saved_object::CHILDREN) => {
                self.child = 0;
                self.name.clear();
                Step::Into
            }
            _ => Step::Over,
        }
    }

    fn leave(&mut self, message: MessageId, _field: &'static Field, _at: u64) {
        if message == SAVED_OBJECT_GRAPH {
            self.object = self.object.saturating_add(1);
            return;
        }
        let own = (self.object, self.child);
        for (step, name) in self.steps.iter().zip(&mut self.names) {
            if *step == own && name.is_empty() {
                *name = shown(&self.name);
            }
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        let node = object_reference::NODE_ID;
        if (message, field.number)
            == (TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE, node)
        {
            self.child = value as u32;
        }
    }

    fn string(&mut self, message: MessageId, _field: &'static Field, piece: &[u8], is: Piece) {
        if message == TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE
            && let Some(text) = self.text.take(piece, is)
        {
            self.name.clear();
            self.name.extend_from_slice(text);
        }
    }

    fn release(&self) -> i32 {
        self.release
    }
}
