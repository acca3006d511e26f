//! Node names as hashes that a file cannot predict.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hasher},
};

/// A name that is not kept, as a hash long enough to make collisions negligible.
pub type Name = [u64; 2];

/// A map by names, which are already hashes.
pub type NameMap<V> = HashMap<Name, V, BuildHasherDefault<NameIsHash>>;

/// Uses a name as its own hash.
#[derive(Clone, Debug, Default)]
pub struct NameIsHash(u64);

impl Hasher for NameIsHash {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for half in bytes.as_chunks::<8>().0 {
            self.0 ^= u64::from_ne_bytes(*half);
        }
    }

    /// The length of a name is constant.
    #[inline]
    fn write_usize(&mut self, _length: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Hashes names, with a different key in every run.
#[derive(Debug, Default)]
pub(super) struct NameHasher([foldhash::quality::RandomState; 2]);

impl NameHasher {
    #[inline]
    pub(super) fn hash(&self, name: &[u8]) -> Name {
        let hash = |state: &foldhash::quality::RandomState| {
            let mut hasher = state.build_hasher();
            hasher.write(name);
            hasher.finish()
        };
        // `map` of an array is not inlined here, and this runs for each input.
        let [home, kept] = &self.0;
        [hash(home), hash(kept)]
    }
}

/// Names in one block of memory, each in the slot that its hash selects or the next free one; 12
/// bytes per slot.
///
/// One half of a hash selects the slot, the other is stored. Entries never move, so that a slot
/// identifies a name.
#[derive(Debug)]
struct NameTable {
    /// 0 for a free slot.
    hashes: Vec<u64>,
    /// The number of the node with the name plus 1; 0 if there is none, so far.
    owners: Vec<u32>,
    used: usize,
}

impl NameTable {
    /// Creates a table with room for `count` names.
    fn for_names(count: usize) -> Self {
        let places = count.saturating_add(count / 8).saturating_add(16);
        Self { hashes: vec![0; places], owners: vec![0; places], used: 0 }
    }

    fn is_full(&self) -> bool {
        self.used >= self.hashes.len() - self.hashes.len() / 10
    }

    /// Returns the slot of a name, and true if the name is in it.
    #[inline]
    fn find(&self, [home, kept]: Name) -> (usize, bool) {
        let mut place = ((u128::from(home) * self.hashes.len() as u128) >> 64) as usize;
        // Some slots are always free; the bound only makes the termination obvious.
        for _ in 0..self.hashes.len() {
            match self.hashes.get(place) {
                Some(0) => break,
                Some(hash) if *hash == kept => return (place, true),
                Some(_) => place += 1,
                None => place = 0,
            }
        }
        (place, false)
    }

    #[inline]
    fn put(&mut self, place: usize, [_, kept]: Name) {
        if let Some(free) = self.hashes.get_mut(place) {
            *free = kept;
            self.used += 1;
        }
    }
}

/// Numbers the names that nodes have or refer to, and records the node with each.
///
/// There is one table if the graph has as many names as estimated. Otherwise each further table is
/// as large as all before it.
#[derive(Debug)]
pub(super) struct NodeNames {
    hasher: NameHasher,
    tables: Vec<NameTable>,
    /// The last names with their numbers, each where its hash belongs: most inputs name a node that
    /// came shortly before.
    recent: Box<[(u64, u32)]>,
}

/// Number of names in the cache: 16 KiB.
const RECENT: usize = 1024;

/// Number of names that are numbered.
pub(super) const MOST_NAMES: u32 = (1 << 30) - 1;

/// The smallest table.
const FEW: usize = 16;

impl NodeNames {
    /// Creates a table for a graph of this number of nodes.
    pub(super) fn of(nodes: usize) -> Self {
        let tables = vec![NameTable::for_names(nodes.max(FEW))];
        Self { hasher: NameHasher::default(), tables, recent: vec![(0, 0); RECENT].into() }
    }

    /// Returns the hasher whose hashes [`number_of`](Self::number_of) accepts.
    pub(super) fn hasher(&self) -> &NameHasher {
        &self.hasher
    }

    /// Returns the number of a name; [`MOST_NAMES`] if there are too many names.
    #[inline]
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        self.number_of(self.hasher.hash(name))
    }

    /// Returns the number of a name by its hash.
    #[inline]
    pub(super) fn number_of(&mut self, [home, kept]: Name) -> u32 {
        // A hash that would mark a free slot is replaced by another one.
        let name = [home, kept | u64::from(kept == 0)];
        let near = (home >> 20) as usize % RECENT;
        match self.recent.get(near) {
            Some((hash, number)) if *hash == name[1] => *number,
            _ => {
                let number = self.find(name);
                if let Some(recent) = self.recent.get_mut(near) {
                    *recent = (name[1], number);
                }
                number
            }
        }
    }

    fn find(&mut self, name: Name) -> u32 {
        let mut base = 0;
        let mut free = 0;
        for table in &self.tables {
            let (place, is_there) = table.find(name);
            if is_there {
                return numbered(base + place);
            }
            free = place;
            base += table.hashes.len();
        }
        let last = self.tables.last_mut();
        let Some(last) = last.filter(|table| !table.is_full()) else { return self.add(base, name) };
        last.put(free, name);
        numbered(base - last.hashes.len() + free)
    }

    /// Puts a name into another table.
    #[cold]
    fn add(&mut self, base: usize, name: Name) -> u32 {
        if base >= MOST_NAMES as usize {
            return MOST_NAMES;
        }
        let mut table = NameTable::for_names(base);
        let (place, _) = table.find(name);
        table.put(place, name);
        self.tables.push(table);
        numbered(base + place)
    }

    /// Assigns a name to a node; returns false if another node has it.
    pub(super) fn give(&mut self, name: &[u8], node: u32) -> bool {
        let mut place = self.number(name) as usize;
        for table in &mut self.tables {
            if let Some(owner) = table.owners.get_mut(place) {
                let is_free = *owner == 0;
                if is_free {
                    *owner = node.saturating_add(1);
                }
                return is_free;
            }
            place -= table.owners.len();
        }
        false
    }

    /// Returns the node that has the name of this number.
    #[inline]
    pub(super) fn node(&self, number: u32) -> Option<u32> {
        let mut place = number as usize;
        for table in &self.tables {
            if let Some(owner) = table.owners.get(place) {
                return owner.checked_sub(1);
            }
            place -= table.owners.len();
        }
        None
    }

    /// Returns true if there were more names than numbers.
    pub(super) fn is_overfull(&self) -> bool {
        let places: usize = self.tables.iter().map(|table| table.hashes.len()).sum();
        places > MOST_NAMES as usize
    }
}

