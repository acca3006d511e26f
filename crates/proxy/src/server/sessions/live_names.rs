//! Room that the names of a session's arrays take in the header of the state's file.

use crate::server::{
    budget::{Quota, Reserve},
    state::{NameReservation, Names},
};
use serdes::codec::Status;

/// Room for the names that a save gives the arrays of an open session.
#[derive(Debug)]
pub(crate) struct LiveNames {
    reserve: Reserve,
    /// Bytes of the names that the client has chosen for single arrays.
    given: usize,
    /// Bytes of the name of any other array.
    each: usize,
}

impl LiveNames {
    /// Room is taken and given back in multiples of that many bytes.
    const STEP: usize = 4096;

    /// Creates no room yet.
    pub(crate) fn new(quota: Quota, names: &Names) -> Self {
        Self { reserve: Reserve::new(quota), given: names.given_bytes(), each: names.most_bytes() }
    }

    /// Makes room for the names of `count` arrays in all.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is not that much.
    pub(crate) fn make(&mut self, count: usize) -> Result<(), Status> {
        let bytes = self.bytes(count);
        let step = bytes.checked_next_multiple_of(Self::STEP).unwrap_or(bytes);
        self.reserve.make(step).or_else(|_| self.reserve.make(bytes))
    }

    /// Gives back what the names of `count` arrays do not need.
    pub(crate) fn shrink(&mut self, count: usize) {
        self.reserve.shrink(self.bytes(count).saturating_add(Self::STEP));
    }

    const fn bytes(&self, count: usize) -> usize {
        let given = if count == 0 { 0 } else { self.given };
        count.saturating_mul(self.each).saturating_add(given)
    }

    /// Room of a name that stays in the state when the session ends.
    pub(crate) fn leave(&mut self, bytes: usize) -> NameReservation {
        NameReservation { header: self.reserve.take_out(bytes), ..NameReservation::default() }
    }

    /// Gives everything back.
    pub(crate) fn clear(&mut self) {
        self.reserve.clear();
    }
}
