//! The names of outputs to which nodes of functions refer, with a number for each.
//!
//! Does not depend on the outputs of operations.

use std::{cell::RefCell, rc::Rc};

use super::names::{NameHasher, NameMap};

/// The names of outputs that inputs and results refer to, with numbers that are the same in all
/// functions that one reader reads.
#[derive(Clone, Debug, Default)]
pub struct OutputNames(Rc<RefCell<NumberedOutputs>>);

/// Names with their numbers.
#[derive(Debug, Default)]
struct NumberedOutputs {
    hasher: NameHasher,
    numbers: NameMap<u32>,
    /// The last short names, each in the slot that its bytes select.
    recent: [(u128, u32); RECENT_OUTPUTS],
}

/// Number of output names in the cache.
const RECENT_OUTPUTS: usize = 16;

/// Returns the bytes of a short name with its length, never 0; `None` for a longer name.
fn short_name(name: &[u8]) -> Option<u128> {
    let length = u8::try_from(name.len()).ok().filter(|length| *length < 16)?;
    let mut bytes = [0; 16];
    let (first, rest) = bytes.split_first_mut()?;
    *first = length + 1;
    rest.get_mut(..name.len())?.copy_from_slice(name);
    Some(u128::from_le_bytes(bytes))
}

impl OutputNames {
    /// Returns the number of a name, adding a new name.
    pub fn number(&self, name: &[u8]) -> u32 {
        let NumberedOutputs { hasher, numbers, recent } = &mut *self.0.borrow_mut();
        let short = short_name(name).unwrap_or_default();
        let place = recent.get_mut((short >> 8 ^ short) as usize % RECENT_OUTPUTS);
        if let Some((known, number)) = &place
            && *known == short
            && short != 0
        {
            return *number;
        }
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let number = *numbers.entry(hasher.hash(name)).or_insert(next);
        if let Some(place) = place {
            *place = (short, number);
        }
        number
    }

    /// Returns the number of a name; `None` for one that nothing refers to.
    pub fn find(&self, name: &str) -> Option<u32> {
        let names = self.0.borrow();
        names.numbers.get(&names.hasher.hash(name.as_bytes())).copied()
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.0.borrow().numbers.len()
    }
}
