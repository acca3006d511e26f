//! The VersionDef rule: may a consumer take a piece of data? And how producers stamp theirs.
//!
//! TensorFlow's data versioning; the order of the conditions and the edges are those
//! of TensorFlow itself. Nothing but the three conditions is looked at: a producer newer than the
//! consumer is fine, so is a min_consumer above the producer, and so are negative numbers where the
//! conditions hold. An absent VersionDef is [`VersionDef::default`], all zeros.

use std::{borrow::Cow, collections::HashSet, fmt};

use serdes_version_registry::VersionDef;

use super::{Line, Version, registry};

impl<L: Line> Version<L> {
    /// The `VersionDef` to record in data of the line that is written at this version: the line's
    /// current number as the producer, the oldest consumer that the version's entry names, the
    /// line's bad consumers. Consumers that are bad with a certain content only are among them:
    /// what the data contains is not known here. [`stamp_with`](Self::stamp_with) looks.
    pub fn stamp(self) -> VersionDef {
        Producer::of_line(self).stamp()
    }

    /// The same for data that contains `contents` (for a graph, its operations) and nothing else:
    /// consumers that are bad with other contents are left alone.
    pub fn stamp_with<'c>(self, contents: impl IntoIterator<Item = &'c str>) -> VersionDef {
        Producer::of_line(self).stamp_with(contents)
    }
}

/// A build that makes data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Producer {
    /// Its version.
    pub version: i32,
    /// The oldest consumer that its data is meant for.
    pub min_consumer: i32,
    /// Consumers that must not take its data.
    pub bad_consumers: Vec<i32>,
    /// Consumers that must not take its data if it has a certain content: content (for a graph, an
    /// operation) and consumers.
    pub bad_consumers_with: Vec<(String, Vec<i32>)>,
}

impl Producer {
    /// A producer whose data any consumer from `min_consumer` on may take.
    pub const fn new(version: i32, min_consumer: i32) -> Self {
        Self { version, min_consumer, bad_consumers: Vec::new(), bad_consumers_with: Vec::new() }
    }

    /// This build as a producer of data of the line `L`, written at `version`.
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

    /// The same with consumers that must not take its data.
    #[must_use]
    pub fn with_bad_consumers(mut self, consumers: impl IntoIterator<Item = i32>) -> Self {
        self.bad_consumers.extend(consumers);
        self
    }

    /// The same with consumers that must not take its data if that contains `content`.
    #[must_use]
    pub fn with_bad_consumers_of(
        mut self,
        content: impl Into<String>,
        consumers: impl IntoIterator<Item = i32>,
    ) -> Self {
        self.bad_consumers_with.push((content.into(), consumers.into_iter().collect()));
        self
    }

    /// The `VersionDef` to record in new data of unknown contents: every bad consumer is listed.
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

    /// The `VersionDef` to record in new data that contains `contents` (for a graph, its
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
        // Large graphs say the same operation many times.
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

/// A build that takes data.
///
/// ```
/// use serdes::version::{Consumer, VersionDef, VersionRule};
///
/// let versions = VersionDef { producer: 2475, min_consumer: 2475, bad_consumers: vec![] };
/// let rejection = Consumer::new("graph_def", 2474, 0).check(&versions).unwrap_err();
/// assert_eq!(rejection.rule, VersionRule::MinConsumer);
/// assert_eq!((rejection.found(), rejection.expected()), ("2475".into(), "<= 2474".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consumer {
    /// The line that its numbers belong to: `graph_def`.
    pub line: Cow<'static, str>,
    /// The word for data of the line in messages: "graph", "checkpoint".
    pub data: Cow<'static, str>,
    /// Its version.
    pub version: i32,
    /// The oldest producer whose data it takes.
    pub min_producer: i32,
    /// The release it stands for, for messages: `TensorFlow 2.21.0`.
    pub release: Option<String>,
}

impl Consumer {
    /// A consumer of the line of this name.
    pub fn new(line: impl Into<Cow<'static, str>>, version: i32, min_producer: i32) -> Self {
        let line = line.into();
        let record = registry().line(&line);
        let data = record.map_or_else(|| line.clone(), |record| record.data.into());
        Self { line, data, version, min_producer, release: None }
    }

    /// This build as a consumer of the line `L`.
    pub fn this_build<L: Line>() -> Self {
        Self {
            line: L::NAME.into(),
            data: L::DATA.into(),
            version: Version::<L>::of_age(0).number(),
            min_producer: L::MIN_PRODUCER,
            release: None,
        }
    }

