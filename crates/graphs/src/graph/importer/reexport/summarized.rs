//! The functions of a library before they are loaded, with their summaries.
//!
//! Depends on the references between functions, but not on the loading order.

use std::rc::Rc;

use super::{
    super::{
        count,
        function_memo::Library,
        function_summary::{FunctionSummary, Judged},
        instantiate::{BoxedDiagnostic, FunctionDiagnostic},
        lists::Lists,
    },
    named::Named,
};
use crate::graph::{GraphError, function_names::LibraryFunction, source::Extent};

/// A function of the library, before it is loaded.
pub(super) struct Unloaded {
    pub(super) function: LibraryFunction,
    /// The extent of its last definition, which is the one that counts.
    pub(super) place: Extent,
    pub(super) summary: Rc<FunctionSummary>,
}

impl Unloaded {
    pub(super) fn judged(&self) -> Option<&Judged> {
        self.summary.judged.as_deref()
    }

    pub(super) fn named(&self) -> Option<&Named> {
        self.judged()?.named.as_deref()
    }

    /// Returns the first node signature whose nodes need a function that is loaded later; `there`
    /// returns true for loaded functions.
    pub(super) fn needs_later(&self, there: impl Fn(u64) -> bool) -> Option<u32> {
        let mut needed = self.named()?.needed.iter();
        needed.find(|(function, _)| !there(*function)).map(|(_, signature)| *signature)
    }

    /// Returns a diagnostic of the function.
    pub(super) fn find(
        &self,
        diagnostic: impl Fn(&Judged) -> Option<&BoxedDiagnostic>,
    ) -> Option<FunctionDiagnostic> {
        let diagnostic = diagnostic(self.judged()?)?.clone();
        Some(FunctionDiagnostic { function: self.place, diagnostic: diagnostic.into() })
    }
}

/// The functions of a library with their summaries, by their positions.
pub(super) struct Summarized<'a> {
    library: Library<'a>,
    /// `None` for a name that is too long to be distinguished.
    pub(super) summaries: Vec<Option<Rc<FunctionSummary>>>,
    /// By position, the positions of the functions that each names, ascending.
    named: Lists<u32>,
}

impl<'a> Summarized<'a> {
    /// Reads each function.
    pub(super) fn read(library: Library<'a>) -> Result<Self, GraphError> {
        let Library { names, memo, .. } = library;
        let places = names.places();
        let mut functions = Self {
            library,
            summaries: Vec::with_capacity(places),
            named: Lists::with_capacity(places),
        };
        for position in 0..places {
            let summary = match names.at(position) {
                Some((_, function)) => Some(memo.summary(library, function.last)?),
                None => None,
            };
            functions.add(summary);
        }
        Ok(functions)
    }

    pub(super) fn add(&mut self, summary: Option<Rc<FunctionSummary>>) {
        let judged = summary.as_deref().and_then(|summary| summary.judged.as_deref());
        let named = judged.and_then(|judged| judged.named.as_deref());
        let hashes = named.into_iter().flat_map(|named| named.functions.iter());
        let positions = hashes.filter_map(|hash| self.library.names.position(*hash).map(count));
        let mut positions: Vec<u32> = positions.collect();
        positions.sort_unstable();
        self.named.push(positions);
        self.summaries.push(summary);
    }

    pub(super) fn get(&self, position: usize) -> Option<Unloaded> {
        let summary = Rc::clone(self.summaries.get(position)?.as_ref()?);
        let (_, function) = self.library.names.at(position)?;
        Some(Unloaded { function, place: function.last, summary })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Unloaded)> + '_ {
        (0..self.summaries.len()).filter_map(|position| Some((position, self.get(position)?)))
    }

    /// Returns the positions of the functions that a function names, ascending.
    pub(super) fn named_by(&self, position: usize) -> &[u32] {
        &self.named[count(position)]
    }

    /// Returns the first diagnostic of a function.
    pub(super) fn first_diagnostic(
        &self,
        diagnostic: impl Fn(&Judged) -> Option<&BoxedDiagnostic>,
    ) -> Option<FunctionDiagnostic> {
        self.iter().find_map(|(_, function)| function.find(&diagnostic))
    }
}
