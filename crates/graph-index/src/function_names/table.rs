//! The table of a library's functions, by the hashes of their names.
//!
//! A library can have one function for every nine bytes of a file, so the table takes less than 48
//! bytes for each: entries in the order of the library, in blocks that never move, and an index of
//! 4-byte positions by hash.

use std::collections::HashMap;

use crate::source::Extent;

/// Number of entries per block.
const BLOCK: usize = 1 << 10;

/// The number of a function whose name is too long to be distinguished.
const NAMELESS: u32 = u32::MAX;

/// A function of the library.
#[derive(Clone, Copy, Debug)]
pub struct LibraryFunction {
    /// Its position in the library.
    pub number: u32,
    /// The extent of its FunctionDef in the file.
    pub place: Extent,
    /// The extent of the last function of the same name.
    pub last: Extent,
    /// The position of the last function of the same name.
    pub last_number: u32,
}

/// The functions of a library, each name once.
#[derive(Clone, Default)]
pub(super) struct FunctionTable {
    /// Blocks of [`BLOCK`] entries, all full but the last one.
    blocks: Vec<Vec<Entry>>,
    /// The position of an entry plus 1, in the slot that its hash selects or the next free one; 0
    /// for a free slot.
    slots: Vec<u32>,
    /// The last function with a repeated name, by position: its number and place.
    repeated: HashMap<u32, (u32, Extent)>,
}

/// The first function of a name.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    place: Extent,
    number: u32,
}

impl FunctionTable {
    /// Returns the number of positions.
    pub(super) fn len(&self) -> usize {
        match self.blocks.split_last() {
            Some((last, full)) => full.len() * BLOCK + last.len(),
            None => 0,
        }
    }

    /// Adds a function, without a number if its name is too long to be distinguished; returns false
    /// if the name is a repetition.
    pub(super) fn add(&mut self, hash: u64, number: Option<u32>, place: Extent) -> bool {
        if self.len() >= self.slots.len() - self.slots.len() / 4 {
            self.grow();
        }
        let entry = Entry { hash, place, number: number.unwrap_or(NAMELESS) };
        let (slot, known) = self.find(hash);
        match known.and_then(|position| Some((position, self.entry(position)?))) {
            None => self.push(slot, entry),
            // An entry for the nameless function keeps the order of the library.
            Some((_, known)) if known.number == NAMELESS => self.push(slot, entry),
            Some((position, _)) => {
                let again = (entry.number, place);
                self.repeated.insert(u32::try_from(position).unwrap_or(u32::MAX), again);
            }
        }
        known.is_none()
    }

    fn push(&mut self, slot: usize, entry: Entry) {
        let position = self.len();
        match self.blocks.last_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => last.push(entry),
            None => self.blocks.push(vec![entry]),
        }
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = u32::try_from(position).map_or(u32::MAX, |position| position.saturating_add(1));
        }
    }

    /// Doubles the index.
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(16);
        self.slots = Vec::new();
        self.slots.resize(slots, 0);
        let entries = (1_u32..).zip(self.blocks.iter().flatten());
        for (position, entry) in entries {
            let mut slot = home(entry.hash, slots);
            loop {
                let known = self.slots.get(slot).copied().unwrap_or_default();
                let is_same = |other: u32| {
                    let other = self.entry((other as usize).saturating_sub(1));
                    other.is_some_and(|other| other.hash == entry.hash)
                };
                if known == 0 || is_same(known) {
                    break;
                }
                slot = (slot + 1) % slots;
            }
            if let Some(free) = self.slots.get_mut(slot) {
                *free = position;
            }
        }
    }

    fn entry(&self, position: usize) -> Option<Entry> {
        self.blocks.get(position / BLOCK)?.get(position % BLOCK).copied()
    }

    /// Returns the slot of a hash, and the position of its entry if there is one.
    fn find(&self, hash: u64) -> (usize, Option<usize>) {
        let slots = self.slots.len();
        let mut slot = home(hash, slots);
        // A quarter of the slots is free; the bound only makes the termination obvious.
        for _ in 0..slots {
            let Some(position) = self.slots.get(slot).and_then(|one| one.checked_sub(1)) else {
                break;
            };
            let position = position as usize;
            if self.entry(position).is_some_and(|entry| entry.hash == hash) {
                return (slot, Some(position));
            }
            slot = (slot + 1) % slots;
        }
        (slot, None)
    }

    /// Returns the position of the function that a hash stands for.
    pub(super) fn position(&self, hash: u64) -> Option<usize> {
        self.find(hash).1
    }

    /// Returns the function at a position, with its hash.
    pub(super) fn get(&self, position: usize) -> Option<(u64, LibraryFunction)> {
        let Entry { hash, place, number } = self.entry(position)?;
        if number == NAMELESS {
            return None;
        }
        let again = || self.repeated.get(&u32::try_from(position).ok()?).copied();
        let again = if self.repeated.is_empty() { None } else { again() };
        let (last_number, last) = again.unwrap_or((number, place));
        Some((hash, LibraryFunction { number, place, last, last_number }))
    }

    /// Returns the position of the function that begins at this byte, if it is the first of its
    /// name.
    pub(super) fn position_at(&self, start: u64) -> Option<usize> {
        let is_before =
            |block: &Vec<Entry>| block.first().is_some_and(|one| one.place.start <= start);
        let block = self.blocks.partition_point(is_before).checked_sub(1)?;
        let entries = self.blocks.get(block)?;
        let within = entries.binary_search_by_key(&start, |entry| entry.place.start).ok()?;
        Some(block * BLOCK + within)
    }

    /// Returns the hashes of all names.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().flatten().map(|entry| entry.hash)
    }
}

/// Returns the slot that a hash selects.
fn home(hash: u64, slots: usize) -> usize {
    ((u128::from(hash) * slots as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64) -> Extent {
        Extent { start: number * 10, end: number * 10 + 9 }
    }

    fn hash(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn functions_are_found_by_hash_position_and_place() {
        let mut table = FunctionTable::default();
        for number in 0..5000 {
            assert!(table.add(hash(number), Some(number as u32), place(number)));
        }
        assert_eq!(table.len(), 5000);
        for number in 0..5000 {
            let position = table.position(hash(number)).unwrap();
            assert_eq!((position as u64, table.position_at(number * 10)), (number, Some(position)));
            let (known, function) = table.get(position).unwrap();
            assert_eq!(
                (known, function.place, function.last),
                (hash(number), place(number), place(number))
            );
            assert_eq!(table.position_at(number * 10 + 1), None);
        }
        assert_eq!(table.position(hash(5000)), None);
    }

    #[test]
    fn the_last_function_of_a_name_is_kept_beside_the_first() {
        let mut table = FunctionTable::default();
        for number in 0..3 {
            assert_eq!(table.add(hash(1), Some(number), place(number.into())), number == 0);
        }
        assert_eq!(table.len(), 1);
        let (_, function) = table.get(0).unwrap();
        assert_eq!((function.number, function.place), (0, place(0)));
        assert_eq!((function.last_number, function.last), (2, place(2)));
    }

    #[test]
    fn a_name_that_is_too_long_stands_for_no_function() {
        let mut table = FunctionTable::default();
        assert!(table.add(hash(1), None, place(0)));
        assert!(table.position(hash(1)).is_some() && table.get(0).is_none());
        assert!(!table.add(hash(1), Some(1), place(1)));
        for number in 2..100 {
            assert!(table.add(hash(number), Some(number as u32), place(number)));
        }
        let (_, function) = table.get(table.position(hash(1)).unwrap()).unwrap();
        assert_eq!((function.number, function.place), (1, place(1)));
    }
}
