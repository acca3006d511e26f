//! A cache of the functions of a library, each read once.
//!
//! For most functions only a [`FunctionSummary`] is needed and kept. One that needs the slow path
//! is kept completely, up to a limit, and read again beyond that.
//!
//! Depends on the places of functions, but not on the use of the cache.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use super::{
    function_summary::{FunctionSummary, LeafKey},
    signature_facts::KnownSignatures,
};
use crate::graph::{
    GraphError,
    diagnostic::Part,
    function_names::FunctionNames,
    index::{FunctionDepth, FunctionIndex, FunctionReader},
    name_of,
    release::{ReleaseId, Releases},
    source::{Extent, Source},
};

/// Limit on the nodes, inputs and other parts of all functions that are kept whole.
const KEPT: usize = 1 << 16;

/// Number of parts that an empty function is counted as.
const EMPTY: usize = 24;

/// Summaries that are shared among functions: real libraries have some hundred.
const SHARED: usize = 1 << 10;

/// The file, the library and the releases.
#[derive(Clone, Copy)]
pub(in super::super) struct Library<'a> {
    pub(in super::super) source: Source<'a>,
    pub(in super::super) names: &'a FunctionNames,
    /// The functions that were read before.
    pub(in super::super) memo: &'a FunctionMemo,
    pub(in super::super) releases: Releases<'a>,
    /// The GraphDef version of the release that reads the text form.
    pub(in super::super) release: i32,
    /// True if the shapes of tensors are inferred.
    pub(in super::super) follows_shapes: bool,
}

/// The functions of one library that were read, and their summaries for the releases.
#[derive(Debug, Default)]
pub(in super::super) struct FunctionMemo(RefCell<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// Reads one function after the other.
    reader: Option<FunctionReader>,
    /// The facts of the releases about the node signatures that the reader knows.
    node_signatures: KnownSignatures,
    summaries: Summaries,
    /// Summaries of functions that differ in nothing else than their names.
    shared: HashMap<LeafKey, Rc<FunctionSummary>>,
    /// The last other summary: functions mostly share their diagnostic.
    last: Option<Rc<FunctionSummary>>,
    functions: HashMap<u64, Rc<FunctionIndex>>,
    /// Number of parts of `functions`, bounded by [`KEPT`].
    kept: usize,
    /// The names that were read last, and their function and part.
    named: Option<((Extent, Part), Names)>,
    calling: Option<(Extent, String)>,
}

/// The names of a function and of a part of it, for messages.
type Names = (String, String);

impl FunctionMemo {
    /// Returns the summary of the function at an extent of the file.
    pub(super) fn summary(
        &self,
        library: Library<'_>,
        place: Extent,
    ) -> Result<Rc<FunctionSummary>, GraphError> {
        let memory = &mut *self.0.borrow_mut();
        let Library { names, releases, .. } = library;
        if let Some(known) = memory.summaries.get(names, place) {
            return Ok(Rc::clone(known));
        }
        let function = memory.read(library, place)?;
        let summary = FunctionSummary::of(&function, names, releases, &mut memory.node_signatures);
        let summary = memory.share(summary);
        memory.summaries.insert(names, place, Rc::clone(&summary));
        // A trivially valid function is not read again, except for its shapes.
        let is_trivially_valid = releases.ids().all(|release| summary.is_trivially_valid(release));
        if library.follows_shapes || !is_trivially_valid {
            memory.keep(place, &function);
        }
        Ok(summary)
    }

    /// Returns the summary of the function at a place, if it was read before.
    pub(super) fn known(&self, library: Library<'_>, place: Extent) -> Option<Rc<FunctionSummary>> {
        self.0.borrow().summaries.get(library.names, place).cloned()
    }

    /// Returns true if a release is known to find nothing in the function at an extent of the file.
    pub(super) fn is_trivially_valid(
        &self,
        library: Library<'_>,
        place: Extent,
        release: ReleaseId,
    ) -> bool {
        let memory = self.0.borrow();
        memory
            .summaries
            .get(library.names, place)
            .is_some_and(|known| known.is_trivially_valid(release))
    }

