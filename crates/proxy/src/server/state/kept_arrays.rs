//! Arrays of the state by name, with the sums that are needed for limits on names.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Deref,
    sync::Arc,
};

use super::{kept_array::Kept, names::name_bytes};
use crate::server::arrays::Array;

/// Arrays of the state by name. All changes go through the methods, which update the sums, so that
/// reading them needs no scan.
#[derive(Debug, Default)]
pub(super) struct KeptArrays {
    by_name: BTreeMap<String, Kept>,
    /// Sum of [`name_bytes`] of all arrays.
    name_bytes: usize,
    /// Number of names of each array in memory, by its address.
    name_counts: HashMap<usize, usize>,
}

impl KeptArrays {
    /// Returns the number of bytes of the file's header for the owners of arrays.
    pub(super) const fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// Returns the number of names of an array in the state.
    pub(super) fn name_count(&self, array: &Arc<Array>) -> usize {
        self.name_counts.get(&address(array)).copied().unwrap_or(0)
    }

    /// Stores an array under a name, replacing the previous one.
    pub(super) fn insert(&mut self, name: String, kept: Kept) {
        self.remove(&name);
        self.count(&name, &kept);
        self.by_name.insert(name, kept);
    }

    /// Removes the array of a name.
    pub(super) fn remove(&mut self, name: &str) -> Option<Kept> {
        let kept = self.by_name.remove(name)?;
        self.discount(name, &kept);
        Some(kept)
    }

    /// Changes the array of a name, if there is one. Returns false if there is none.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut Kept)) -> bool {
        let Some((name, mut kept)) = self.by_name.remove_entry(name) else { return false };
        self.discount(&name, &kept);
        change(&mut kept);
        self.count(&name, &kept);
        self.by_name.insert(name, kept);
        true
    }

    fn count(&mut self, name: &str, kept: &Kept) {
        self.name_bytes = self.name_bytes.saturating_add(name_bytes(name, &kept.owner));
        if let Some(array) = &kept.array {
            *self.name_counts.entry(address(array)).or_default() += 1;
        }
    }

    fn discount(&mut self, name: &str, kept: &Kept) {
        self.name_bytes = self.name_bytes.saturating_sub(name_bytes(name, &kept.owner));
        let Some(address) = kept.array.as_ref().map(address) else { return };
        if let Some(count) = self.name_counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.name_counts.remove(&address);
            }
        }
    }
}

impl Deref for KeptArrays {
    type Target = BTreeMap<String, Kept>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

impl FromIterator<(String, Kept)> for KeptArrays {
    fn from_iter<I: IntoIterator<Item = (String, Kept)>>(arrays: I) -> Self {
        let mut kept = Self::default();
        for (name, array) in arrays {
            kept.insert(name, array);
        }
        kept
    }
}

/// Returns the address of an array. It is unique because the state holds the array.
pub(super) fn address(array: &Arc<Array>) -> usize {
    Arc::as_ptr(array).addr()
}

#[cfg(test)]
mod tests {
    use super::super::names::Owner;
    use super::*;
    use proptest::prelude::*;
    use serdes::ifrt::{ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape};

    fn array() -> Arc<Array> {
        let list = DeviceList::from(DeviceId(0));
        let sharding = HloSharding::replicated(list, MemoryKind::new("device")).unwrap();
        let spec = ArraySpec::new(DType::U8, Shape::new([0]).unwrap(), sharding);
        Arc::new(Array { spec, shards: Vec::new() })
    }

    fn kept(owner: Owner, array: Option<Arc<Array>>) -> Kept {
        let saved = array.as_ref().map(Arc::downgrade);
        Kept { owner, array, saved, _reservation: None }
    }

    /// Returns the sums that a scan of all arrays finds.
    fn scan(arrays: &KeptArrays) -> (usize, HashMap<usize, usize>) {
        let mut counts = HashMap::new();
        for array in arrays.values().filter_map(|kept| kept.array.as_ref()) {
            *counts.entry(address(array)).or_default() += 1;
        }
        (arrays.iter().map(|(name, kept)| name_bytes(name, &kept.owner)).sum(), counts)
    }

    fn owner() -> impl Strategy<Value = Owner> {
        let name = || "[a-c]{0,3}";
        prop_oneof![
            Just(Owner::Unowned),
            name().prop_map(Owner::Named),
            name().prop_map(Owner::Known),
        ]
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Insert(String, Owner, Option<usize>),
        Remove(String),
        Change(String, Owner, Option<usize>),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let name = || "[a-c]{1,2}";
        let array = || proptest::option::of(0..4_usize);
        prop_oneof![
            (name(), owner(), array()).prop_map(|(a, b, c)| Operation::Insert(a, b, c)),
            name().prop_map(Operation::Remove),
            (name(), owner(), array()).prop_map(|(a, b, c)| Operation::Change(a, b, c)),
        ]
    }

    proptest! {
        #[test]
        fn kept_arrays_have_the_sums_of_a_scan_after_any_operations(
            operations in proptest::collection::vec(operation(), 0..200)
        ) {
            let several: Vec<_> = std::iter::repeat_with(array).take(4).collect();
            let pick = |at: Option<usize>| at.and_then(|at| several.get(at).cloned());
            let mut arrays = KeptArrays::default();
            for operation in operations {
                match operation {
                    Operation::Insert(name, owner, at) => arrays.insert(name, kept(owner, pick(at))),
                    Operation::Remove(name) => drop(arrays.remove(&name)),
                    Operation::Change(name, owner, at) => {
                        let is_there = arrays.contains_key(&name);
                        prop_assert_eq!(arrays.change(&name, |old| *old = kept(owner, pick(at))), is_there);
                    }
                }
                let (bytes, counts) = scan(&arrays);
                prop_assert_eq!(arrays.name_bytes(), bytes);
                prop_assert_eq!(&arrays.name_counts, &counts);
                for array in &several {
                    let count = counts.get(&address(array)).copied().unwrap_or(0);
                    prop_assert_eq!(arrays.name_count(array), count);
                }
            }
        }
    }
}
