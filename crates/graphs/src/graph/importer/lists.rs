//! Lists by number, kept one after the other.
//!
//! Depends on numbers, but not on the contents of a list.

use std::ops::Index;

/// Converts a length to 32 bits, which suffice for every count in a file.
pub(super) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Lists for the numbers from 0, in one allocation. Index it by a number below the number of lists.
#[derive(Debug, Default)]
pub(super) struct Lists<T> {
    values: Vec<T>,
    /// The end of each list in `values`, where the next one begins.
    ends: Vec<u32>,
}

impl<T> Lists<T> {
    /// Creates an empty set with room for this number of lists.
    pub(super) fn with_capacity(lists: usize) -> Self {
        Self { values: Vec::new(), ends: Vec::with_capacity(lists) }
    }

    /// Adds the next list.
    pub(super) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.values.extend(list);
        self.ends.push(count(self.values.len()));
    }
}

impl<T: Copy + Default> Lists<T> {
    /// Creates `lists` lists from values with the number of their list. Values keep their order.
    pub(super) fn of(values: impl Iterator<Item = (u32, T)> + Clone, lists: usize) -> Self {
        let mut ends = vec![0_u32; lists];
        for (list, _) in values.clone() {
            if let Some(count) = ends.get_mut(list as usize) {
                *count += 1;
            }
        }
        let mut total = 0;
        for end in &mut ends {
            // At first the end equals the start; each value advances it.
            let count = std::mem::replace(end, total);
            total = total.saturating_add(count);
        }
        let mut all = vec![T::default(); total as usize];
        for (list, value) in values {
            if let Some(end) = ends.get_mut(list as usize)
                && let Some(place) = all.get_mut(*end as usize)
            {
                *place = value;
                *end += 1;
            }
        }
        Self { values: all, ends }
    }
}

impl<T> Index<u32> for Lists<T> {
    type Output = [T];

    #[expect(clippy::indexing_slicing, reason = "numbers are those of the lists; ends ascend")]
    fn index(&self, list: u32) -> &[T] {
        let from = list.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.values[from as usize..self.ends[list as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_values_of_their_numbers_in_order() {
        let values = [(2, 'a'), (0, 'b'), (2, 'c'), (0, 'd')];
        let lists = Lists::of(values.into_iter(), 4);
        let mut pushed = Lists::with_capacity(4);
        for list in 0..4_u32 {
            pushed.push(values.iter().filter(|(of, _)| *of == list).map(|(_, value)| *value));
            assert_eq!(lists[list], pushed[list]);
        }
        assert_eq!((&lists[0], &lists[1], &lists[2]), (&['b', 'd'][..], &[][..], &['a', 'c'][..]));
    }
}