    /// Returns the names of a function and of a part of it, for messages. All releases and loaders
    /// mostly find the same one, which is read once: it may be as large as the file.
    pub(super) fn names(
        &self,
        library: Library<'_>,
        function: Extent,
        part: Part,
    ) -> Result<Names, GraphError> {
        let named = &mut self.0.borrow_mut().named;
        if let Some((_, known)) = named.as_ref().filter(|(of, _)| *of == (function, part)) {
            return Ok(known.clone());
        }
        let Library { source, release, .. } = library;
        let names = name_of::part_of_function(source, function, part, release)?;
        *named = Some(((function, part), names.clone()));
        Ok(names)
    }

    /// Returns the name of a node that calls a function, for messages; read once as well.
    pub(super) fn calling_node(
        &self,
        library: Library<'_>,
        place: Extent,
    ) -> Result<String, GraphError> {
        let calling = &mut self.0.borrow_mut().calling;
        if let Some((_, known)) = calling.as_ref().filter(|(of, _)| *of == place) {
            return Ok(known.clone());
        }
        let name = name_of::node(library.source, place, library.release)?;
        *calling = Some((place, name.clone()));
        Ok(name)
    }

    /// Returns the function at a place, with its node signatures.
    pub(super) fn index(
        &self,
        library: Library<'_>,
        place: Extent,
    ) -> Result<Rc<FunctionIndex>, GraphError> {
        let memory = &mut *self.0.borrow_mut();
        if let Some(known) = memory.functions.get(&place.start) {
            return Ok(Rc::clone(known));
        }
        let function = memory.read(library, place)?;
        memory.keep(place, &function);
        Ok(function)
    }
}

/// The summaries of a library's functions.
#[derive(Debug, Default)]
struct Summaries {
    /// The summary of the first function of each name, by position.
    first: Vec<Option<Rc<FunctionSummary>>>,
    /// The summaries of other functions, by the offsets of their starts.
    others: HashMap<u64, Rc<FunctionSummary>>,
}

impl Summaries {
    fn get(&self, names: &FunctionNames, place: Extent) -> Option<&Rc<FunctionSummary>> {
        match names.position_at(place.start) {
            Some(position) => self.first.get(position)?.as_ref(),
            None => self.others.get(&place.start),
        }
    }

    fn insert(&mut self, names: &FunctionNames, place: Extent, summary: Rc<FunctionSummary>) {
        let Some(position) = names.position_at(place.start) else {
            self.others.insert(place.start, summary);
            return;
        };
        if self.first.is_empty() {
            self.first = vec![None; names.places()];
        }
        if let Some(known) = self.first.get_mut(position) {
            *known = Some(summary);
        }
    }
}

impl Memory {
    /// Returns a summary like this one: a known one where functions of the same kind were read
    /// before.
    fn share(&mut self, summary: FunctionSummary) -> Rc<FunctionSummary> {
        let Some(key) = summary.leaf_key() else {
            return match &self.last {
                Some(known) if **known == summary => Rc::clone(known),
                _ => Rc::clone(self.last.insert(Rc::new(summary))),
            };
        };
        if let Some(known) = self.shared.get(&key) {
            return Rc::clone(known);
        }
        if self.shared.len() >= SHARED {
            self.shared.clear();
        }
        let summary = Rc::new(summary);
        self.shared.insert(key, Rc::clone(&summary));
        summary
    }

    fn read(
        &mut self,
        library: Library<'_>,
        place: Extent,
    ) -> Result<Rc<FunctionIndex>, GraphError> {
        let Library { source, names, releases, release, .. } = library;
        let depth =
            if releases.is_empty() { FunctionDepth::Names } else { FunctionDepth::NodeSignatures };
        if self.reader.as_ref().is_some_and(FunctionReader::is_full) {
            // The numbers of node signatures are those of one reader.
            (self.reader, self.node_signatures) = (None, KnownSignatures::default());
        }
        let reader = self.reader.get_or_insert_with(|| FunctionReader::new(depth));
        Ok(Rc::new(reader.read(source, place, names, release)?))
    }

    fn keep(&mut self, place: Extent, function: &Rc<FunctionIndex>) {
        let parts = [
            function.nodes.len(),
            function.inputs.len(),
            function.arguments.len(),
            function.results.len(),
            function.given.input_shapes.len(),
            function.node_signatures.len(),
        ];
        let size = parts.iter().fold(EMPTY, |size, parts| size.saturating_add(*parts));
        if self.kept.saturating_add(size) <= KEPT {
            self.kept += size;
            self.functions.insert(place.start, Rc::clone(function));
        }
    }
}