fn numbered(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(MOST_NAMES).min(MOST_NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u32) -> Vec<u8> {
        format!("scope/node_{number}").into_bytes()
    }

    #[test]
    fn a_name_has_one_number_however_many_tables_there_are() {
        for expected in [0, 10, 5000, 20_000] {
            let mut names = NodeNames::of(expected);
            let numbers: Vec<u32> = (0..20_000).map(|node| names.number(&name(node))).collect();
            let different: std::collections::HashSet<&u32> = numbers.iter().collect();
            assert_eq!(different.len(), numbers.len());
            for (node, number) in (0..20_000).zip(&numbers).rev() {
                assert_eq!((names.number(&name(node)), names.node(*number)), (*number, None));
                assert!(names.give(&name(node), node));
                assert!(!names.give(&name(node), node + 1));
            }
            let owners: Vec<_> = numbers.iter().map(|number| names.node(*number)).collect();
            assert_eq!(owners, (0..20_000).map(Some).collect::<Vec<_>>());
            assert_eq!(names.tables.len() == 1, expected == 20_000);
        }
    }

    #[test]
    fn a_table_takes_14_bytes_a_name() {
        let names = NodeNames::of(1_000_000);
        let places: usize = names.tables.iter().map(|table| table.hashes.len()).sum();
        assert!(places * 12 < 14_000_000);
    }
}
