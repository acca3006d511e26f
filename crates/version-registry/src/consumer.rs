//! The VersionDef rule, which decides if a consumer may accept a piece of data.
//!
//! This is TensorFlow's data versioning; the order of the conditions and the edge cases are those
//! of TensorFlow itself. Only the three conditions are checked: a producer newer than the consumer
//! is fine, so is a min_consumer above the producer, and so are negative numbers that meet the
//! conditions. An absent VersionDef is [`VersionDef::default`], all zeros.

use std::{borrow::Cow, fmt};

use crate::VersionDef;

/// A build that reads data.
///
/// ```
/// use serdes_version_registry::{Consumer, VersionDef, VersionRule};
///
/// let versions = VersionDef { producer: 2475, min_consumer: 2475, bad_consumers: vec![] };
/// let rejection = Consumer::new("graph_def", "graph", 2474, 0).check(&versions).unwrap_err();
/// assert_eq!(rejection.rule, VersionRule::MinConsumer);
/// assert_eq!((rejection.found(), rejection.expected()), ("2475".into(), "<= 2474".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consumer {
    /// The line that the numbers belong to, such as `graph_def`.
    pub line: Cow<'static, str>,
    /// The word for data of the line in messages: "graph", "checkpoint".
    pub data: Cow<'static, str>,
    /// The version of the build.
    pub version: i32,
    /// The oldest producer whose data it accepts.
    pub min_producer: i32,
    /// The release of the build, for messages: `TensorFlow 2.21.0`.
    pub release: Option<String>,
}

impl Consumer {
    /// Creates a consumer of the named line; `data` is the word for its data in messages.
    pub fn new(
        line: impl Into<Cow<'static, str>>,
        data: impl Into<Cow<'static, str>>,
        version: i32,
        min_producer: i32,
    ) -> Self {
        Self { line: line.into(), data: data.into(), version, min_producer, release: None }
    }

    /// Sets the release of the consumer.
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
    /// [`VersionRule::ConsumerBelowMinProducer`] if the consumer is inconsistent, which is the
    /// caller's fault and not the data's. Otherwise the rule that refuses the data.
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
    /// Returns the id of the rule, for programs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::ConsumerBelowMinProducer => "invalid_consumer",
            Self::ProducerTooOld => "producer_too_old",
            Self::MinConsumer => "min_consumer",
            Self::BadConsumer => "bad_consumer",
        }
    }

    /// Returns the canonical status code that TensorFlow gives.
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
    /// Returns the offending number.
    pub fn found(&self) -> String {
        match self.rule {
            VersionRule::ProducerTooOld => self.producer.to_string(),
            VersionRule::MinConsumer => self.min_consumer.to_string(),
            VersionRule::BadConsumer | VersionRule::ConsumerBelowMinProducer => {
                self.consumer.version.to_string()
            }
        }
    }

    /// Returns the numbers that would have been accepted, as text.
    pub fn expected(&self) -> String {
        match self.rule {
            VersionRule::ProducerTooOld | VersionRule::ConsumerBelowMinProducer => {
                format!(">= {}", self.consumer.min_producer)
            }
            VersionRule::MinConsumer => format!("<= {}", self.consumer.version),
            VersionRule::BadConsumer => "a consumer that is not in bad_consumers".to_owned(),
        }
    }

    /// Returns the problem as text, without the remedy.
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

    /// Returns the remedy as text.
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
