//! Budget for the names of a session's arrays in the header of the state file.

use crate::server::{
    budget::{Quota, Reserve},
    state::{NameReservation, Names},
};
use serdes::codec::Status;

/// Permit for the names that a save gives the arrays of an open session.
#[derive(Debug)]
pub(crate) struct LiveNames {
    reserve: Reserve,
    /// Bytes of the names that the client has chosen for individual arrays.
    given: usize,
    /// Bytes of the name of any other array.
    each: usize,
}

impl LiveNames {
    /// Permits are taken and returned in multiples of this many bytes.
    const STEP: usize = 4096;

    /// Creates an empty permit.
    pub(crate) fn new(quota: Quota, names: &Names) -> Self {
        Self { reserve: Reserve::new(quota), given: names.given_bytes(), each: names.most_bytes() }
    }

    /// Ensures a permit for the names of `count` arrays in total.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the quota does not suffice.
    pub(crate) fn make(&mut self, count: usize) -> Result<(), Status> {
        let bytes = self.bytes(count);
        let step = bytes.checked_next_multiple_of(Self::STEP).unwrap_or(bytes);
        self.reserve.make(step).or_else(|_| self.reserve.make(bytes))
    }

    /// Returns what the names of `count` arrays do not need.
    pub(crate) fn shrink(&mut self, count: usize) {
        self.reserve.shrink(self.bytes(count).saturating_add(Self::STEP));
    }

    const fn bytes(&self, count: usize) -> usize {
        let given = if count == 0 { 0 } else { self.given };
        count.saturating_mul(self.each).saturating_add(given)
    }

    /// Splits off the permit of a name that stays in the state when the session ends.
    pub(crate) fn leave(&mut self, bytes: usize) -> NameReservation {
        NameReservation { header: self.reserve.take_out(bytes), ..NameReservation::default() }
    }

    /// Returns the whole permit.
    pub(crate) fn clear(&mut self) {
        self.reserve.clear();
    }
}
