//! The signatures of the functions of a library, each read when it is first needed.
//!
//! Depends on the places of functions, but not on their bodies.

use std::{collections::HashMap, rc::Rc};

use super::{function_memo::Library, instantiate::Definitions};
use crate::{
    graph::{GraphError, function_names::FunctionNames, index::read_signature},
    ops::{Operation, OperationList, Registry},
};

/// Number of signatures of small functions that are kept from one function to the next.
const KEPT: usize = 1 << 10;

/// Length in bytes up to which a function is small: its signature has about the same length.
const SMALL: u64 = 1 << 10;

/// The signatures read so far, by the hashes of the functions' names: each a list with one
/// operation.
#[derive(Debug, Default)]
pub(in super::super) struct Signatures {
    of_large: HashMap<u64, Rc<OperationList>>,
    of_small: HashMap<u64, Rc<OperationList>>,
}

impl Signatures {
    /// Drops signatures that are cheap to reread, if there are many. No function may be in use
    /// meanwhile.
    pub(super) fn forget(&mut self) {
        if self.of_small.len() > KEPT {
            self.of_small = HashMap::new();
        }
    }

    /// Returns the signature of a function that was [`read`](Self::read).
    pub(in super::super) fn get(&self, function: u64) -> Option<&OperationList> {
        self.known(function).map(Rc::as_ref)
    }

    fn known(&self, function: u64) -> Option<&Rc<OperationList>> {
        self.of_small.get(&function).or_else(|| self.of_large.get(&function))
    }

    /// Reads the signature of a function; `None` if the library has none of that name.
    pub(in super::super) fn read(
        &mut self,
        library: Library<'_>,
        function: u64,
    ) -> Result<Option<Rc<OperationList>>, GraphError> {
        if let Some(known) = self.known(function) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(place) = library.names.get(function).map(|function| function.place) else {
            return Ok(None);
        };
        let signature = read_signature(library.source, place, library.release)?;
        let list = Rc::new(OperationList::new([signature]));
        let kept = match place.end.saturating_sub(place.start) < SMALL {
            true => &mut self.of_small,
            false => &mut self.of_large,
        };
        kept.insert(function, Rc::clone(&list));
        Ok(Some(list))
    }
}

/// The definitions of one release, hidden by functions of the same names.
pub(super) struct ReleaseDefinitions<'a> {
    pub(super) names: &'a FunctionNames,
    pub(super) signatures: &'a Signatures,
    pub(super) registry: &'a Registry,
}

impl Definitions for ReleaseDefinitions<'_> {
    fn find(&self, name: &str) -> Option<Operation<'_>> {
        match self.names.find(name.as_bytes()) {
            Some(function) => self.signatures.get(function)?.operation(name),
            None => self.registry.operation(name),
        }
    }

    fn registry(&self) -> &Registry {
        self.registry
    }
}
