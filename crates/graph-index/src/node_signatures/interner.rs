//! Numbers for values; equal values have equal numbers.

use std::{collections::HashMap, hash::Hash, sync::Arc};

/// Values in the order of their numbers.
#[derive(Debug)]
pub(super) struct Interner<T> {
    numbers: HashMap<Arc<T>, u32, foldhash::quality::RandomState>,
    values: Vec<Arc<T>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: HashMap::default(), values: Vec::new() }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// Returns the number of a value.
    pub(super) fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let value = Arc::new(value);
        self.values.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize).map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_number() {
        let mut names = Interner::default();
        assert_eq!((names.number("a"), names.number("b"), names.number("a")), (0, 1, 0));
        assert_eq!((names.get(1), names.get(2)), (Some(&"b"), None));
    }
}
