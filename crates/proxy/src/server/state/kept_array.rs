//! An array of the state under one of its names, with the permits of the name.

use std::sync::{Arc, Weak};

use super::names::{Owner, name_bytes};
use crate::server::{
    arrays::Array,
    budget::{Budget, Permit},
};

/// Permits that a name holds while it is in the state: from its client's quotas, or from the
/// server's budget if it has no client.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "held for as long as the name is in the state")]
pub(crate) struct NameReservation {
    /// Permit for a name that a client requested while its session was open.
    pub(crate) names: Option<Permit>,
    /// Permit for bytes of the file's header.
    pub(crate) header: Option<Permit>,
    /// Permit for an array that is in the state under another name as well.
    pub(crate) bytes: Option<Permit>,
}

impl NameReservation {
    /// Takes the permit of a name without a current client, as far as the budget permits; the
    /// result is false if it does not suffice. Arrays without an owner need no header bytes.
    pub(super) fn of_all(budget: &Budget, name: &str, owner: &Owner) -> (Arc<Self>, bool) {
        let bytes = if *owner == Owner::Unowned { 0 } else { name_bytes(name, owner) };
        let (header, is_all) = budget.take_what_is_there(bytes as u64);
        (Arc::new(Self { header: Some(header), ..Self::default() }), is_all)
    }
}

/// An array of the state.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) owner: Owner,
    /// The array in memory, for later sessions; `None` if it is only in the file.
    pub(super) array: Option<Arc<Array>>,
    /// The array that was saved into the file under this name; `None` if there was none.
    pub(super) saved: Option<Weak<Array>>,
    /// Reservation of the name.
    pub(super) _reservation: Option<Arc<NameReservation>>,
}

impl Kept {
    /// Returns true if `array` is in the state under this name, or was saved under it.
    pub(super) fn is(&self, array: &Arc<Array>) -> bool {
        let kept = self.array.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, array));
        kept || self.saved.as_ref().is_some_and(|saved| saved.as_ptr() == Arc::as_ptr(array))
    }

    /// Returns true if `array`, which may have been freed, is the one in the file.
    pub(super) fn was(&self, array: &Weak<Array>) -> bool {
        self.saved.as_ref().is_some_and(|saved| saved.ptr_eq(array))
    }
}
