//! Values that most releases share.
//!
//! Does not depend on the values.

use std::rc::Rc;

use crate::graph::release::{PerRelease, ReleaseId};

/// A value of each release, stored once if it is the same for all. A release that is no longer
/// asking shares another's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ByRelease<T> {
    Same(Rc<T>),
    /// Boxed, so that it is one word: there is one for each function.
    Each(Box<PerRelease<Option<Rc<T>>>>),
}

impl<T> ByRelease<T> {
    /// Returns the values of all releases; `None` if no release that is `asking` has one.
    /// `are_equal` returns true for values that may be stored once.
    pub(super) fn of(
        values: PerRelease<Option<Rc<T>>>,
        asking: impl Fn(ReleaseId) -> bool,
        are_equal: impl Fn(&Rc<T>, &Rc<T>) -> bool,
    ) -> Option<Self> {
        let asked = || values.iter().filter(|(release, _)| asking(*release)).map(|(_, one)| one);
        let first = asked().next()?.clone();
        let is_first = |one: &Option<Rc<T>>| match (one, &first) {
            (Some(one), Some(first)) => are_equal(one, first),
            (one, first) => one.is_none() && first.is_none(),
        };
        let is_common = asked().all(is_first);
        match is_common {
            true => first.map(Self::Same),
            false => Some(Self::Each(Box::new(values))),
        }
    }

    /// Returns the value of a release.
    pub(super) fn get(&self, release: ReleaseId) -> Option<&Rc<T>> {
        match self {
            Self::Same(value) => Some(value),
            Self::Each(values) => values[release].as_ref(),
        }
    }

    /// Returns true if `is` holds for the value of every release that has one.
    pub(super) fn all(&self, is: impl Fn(&T) -> bool) -> bool {
        match self {
            Self::Same(value) => is(value),
            Self::Each(values) => values.values().flatten().all(|value| is(value)),
        }
    }
}

/// Returns true if two values are the same allocation.
pub(super) fn are_one<T>(one: &Rc<T>, other: &Rc<T>) -> bool {
    Rc::ptr_eq(one, other)
}

/// Returns true if two values are the same allocation, or equal.
pub(super) fn are_equal<T: PartialEq>(one: &Rc<T>, other: &Rc<T>) -> bool {
    are_one(one, other) || one == other
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::release::Releases, ops::Registry};

    #[test]
    fn by_release_keeps_a_common_value_once() {
        let registries = [(); 3].map(|()| Registry::tensorflow("2.21").unwrap());
        let releases = Releases::new(&registries);
        let of = |values: [Option<u8>; 3]| {
            let mut values = values.into_iter();
            let values = releases.map(|_, _| values.next().unwrap().map(Rc::new));
            ByRelease::of(values, |release| release.before().is_some(), are_equal)
        };
        assert!(of([Some(1), None, None]).is_none());
        assert!(matches!(of([None, Some(1), Some(1)]), Some(ByRelease::Same(_))));
        let found = of([None, Some(1), None]).unwrap();
        let values: Vec<_> =
            releases.ids().map(|release| found.get(release).map(|one| **one)).collect();
        assert_eq!(values, [None, Some(1), None]);
        assert!(found.all(|one| *one == 1));
    }
}