    /// The same with the release that it stands for.
    #[must_use]
    pub fn of_release(mut self, release: impl Into<String>) -> Self {
        self.release = Some(release.into());
        self
    }

    /// Checks that this consumer may read data with these versions; the first condition that fails
    /// is reported.
    ///
    /// # Errors
    ///
    /// [`VersionRule::ConsumerBelowMinProducer`] if the consumer contradicts itself: the caller's
    /// fault, not the data's. Otherwise the rule that refuses the data.
    pub fn check(&self, versions: &VersionDef) -> Result<(), Rejection> {
        let rule = if self.version < self.min_producer {
            VersionRule::ConsumerBelowMinProducer
        } else if versions.producer < self.min_producer {
            VersionRule::ProducerTooOld
        } else if versions.min_consumer > self.version {
            VersionRule::MinConsumer
        } else if versions.bad_consumers.contains(&self.version) {
            VersionRule::BadConsumer
        } else {
            return Ok(());
        };
        Err(Rejection {
            rule,
            producer: versions.producer,
            min_consumer: versions.min_consumer,
            consumer: self.clone(),
        })
    }
}

/// A condition of the VersionDef rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VersionRule {
    /// The consumer's version is below its own min_producer. The caller's fault (INTERNAL).
    ConsumerBelowMinProducer,
    /// The data's producer is below the consumer's min_producer.
    ProducerTooOld,
    /// The data's min_consumer is above the consumer's version.
    MinConsumer,
    /// The consumer's version is among the data's bad_consumers.
    BadConsumer,
}

impl VersionRule {
    /// The id of the rule, for programs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::ConsumerBelowMinProducer => "invalid_consumer",
            Self::ProducerTooOld => "producer_too_old",
            Self::MinConsumer => "min_consumer",
            Self::BadConsumer => "bad_consumer",
        }
    }

    /// The canonical status code that TensorFlow gives.
    pub const fn status(self) -> &'static str {
        match self {
            Self::ConsumerBelowMinProducer => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        }
    }
}

/// The reason for which a consumer rejects a piece of data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The condition that failed first.
    pub rule: VersionRule,
    /// The data's producer.
    pub producer: i32,
    /// The data's min_consumer.
    pub min_consumer: i32,
    /// The consumer.
    pub consumer: Consumer,
}

impl Rejection {
    /// The offending number.
    pub fn found(&self) -> String {
        match self.rule {
            VersionRule::ProducerTooOld => self.producer.to_string(),
            VersionRule::MinConsumer => self.min_consumer.to_string(),
            VersionRule::BadConsumer | VersionRule::ConsumerBelowMinProducer => {
                self.consumer.version.to_string()
            }
        }
    }

    /// The numbers that would have been accepted, as text.
    pub fn expected(&self) -> String {
        match self.rule {
            VersionRule::ProducerTooOld | VersionRule::ConsumerBelowMinProducer => {
                format!(">= {}", self.consumer.min_producer)
            }
            VersionRule::MinConsumer => format!("<= {}", self.consumer.version),
            VersionRule::BadConsumer => "a consumer that is not in bad_consumers".to_owned(),
        }
    }

    /// The problem in words, without the remedy.
    pub fn message(&self) -> String {
        let Consumer { line, data, version, min_producer, release } = &self.consumer;
        let message = match self.rule {
            VersionRule::ProducerTooOld => format!(
                "the {data} was made by producer {}, and this consumer takes {min_producer} or newer",
                self.producer
            ),
            VersionRule::MinConsumer => format!(
                "the {data} asks for a consumer of version {} or newer, and this one is {version}",
                self.min_consumer
            ),
            VersionRule::BadConsumer => {
                format!("the {data} must not be taken by consumers of version {version}")
            }
            VersionRule::ConsumerBelowMinProducer => format!(
                "the consumer's {line} version {version} is below its own min_producer {min_producer}"
            ),
        };
        match release {
            Some(release) => format!("{message} ({release})"),
            None => message,
        }
    }

    /// The remedy in words.
    pub fn remedy(&self) -> String {
        let data = &self.consumer.data;
        match self.rule {
            VersionRule::ProducerTooOld => format!("write the {data} anew with a newer producer"),
            VersionRule::MinConsumer => format!(
                "upgrade the consumer to a release with {} version {} or newer",
                self.consumer.line, self.min_consumer
            ),
            VersionRule::BadConsumer => {
                "upgrade the consumer; this release is known to fail on such data".to_owned()
            }
            VersionRule::ConsumerBelowMinProducer => {
                "name a consumer whose version is at least its own min_producer".to_owned()
            }
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.remedy())
    }
}

impl std::error::Error for Rejection {}
