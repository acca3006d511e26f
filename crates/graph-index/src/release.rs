//! The releases for which a graph is judged, and per-release values.
//!
//! A [`PerRelease`] is created from [`Releases`] or from another one, and no value is ever added or
//! removed: it has exactly one for each release. So a list that is too short cannot be mistaken for
//! "no diagnostic".
//!
//! Depends on the order of the releases, but not on the values.

use std::ops::{Index, IndexMut};

use crate::ops::{Operation, Registry};

/// One of the releases for which a graph is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseId(usize);

impl ReleaseId {
    /// Returns the release before it in the list, unless it is the first.
    pub fn before(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

/// Returns the value at the position of a release.
#[expect(clippy::indexing_slicing, reason = "ids and lists come from the same releases")]
fn at<T>(values: &[T], ReleaseId(position): ReleaseId) -> &T {
    &values[position]
}

/// The releases for which a graph is judged, each with its operations.
#[derive(Clone, Copy, Debug)]
pub struct Releases<'a>(&'a [Registry]);

impl<'a> Releases<'a> {
    /// Creates an empty list: nothing that depends on operations is judged.
    pub const NONE: Self = Self(&[]);

    /// Creates the list of the releases with these operations.
    pub fn new(registries: &'a [Registry]) -> Self {
        Self(registries)
    }

    /// Returns true if there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the releases, in their order.
    pub fn ids(self) -> impl DoubleEndedIterator<Item = ReleaseId> {
        (0..self.0.len()).map(ReleaseId)
    }

    /// Returns the releases with their operations, in their order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = (ReleaseId, &'a Registry)> {
        let ids = self.0.iter().enumerate();
        ids.map(|(position, registry)| (ReleaseId(position), registry))
    }

    /// Returns the operations of a release.
    pub fn registry(self, release: ReleaseId) -> &'a Registry {
        at(self.0, release)
    }

    /// Returns the result of `value` for each release.
    pub fn map<T>(self, mut value: impl FnMut(ReleaseId, &'a Registry) -> T) -> PerRelease<T> {
        PerRelease(self.iter().map(|(release, registry)| value(release, registry)).collect())
    }

    /// Returns the result of `value` for each release, up to the first error.
    pub fn try_map<T, E>(
        self,
        mut value: impl FnMut(ReleaseId, &'a Registry) -> Result<T, E>,
    ) -> Result<PerRelease<T>, E> {
        let values = self.iter().map(|(release, registry)| value(release, registry));
        values.collect::<Result<_, E>>().map(PerRelease)
    }

    /// Returns one value for every release.
    pub fn all<T: Clone>(self, value: T) -> PerRelease<T> {
        PerRelease(vec![value; self.0.len()].into())
    }

    /// Returns the operation of this name in each release, with one search in the built-in
    /// operations.
    pub fn operations(self, name: &str) -> PerRelease<Option<Operation<'a>>> {
        PerRelease(Registry::operation_in_each(self.0, name).collect())
    }
}

/// A value for each release for which a graph is judged.
///
/// Index it by a [`ReleaseId`] of the same releases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerRelease<T>(Box<[T]>);

impl<T> PerRelease<T> {
    /// Returns the values with their releases.
    pub fn iter(&self) -> impl Iterator<Item = (ReleaseId, &T)> {
        self.0.iter().enumerate().map(|(position, value)| (ReleaseId(position), value))
    }

    /// Returns mutable references to the values, with their releases.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ReleaseId, &mut T)> {
        self.0.iter_mut().enumerate().map(|(position, value)| (ReleaseId(position), value))
    }

    /// Returns the values in the order of the releases.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Maps each value by `value`.
    pub fn map<U>(self, mut value: impl FnMut(ReleaseId, T) -> U) -> PerRelease<U> {
        let values = self.0.into_iter().enumerate();
        PerRelease(values.map(|(position, one)| value(ReleaseId(position), one)).collect())
    }

    /// Maps each value by `value`, up to the first error.
    pub fn try_map<U, E>(
        self,
        mut value: impl FnMut(ReleaseId, T) -> Result<U, E>,
    ) -> Result<PerRelease<U>, E> {
        let values = self.0.into_iter().enumerate();
        let values = values.map(|(position, one)| value(ReleaseId(position), one));
        values.collect::<Result<_, E>>().map(PerRelease)
    }

    /// Pairs each value with that of another list for the same releases.
    pub fn zip<U>(self, other: PerRelease<U>) -> PerRelease<(T, U)> {
        assert_eq!(self.0.len(), other.0.len(), "lists of values for the same releases");
        PerRelease(self.0.into_iter().zip(other.0).collect())
    }

    /// Returns the values without their releases, in order.
    pub fn into_vec(self) -> Vec<T> {
        self.0.into_vec()
    }
}

impl<T> Index<ReleaseId> for PerRelease<T> {
    type Output = T;

    fn index(&self, release: ReleaseId) -> &T {
        at(&self.0, release)
    }
}

impl<T> IndexMut<ReleaseId> for PerRelease<T> {
    #[expect(clippy::indexing_slicing, reason = "ids and lists come from the same releases")]
    fn index_mut(&mut self, ReleaseId(position): ReleaseId) -> &mut T {
        &mut self.0[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registries() -> Vec<Registry> {
        ["2.12", "2.21"].map(|release| Registry::tensorflow(release).unwrap()).into()
    }

    #[test]
    fn per_release_has_a_value_for_each_release() {
        let registries = registries();
        let releases = Releases::new(&registries);
        let mut names = releases.map(|_, registry| registry.release());
        let ids: Vec<ReleaseId> = releases.ids().collect();
        assert_eq!(ids.iter().map(|id| names[*id]).collect::<Vec<_>>(), ["2.12", "2.21"]);
        names[ids[1]] = "none";
        let pairs = names.zip(releases.all(3)).map(|id, (name, number)| (id, name, number));
        assert_eq!(pairs.into_vec(), [(ids[0], "2.12", 3), (ids[1], "none", 3)]);
        assert_eq!((ids[0].before(), ids[1].before()), (None, Some(ids[0])));
    }

    #[test]
    fn releases_stop_at_the_first_error() {
        let registries = registries();
        let mut asked = 0;
        let found = Releases::new(&registries).try_map(|_, registry| {
            asked += 1;
            if registry.release() == "2.12" { Err("2.12") } else { Ok(()) }
        });
        assert_eq!((found.unwrap_err(), asked), ("2.12", 1));
    }

    #[test]
    #[should_panic(expected = "lists of values for the same releases")]
    fn per_release_is_not_zipped_with_a_shorter_list() {
        let registries = registries();
        let short = Releases::new(&registries[..1]).all(());
        Releases::new(&registries).all(()).zip(short);
    }

    #[test]
    fn releases_find_an_operation_in_each() {
        let registries = registries();
        let found = Releases::new(&registries).operations("BatchMatMulV3");
        assert!(found.values().all(Option::is_some));
        assert!(Releases::NONE.operations("NoOp").values().next().is_none());
    }
}
