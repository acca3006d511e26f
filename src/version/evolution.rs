//! How a line of VersionDefs evolves: the recipes of TensorFlow's data versioning, as steps that
//! return the new numbers of a build and refuse what would break readers.
//!
//! A build has one version, which is its producer version when it writes and its consumer version
//! when it reads, and two bounds. Adding an operation, and switching to it:
//!
//! ```
//! use serdes::version::evolution::BuildVersions;
//!
//! let today = BuildVersions::new(41, 30, 30)?;
//! // Added to producers and consumers at once, not yet used by default: no number moves.
//! assert_eq!(today.clone().add_operation(), today);
//! // Used by default: the version moves, min_consumer does not, since graphs without it still work.
//! let switched = today.clone().switch_to_operation()?;
//! assert_eq!(switched.version(), 42);
//! assert!(today.consumer("graph_def").check(&switched.producer().stamp()).is_ok());
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```
//!
//! Removing an operation, or restricting what it does. First it is banned for data of the new
//! version and above, later, with a major release, it goes:
//!
//! ```
//! use serdes::version::{evolution::{BuildVersions, ReleaseKind}, VersionRule};
//!
//! let (banned, ban) = BuildVersions::new(41, 30, 30)?.ban_operation("TopK", "TopKV2")?;
//! assert!(ban.allows(41) && !ban.allows(42));
//! assert!(banned.clone().remove_operation(&ban, ReleaseKind::Minor).is_err());
//! let removed = banned.remove_operation(&ban, ReleaseKind::Major)?;
//! let old = BuildVersions::new(41, 30, 30)?.producer().stamp();
//! let rejection = removed.consumer("graph_def").check(&old).unwrap_err();
//! assert_eq!(rejection.rule, VersionRule::ProducerTooOld);
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```
//!
//! Changing what an operation does: a similar one (`SomethingV2`) is added and switched to, the old
//! one is removed as above, and then consumers that only have the old one are ruled out, so that its
//! name can come back with the new meaning:
//!
//! ```
//! use serdes::version::{evolution::{BuildVersions, ReleaseKind}, VersionRule};
//!
//! let start = BuildVersions::new(41, 30, 30)?;
//! let with_v2 = start.clone().add_operation().switch_to_operation()?;
//! let (banned, ban) = with_v2.ban_operation("Something", "SomethingV2")?;
//! let removed = banned.remove_operation(&ban, ReleaseKind::Major)?;
//! let renamed = removed.rule_out_consumers_before(ban.from_version)?;
//! let rejection = start.consumer("graph_def").check(&renamed.producer().stamp()).unwrap_err();
//! assert_eq!(rejection.rule, VersionRule::MinConsumer);
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```
//!
//! Banning a consumer that cannot run safely:
//!
//! ```
//! use serdes::version::{evolution::BuildVersions, VersionRule};
//!
//! let faulty = BuildVersions::new(41, 30, 30)?;
//! let fixed = faulty.clone().ban_consumer(41)?;
//! let data = fixed.producer().stamp();
//! assert_eq!(
//!     faulty.consumer("graph_def").check(&data).unwrap_err().rule,
//!     VersionRule::BadConsumer,
//! );
//! assert!(fixed.consumer("graph_def").check(&data).is_ok());
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```

use std::borrow::Cow;

use super::{Consumer, Producer};

/// A step that would leave readers behind, or numbers that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvolutionError {
    /// A bound above the build's own version: it could not read what it writes.
    #[error("{bound} {found} is above the build's own version {version}; raise the version first")]
    BoundAboveVersion {
        /// `min_consumer` or `min_producer`.
        bound: &'static str,
        /// The number found.
        found: i32,
        /// The build's version.
        version: i32,
    },
    /// A bound that would go back.
    #[error("{bound} {found} is below the present {present}; bounds only go up")]
    BoundGoesBack {
        /// `min_consumer` or `min_producer`.
        bound: &'static str,
        /// The number found.
        found: i32,
        /// The present number.
        present: i32,
    },
    /// Functionality may only go with a major release.
    #[error("{operation} can only be removed with a major release; until then it stays banned")]
    NotAMajorRelease {
        /// The operation.
        operation: String,
    },
    /// A consumer is banned that does not exist yet.
    #[error("consumer {found} is newer than the build's own version {version}; nothing to ban")]
    ConsumerNotOut {
        /// The consumer.
        found: i32,
        /// The build's version.
        version: i32,
    },
    /// There is no number left.
    #[error("version {version} is the last one that an int32 holds; start a new line")]
    OutOfNumbers {
        /// The build's version.
        version: i32,
    },
}

/// What kind of release a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseKind {
    /// MAJOR moves: what was banned may go.
    Major,
    /// MINOR or PATCH moves: nothing that worked may go.
    Minor,
}

/// The refusal of an operation in data from some version on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationBan {
    /// The operation.
    pub operation: String,
    /// The first producer version whose data is refused if it has the operation.
    pub from_version: i32,
    /// What to use in its place.
    pub replacement: String,
}

impl OperationBan {
    /// Whether data of this producer may have the operation.
    pub const fn allows(&self, producer: i32) -> bool {
        producer < self.from_version
    }
}

/// The numbers of a build: its version, as producer and as consumer, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildVersions {
    version: i32,
    min_consumer: i32,
    min_producer: i32,
    bad_consumers: Vec<i32>,
}

impl BuildVersions {
    /// A build; neither bound is above the version.
    pub fn new(version: i32, min_consumer: i32, min_producer: i32) -> Result<Self, EvolutionError> {
        for (bound, found) in [("min_consumer", min_consumer), ("min_producer", min_producer)] {
            if found > version {
                return Err(EvolutionError::BoundAboveVersion { bound, found, version });
            }
        }
        Ok(Self { version, min_consumer, min_producer, bad_consumers: Vec::new() })
    }

    /// The build's version.
    pub const fn version(&self) -> i32 {
        self.version
    }

    /// The build as a producer.
    pub fn producer(&self) -> Producer {
        Producer::new(self.version, self.min_consumer)
            .with_bad_consumers(self.bad_consumers.clone())
    }

    /// The build as a consumer of the line of this name.
    pub fn consumer(&self, line: impl Into<Cow<'static, str>>) -> Consumer {
        Consumer::new(line, self.version, self.min_producer)
    }

    fn next(mut self) -> Result<Self, EvolutionError> {
        let version = self.version;
        self.version = version.checked_add(1).ok_or(EvolutionError::OutOfNumbers { version })?;
        Ok(self)
    }

    /// An operation is added that no existing producer script uses by itself: nothing moves.
    #[must_use]
    pub fn add_operation(self) -> Self {
        self
    }

    /// Existing scripts begin to use an operation that was added: the version moves. min_consumer
    /// does not, since data without the operation should not break.
    pub fn switch_to_operation(self) -> Result<Self, EvolutionError> {
        self.next()
    }

    /// An operation, or a use of it, is refused in data of the new version and above.
    pub fn ban_operation(
        self,
        operation: impl Into<String>,
        replacement: impl Into<String>,
    ) -> Result<(Self, OperationBan), EvolutionError> {
        let build = self.next()?;
        let ban = OperationBan {
            operation: operation.into(),
            from_version: build.version,
            replacement: replacement.into(),
        };
        Ok((build, ban))
    }

    /// A banned operation goes: data of producers from before the ban is refused whole.
    pub fn remove_operation(
        mut self,
        ban: &OperationBan,
        release: ReleaseKind,
    ) -> Result<Self, EvolutionError> {
        if release != ReleaseKind::Major {
            let operation = ban.operation.clone();
            return Err(EvolutionError::NotAMajorRelease { operation });
        }
        self.min_producer = self.raised("min_producer", self.min_producer, ban.from_version)?;
        Ok(self)
    }

    /// New data is no longer for consumers before `version`.
    pub fn rule_out_consumers_before(mut self, version: i32) -> Result<Self, EvolutionError> {
        self.min_consumer = self.raised("min_consumer", self.min_consumer, version)?;
        Ok(self)
    }

    /// New data is not for one faulty consumer: the version moves and the consumer is listed.
    pub fn ban_consumer(self, consumer: i32) -> Result<Self, EvolutionError> {
        if consumer > self.version {
            let version = self.version;
            return Err(EvolutionError::ConsumerNotOut { found: consumer, version });
        }
        let mut build = self.next()?;
        if !build.bad_consumers.contains(&consumer) {
            build.bad_consumers.push(consumer);
            build.bad_consumers.sort_unstable();
        }
        Ok(build)
    }

    fn raised(&self, bound: &'static str, present: i32, found: i32) -> Result<i32, EvolutionError> {
        if found < present {
            return Err(EvolutionError::BoundGoesBack { bound, found, present });
        }
        if found > self.version {
            let version = self.version;
            return Err(EvolutionError::BoundAboveVersion { bound, found, version });
        }
        Ok(found)
    }
}
