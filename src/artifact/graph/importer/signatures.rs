//! The signatures of the functions of a library, read where somebody asks for one.
//!
//! Knows where functions are. It must never know what is in them.

use std::{collections::HashMap, rc::Rc};

use super::called_bodies::Library;
use crate::artifact::{
    graph::{GraphError, index::read_signature},
    ops::OperationList,
};

/// The signatures so far, by the hashes of the functions' names: each a list with one operation.
#[derive(Debug, Default)]
pub(in super::super) struct Signatures(HashMap<u64, Rc<OperationList>>);

impl Signatures {
    /// The signature of a function that was [`read`](Self::read).
    pub(in super::super) fn get(&self, function: u64) -> Option<&OperationList> {
        self.0.get(&function).map(Rc::as_ref)
    }

    /// Reads the signature of a function; `None` if the library has none of that name.
    pub(in super::super) fn read(
        &mut self,
        library: Library<'_>,
        function: u64,
    ) -> Result<Option<Rc<OperationList>>, GraphError> {
        if let Some(known) = self.0.get(&function) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(place) = library.names.get(function).map(|function| function.place) else {
            return Ok(None);
        };
        let signature = read_signature(library.source, place, library.release)?;
        let list = Rc::new(OperationList::new([signature]));
        self.0.insert(function, Rc::clone(&list));
        Ok(Some(list))
    }
}
