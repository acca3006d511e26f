//! Several consumers, with one value for each of them.
//!
//! Guarantees that there is at least one. Does not depend on the values.

use serdes::version::VersionRule;

use super::{ArtifactLine, Consumer, Findings, Kind, Options};

/// One value for each consumer, in their order; there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Each<T> {
    pub(super) first: T,
    pub(super) others: Vec<T>,
}

impl<T> Each<T> {
    /// Creates the value for one consumer.
    pub(super) const fn one(first: T) -> Self {
        Self { first, others: Vec::new() }
    }

    /// Returns the values, in the order of the consumers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns references to the values.
    pub(super) fn each_ref(&self) -> Each<&T> {
        Each { first: &self.first, others: self.others.iter().collect() }
    }

    /// Applies a function to a reference to each value.
    pub(super) fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> Each<U> {
        Each { first: make(&self.first), others: self.others.iter().map(make).collect() }
    }

    /// Applies a function to each value.
    pub(super) fn map_into<U>(self, mut make: impl FnMut(T) -> U) -> Each<U> {
        Each { first: make(self.first), others: self.others.into_iter().map(make).collect() }
    }

    /// Pairs the values with those of another list for the same consumers.
    pub(super) fn zip<U>(self, other: Each<U>) -> Each<(T, U)> {
        let others = self.others.into_iter().zip(other.others).collect();
        Each { first: (self.first, other.first), others }
    }

    /// Returns the values, in the order of the consumers.
    pub(super) fn into_vec(self) -> Vec<T> {
        let mut all = self.others;
        all.insert(0, self.first);
        all
    }
}

impl<'c> Each<&'c Consumer> {
    /// Creates the list of these consumers, if there are any.
    pub(super) fn of(consumers: &'c [Consumer]) -> Option<Self> {
        let (first, others) = consumers.split_first()?;
        Some(Self { first, others: others.iter().collect() })
    }

    /// Returns the consumers that load artifacts of a kind. If there are none, the first one, which
    /// then stands for the newest release of the other framework; `None` without consumers.
    pub(super) fn for_kind(kind: Kind, consumers: &'c [Consumer]) -> Option<Self> {
        let is_of_jax = kind.of_jax().is_some();
        let mut loading = consumers.iter().filter(|one| one.jaxlib.is_some() == is_of_jax);
        let first = loading.next().or(consumers.first())?;
        Some(Self { first, others: loading.collect() })
    }
}

/// Lines whose numbers decide about artifacts other than graphs.
const LINES: [ArtifactLine; 4] = [
    ArtifactLine::TensorBundle,
    ArtifactLine::Checkpoint,
    ArtifactLine::DeviceState,
    ArtifactLine::Ifrt,
];

/// Returns the findings for each consumer in an artifact other than a graph. It is checked once for
/// all consumers with equal numbers, as most releases have. A refusal by version is made before
/// anything is read, and names the release, so it is made per release.
pub(super) fn check_beside_graphs(
    consumers: &Each<&Consumer>,
    options: &Options,
    check: impl Fn(&Options) -> Findings,
) -> Each<Findings> {
    let mut known: Vec<(&Consumer, Findings)> = Vec::new();
    consumers.map(|consumer| {
        let is_alike = |other: &Consumer| {
            LINES.iter().map(|line| (consumer.line(*line), other.line(*line))).all(
                |(one, other)| {
                    (one.version, one.min_producer) == (other.version, other.min_producer)
                },
            )
        };
        let found = known.iter().find(|(other, _)| is_alike(other));
        if let Some((_, findings)) = found.filter(|(_, findings)| !is_refused_by_number(findings)) {
            return findings.clone();
        }
        let findings = check(&options.clone().with_consumer((*consumer).clone()));
        known.push((consumer, findings.clone()));
        findings
    })
}

fn is_refused_by_number(findings: &Findings) -> bool {
    let rules = [VersionRule::ProducerTooOld, VersionRule::MinConsumer, VersionRule::BadConsumer];
    findings
        .reasons()
        .iter()
        .any(|reason| rules.map(super::Rule::of_versions).contains(&reason.rule))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Rule;

    #[test]
    fn releases_with_the_same_numbers_are_checked_once() {
        let releases = ["2.12", "2.16", "2.21"].map(|name| Consumer::tensorflow(name).unwrap());
        let consumers = Each::of(&releases).unwrap();
        let asked = Cell::new(0);
        let of = |rule| {
            asked.set(0);
            let found = check_beside_graphs(&consumers, &Options::default(), |_| {
                asked.set(asked.get() + 1);
                Findings::default().refused(super::super::Reason::new(rule, "x"))
            });
            (found.into_vec().len(), asked.get())
        };
        assert_eq!(of(Rule::Corrupt), (3, 1));
        assert_eq!(of(Rule::MinConsumer), (3, 3));
    }

    #[test]
    fn each_keeps_the_order_of_the_consumers() {
        let each = Each { first: 1, others: vec![2, 3] };
        assert_eq!(each.iter().copied().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(each.map(|number| number * 2).into_vec(), [2, 4, 6]);
        let pairs = each.clone().zip(each.map(|number| -number));
        assert_eq!(pairs.into_vec(), [(1, -1), (2, -2), (3, -3)]);
        assert_eq!(Each::one(7).into_vec(), [7]);
        assert!(Each::of(&[]).is_none());
    }
}
