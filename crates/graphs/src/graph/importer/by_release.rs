//! Values that most releases have in common.
//!
//! Knows releases by their numbers. It must never know what the values are.

use std::rc::Rc;

/// A value of each release, one for all of them where it is the same. Releases that do not ask any
/// more have that of others.
#[derive(Clone, Debug)]
pub(super) enum ByRelease<T> {
    Same(Rc<T>),
    #[expect(clippy::box_collection, reason = "one word, as there is one for each function")]
    Each(Box<Vec<Option<Rc<T>>>>),
}

impl<T> ByRelease<T> {
    /// The values of all releases; `None` where no release that is `asking` has one. `are_equal`
    /// says which may be kept once.
    pub(super) fn of(
        values: Vec<Option<Rc<T>>>,
        asking: impl Fn(usize) -> bool,
        are_equal: impl Fn(&Rc<T>, &Rc<T>) -> bool,
    ) -> Option<Self> {
        let mut asked = values.iter().enumerate().filter(|(release, _)| asking(*release));
        let first = asked.next()?.1.clone();
        let is_first = |one: &Option<Rc<T>>| match (one, &first) {
            (Some(one), Some(first)) => are_equal(one, first),
            (one, first) => one.is_none() && first.is_none(),
        };
        match asked.all(|(_, one)| is_first(one)) {
            true => first.map(Self::Same),
            false => Some(Self::Each(Box::new(values))),
        }
    }

    /// The value of a release.
    pub(super) fn get(&self, release: usize) -> Option<&Rc<T>> {
        match self {
            Self::Same(value) => Some(value),
            Self::Each(values) => values.get(release)?.as_ref(),
        }
    }
}

/// True if two values are the same allocation.
pub(super) fn are_one<T>(one: &Rc<T>, other: &Rc<T>) -> bool {
    Rc::ptr_eq(one, other)
}

/// True if two values are the same allocation, or equal.
pub(super) fn are_equal<T: PartialEq>(one: &Rc<T>, other: &Rc<T>) -> bool {
    are_one(one, other) || one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_release_keeps_a_common_value_once() {
        let of = |values: [Option<u8>; 3]| {
            let values = values.map(|value| value.map(Rc::new)).to_vec();
            ByRelease::of(values, |release| release > 0, are_equal)
        };
        assert!(of([Some(1), None, None]).is_none());
        assert!(matches!(of([None, Some(1), Some(1)]), Some(ByRelease::Same(_))));
        let found = of([None, Some(1), None]).unwrap();
        let values = [0, 1, 2].map(|release| found.get(release).map(|one| **one));
        assert_eq!(values, [None, Some(1), None]);
    }
}
