//! The VersionDefs that producers record, and the consumers of the known lines. [`Consumer::check`]
//! has the rule by which consumers accept data.

use std::{borrow::Cow, collections::HashSet};

use serdes_version_registry::{Consumer, VersionDef};

use super::{Line, Version, registry};

impl<L: Line> Version<L> {
    /// Returns the `VersionDef` to record in data of the line that is written at this version: the
    /// line's current number as the producer, the oldest consumer that the version's entry names,
    /// and the line's bad consumers. These include consumers that are bad only with a certain
    /// content, since the contents of the data are not known here; see
    /// [`stamp_with`](Self::stamp_with).
    pub fn stamp(self) -> VersionDef {
        Producer::of_line(self).stamp()
    }

    /// Returns the `VersionDef` for data that contains `contents` (for a graph, its operations) and
    /// nothing else: consumers that are bad with other contents are not listed.
    pub fn stamp_with<'c>(self, contents: impl IntoIterator<Item = &'c str>) -> VersionDef {
        Producer::of_line(self).stamp_with(contents)
    }
}

/// A build that writes data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Producer {
    /// The version of the build.
    pub version: i32,
    /// The oldest consumer that its data is meant for.
    pub min_consumer: i32,
    /// Consumers that must not accept its data.
    pub bad_consumers: Vec<i32>,
    /// Consumers that must not accept its data if it has a certain content, as pairs of content
    /// (for a graph, an operation) and consumers.
    pub bad_consumers_with: Vec<(String, Vec<i32>)>,
}

impl Producer {
    /// Creates a producer whose data every consumer of version `min_consumer` or newer may accept.
    pub const fn new(version: i32, min_consumer: i32) -> Self {
        Self { version, min_consumer, bad_consumers: Vec::new(), bad_consumers_with: Vec::new() }
    }

    /// Returns this build as a producer of data of the line `L`, written at `version`.
    pub fn of_line<L: Line>(version: Version<L>) -> Self {
        let entry = L::ENTRIES.iter().find(|entry| entry.number == version.number());
        let with = L::BAD_CONSUMERS_WITH.iter();
        Self {
            version: Version::<L>::of_age(0).number(),
            min_consumer: entry.map_or(0, |entry| entry.min_consumer),
            bad_consumers: L::BAD_CONSUMERS.to_vec(),
            bad_consumers_with: with
                .map(|(content, bad)| ((*content).to_owned(), bad.to_vec()))
                .collect(),
        }
    }

    /// Adds consumers that must not accept its data.
    #[must_use]
    pub fn with_bad_consumers(mut self, consumers: impl IntoIterator<Item = i32>) -> Self {
        self.bad_consumers.extend(consumers);
        self
    }

    /// Adds consumers that must not accept its data if that contains `content`.
    #[must_use]
    pub fn with_bad_consumers_of(
        mut self,
        content: impl Into<String>,
        consumers: impl IntoIterator<Item = i32>,
    ) -> Self {
        self.bad_consumers_with.push((content.into(), consumers.into_iter().collect()));
        self
    }

    /// Returns the `VersionDef` to record in new data of unknown contents: every bad consumer is
    /// listed.
    ///
    /// ```
    /// use serdes::version::{Producer, VersionDef};
    ///
    /// let stamped = Producer::new(2474, 0).stamp();
    /// assert_eq!(stamped, VersionDef { producer: 2474, ..VersionDef::default() });
    /// ```
    pub fn stamp(&self) -> VersionDef {
        self.stamped(|_| true)
    }

    /// Returns the `VersionDef` to record in new data that contains `contents` (for a graph, its
    /// operations) and nothing else.
    ///
    /// ```
    /// use serdes::version::Producer;
    ///
    /// let producer = Producer::new(42, 0).with_bad_consumers([7]).with_bad_consumers_of("TopKV2", [40]);
    /// assert_eq!(producer.stamp_with(["MatMul", "TopKV2"]).bad_consumers, [7, 40]);
    /// assert_eq!(producer.stamp_with(["MatMul"]).bad_consumers, [7]);
    /// assert_eq!(producer.stamp().bad_consumers, [7, 40]); // what it contains is not known
    /// ```
    pub fn stamp_with<'c>(&self, contents: impl IntoIterator<Item = &'c str>) -> VersionDef {
        // A set, since large graphs contain the same operation many times.
        let contents: HashSet<&str> = contents.into_iter().collect();
        self.stamped(|content| contents.contains(content))
    }

    fn stamped(&self, contains: impl Fn(&str) -> bool) -> VersionDef {
        let mut bad_consumers = self.bad_consumers.clone();
        for (_, bad) in self.bad_consumers_with.iter().filter(|(content, _)| contains(content)) {
            bad_consumers.extend(bad);
        }
        if !self.bad_consumers_with.is_empty() {
            bad_consumers.sort_unstable();
            bad_consumers.dedup();
        }
        VersionDef { producer: self.version, min_consumer: self.min_consumer, bad_consumers }
    }
}

/// Returns a consumer of the named line, with the word for its data in messages from [`registry`];
/// for a line that is not there, the name itself.
///
/// ```
/// use serdes::version::{VersionDef, VersionRule, consumer};
///
/// let versions = VersionDef { producer: 2475, min_consumer: 2475, bad_consumers: vec![] };
/// let rejection = consumer("graph_def", 2474, 0).check(&versions).unwrap_err();
/// assert_eq!(rejection.rule, VersionRule::MinConsumer);
/// assert_eq!((rejection.found(), rejection.expected()), ("2475".into(), "<= 2474".into()));
/// ```
pub fn consumer(line: impl Into<Cow<'static, str>>, version: i32, min_producer: i32) -> Consumer {
    let line = line.into();
    let record = registry().line(&line);
    let data = record.map_or_else(|| line.clone(), |record| record.data.into());
    Consumer::new(line, data, version, min_producer)
}
