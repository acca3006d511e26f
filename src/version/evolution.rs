//! The recipes of TensorFlow's data versioning for evolving a line of VersionDefs. Each step
//! returns the new numbers of a build, and refuses a change that would break readers.
//!
//! The module knows numbers, days and names. It does not write files: [`Changes`] has the rows for
//! versions.toml, which a person reviews and writes there.
//!
//! A build has one version, which is its producer version when it writes and its consumer version
//! when it reads, and two bounds. Steps start from a line ([`BuildVersions::of`]) or from numbers
//! ([`BuildVersions::new`]). The following adds an operation, and switches to it after three weeks,
//! for which consumers are promised new data:
//!
//! ```
//! use serdes::version::{Date, DeviceState, evolution::{BuildVersions, OperationAddition}};
//!
//! let day = |text: &str| text.parse::<Date>().expect("a day");
//! let today = BuildVersions::of::<DeviceState>(day("2026-12-01"))?;
//! // Added to producers and consumers at once, not yet used by default: no number moves.
//! let swish = OperationAddition::new("SwishV2", day("2026-12-01"));
//! assert_eq!(today.clone().add_operation(), today);
//! assert!(today.clone().switch_to(&swish, day("2026-12-21")).is_err()); // 20 days
//! // Used by default: the version moves, min_consumer does not, since data without it still works.
//! let switched = today.clone().switch_to(&swish, day("2026-12-22"))?;
//! assert_eq!(switched.version(), today.version() + 1);
//! assert!(today.consumer("device_state").check(&switched.producer().stamp()).is_ok());
//! // What goes into versions.toml:
//! assert_eq!(
//!     switched.changes().to_string(),
//!     "# line device_state: at its end\n[[line.entry]]\nnumber = 1\nintroduced = 2026-12-22\n\
//!      summary = \"producers use SwishV2\"\n"
//! );
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```
//!
//! Removing an operation, or restricting it. First it is banned for data of the new version and
//! above; later, with a major release, it is removed:
//!
//! ```
//! use serdes::version::{evolution::{BuildVersions, ReleaseKind}, VersionRule};
//!
//! let (banned, ban) = BuildVersions::new(41, 30, 30)?.ban_operation("TopK", "TopKV2")?;
//! assert!(ban.allows(41) && !ban.allows(42));
//! assert!(banned.clone().remove_operation(&ban, ReleaseKind::Minor).is_err());
//! let removed = banned.remove_operation(&ban, ReleaseKind::Major)?;
//! assert_eq!(removed.changes().min_producer, Some(42));
//! let old = BuildVersions::new(41, 30, 30)?.producer().stamp();
//! let rejection = removed.consumer("graph_def").check(&old).unwrap_err();
//! assert_eq!(rejection.rule, VersionRule::ProducerTooOld);
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```
//!
//! Changing the meaning of an operation: a similar one (`SomethingV2`) is added and switched to,
//! the old one is removed as above, and then consumers that only have the old one are ruled out, so
//! that its name can be reused with the new meaning:
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
//! Banning a consumer that cannot run safely, for all data, or only for data with an operation:
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
//!
//! let fixed = faulty.clone().ban_consumer_of("TopKV2", 41)?;
//! let producer = fixed.producer();
//! assert!(faulty.consumer("graph_def").check(&producer.stamp_with(["MatMul"])).is_ok());
//! assert!(faulty.consumer("graph_def").check(&producer.stamp_with(["TopKV2"])).is_err());
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```
//!
//! A patch release does none of this: the patches of a minor release read each other's data.
//!
//! ```
//! use serdes::version::evolution::{BuildVersions, ReleaseKind};
//!
//! let patch = BuildVersions::new(41, 30, 30)?.in_release(ReleaseKind::between("2.21.0", "2.21.1")?);
//! assert!(patch.clone().switch_to_operation().is_err());
//! assert!(patch.clone().ban_consumer(40).is_ok()); // not of this minor release
//! # Ok::<(), serdes::version::evolution::EvolutionError>(())
//! ```

mod changes;
mod error;
mod operation;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serdes_version_registry::newest_of_age;

pub use changes::{Changes, PlannedEntry};
pub use error::EvolutionError;
pub use operation::{FORWARD_COMPATIBILITY_DAYS, OperationAddition, OperationBan};
pub use serdes_version_registry::{ReleaseError, ReleaseKind};

use super::{Consumer, Date, Entry, Line, LineRecord, Producer};

/// The bounds of a build that versions.toml has in addition to the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bounds {
    min_consumer: i32,
    min_producer: i32,
    bad_consumers: Vec<i32>,
    bad_consumers_with: Vec<(String, Vec<i32>)>,
}

/// The numbers of a build: its version, as producer and as consumer, and its bounds; also records
/// the steps that were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildVersions {
    /// The line, if it started from one.
    line: Option<Cow<'static, str>>,
    version: i32,
    /// The newest number of the line, including withdrawn ones.
    last: i32,
    counts_days_from: Option<(i32, Date)>,
    day: Option<Date>,
    release: ReleaseKind,
    /// The version of the minor release that a patch release belongs to.
    patched: i32,
    bounds: Bounds,
    /// The version and the bounds at the start.
    start: (i32, Bounds),
    entries: Vec<PlannedEntry>,
}

impl BuildVersions {
    /// Creates a build with these numbers; neither bound may be above the version.
    ///
    /// # Errors
    /// [`EvolutionError::BoundAboveVersion`].
    pub fn new(version: i32, min_consumer: i32, min_producer: i32) -> Result<Self, EvolutionError> {
        let (bad_consumers, bad_consumers_with) = (Vec::new(), Vec::new());
        Self::start(
            version,
            Bounds { min_consumer, min_producer, bad_consumers, bad_consumers_with },
        )
    }

    /// Returns the build of the line `L` on `day`, the day of the first step: the current number on
    /// that day, with the bounds of its entry and of the line.
    ///
    /// # Errors
    /// [`EvolutionError::NoVersionYet`], or [`EvolutionError::DayGoesBack`] if the line has an
    /// entry of a later day.
    pub fn of<L: Line>(day: Date) -> Result<Self, EvolutionError> {
        let record = LineRecord::new(L::NAME, L::TITLE, L::ENTRIES)
            .bounded(L::MINIMUM, L::MIN_PRODUCER, L::BAD_CONSUMERS)
            .banning_with(L::BAD_CONSUMERS_WITH);
        Self::of_record(&record, day)
    }

    /// Like [`of`](Self::of), for a line of a registry, such as TensorFlow's `graph_def`, whose
    /// numbers count days.
    ///
    /// ```
    /// use serdes::version::{evolution::BuildVersions, registry};
    ///
    /// let graph_def = registry().line("graph_def").expect("one of TensorFlow's lines");
    /// let build = BuildVersions::of_record(graph_def, "2026-11-30".parse()?)?;
    /// assert_eq!(build.version(), 2474);
    /// assert_eq!(build.switch_to_operation()?.version(), 2792); // the number of 2026-11-30
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_record(line: &LineRecord, day: Date) -> Result<Self, EvolutionError> {
        let dated = line.entries.iter().map(Entry::dated);
        let current = newest_of_age(dated, line.minimum, day, 0);
        let none = || EvolutionError::NoVersionYet { line: line.name.to_owned(), day };
        let entry = current.and_then(|number| line.entry(number)).ok_or_else(none)?;
        let last = line.entries.last().unwrap_or(entry);
        if day < last.introduced {
            return Err(EvolutionError::DayGoesBack { found: day, last: last.introduced });
        }
        let with = line.bad_consumers_with.iter();
        let bounds = Bounds {
            min_consumer: entry.min_consumer,
            min_producer: line.min_producer,
            bad_consumers: line.bad_consumers.to_vec(),
            bad_consumers_with: with
                .map(|(content, bad)| ((*content).to_owned(), bad.to_vec()))
                .collect(),
        };
        let mut build = Self::start(entry.number, bounds)?;
        build.line = Some(line.name.into());
        build.last = last.number;
        build.counts_days_from = line.counts_days_from;
        build.day = Some(day);
        Ok(build)
    }

    fn start(version: i32, bounds: Bounds) -> Result<Self, EvolutionError> {
        for (bound, found) in
            [("min_consumer", bounds.min_consumer), ("min_producer", bounds.min_producer)]
        {
            if found > version {
                return Err(EvolutionError::BoundAboveVersion { bound, found, version });
            }
        }
        Ok(Self {
            line: None,
            version,
            last: version,
            counts_days_from: None,
            day: None,
            release: ReleaseKind::Minor,
            patched: version,
            start: (version, bounds.clone()),
            bounds,
            entries: Vec::new(),
        })
    }

    /// Sets the consumers that are banned already.
    ///
    /// # Errors
    /// [`EvolutionError::BansItself`] if the build is one of them.
    pub fn with_bad_consumers(
        mut self,
        consumers: impl IntoIterator<Item = i32>,
    ) -> Result<Self, EvolutionError> {
        for consumer in consumers {
            self.not_itself(consumer)?;
            ban(&mut self.bounds.bad_consumers, consumer);
        }
        self.start.1.bad_consumers.clone_from(&self.bounds.bad_consumers);
        Ok(self)
    }

    /// Sets a later day for the next steps.
    ///
    /// # Errors
    /// [`EvolutionError::DayGoesBack`].
    pub fn on(mut self, day: Date) -> Result<Self, EvolutionError> {
        if let Some(last) = self.day.filter(|last| day < *last) {
            return Err(EvolutionError::DayGoesBack { found: day, last });
        }
        self.day = Some(day);
        Ok(self)
    }

    /// Sets the kind of release for the next steps; the default is a minor release.
    #[must_use]
    pub fn in_release(mut self, release: ReleaseKind) -> Self {
        if release != ReleaseKind::Patch || self.release != ReleaseKind::Patch {
            self.patched = self.version;
        }
        self.release = release;
        self
    }

    /// Returns the build's version.
    pub const fn version(&self) -> i32 {
        self.version
    }

    /// Returns this build as a producer.
    pub fn producer(&self) -> Producer {
        let mut producer = Producer::new(self.version, self.bounds.min_consumer)
            .with_bad_consumers(self.bounds.bad_consumers.iter().copied());
        producer.bad_consumers_with.clone_from(&self.bounds.bad_consumers_with);
        producer
    }

    /// Returns this build as a consumer of the named line.
    pub fn consumer(&self, line: impl Into<Cow<'static, str>>) -> Consumer {
        super::consumer(line, self.version, self.bounds.min_producer)
    }

    /// Returns the changes of versions.toml that the steps so far require.
    pub fn changes(&self) -> Changes {
        let (version, start) = &self.start;
        let new = &self.bounds;
        let raised = self.entries.is_empty() && new.min_consumer != start.min_consumer;
        Changes {
            line: self.line.as_deref().map(ToOwned::to_owned),
            min_producer: (new.min_producer != start.min_producer).then_some(new.min_producer),
            bad_consumers: (new.bad_consumers != start.bad_consumers)
                .then(|| new.bad_consumers.clone()),
            bad_consumers_with: (new.bad_consumers_with != start.bad_consumers_with)
                .then(|| new.bad_consumers_with.clone()),
            min_consumer: raised.then_some((*version, new.min_consumer)),
            entries: self.entries.clone(),
        }
    }

    /// Moves to the next version; in a line that counts days, this is the number of the day.
    fn next(mut self, summary: impl Into<String>) -> Result<Self, EvolutionError> {
        let last = self.last;
        let number = match (self.counts_days_from, self.day) {
            (Some((base, first)), Some(day)) if day >= first => {
                let number = i64::from(base) + day.days_since(first);
                let number = i32::try_from(number)
                    .map_err(|_| EvolutionError::OutOfNumbers { version: last })?;
                if number <= last {
                    let line = self.line.as_deref().unwrap_or_default().to_owned();
                    return Err(EvolutionError::NumberOfDayTaken { line, day, number, last });
                }
                number
            }
            _ => last.checked_add(1).ok_or(EvolutionError::OutOfNumbers { version: last })?,
        };
        (self.version, self.last) = (number, number);
        self.entries.push(PlannedEntry {
            number,
            introduced: self.day,
            summary: summary.into(),
            min_consumer: self.bounds.min_consumer,
        });
        Ok(self)
    }

    fn not_in_a_patch(&self, step: &'static str) -> Result<(), EvolutionError> {
        match self.release {
            ReleaseKind::Patch => Err(EvolutionError::NotInAPatchRelease { step }),
            ReleaseKind::Major | ReleaseKind::Minor => Ok(()),
        }
    }

    /// Adds an operation that no existing producer script uses by itself: no number changes.
    #[must_use]
    pub fn add_operation(self) -> Self {
        self
    }

    /// Lets existing scripts use an operation, starting on `day`: the version moves. min_consumer
    /// does not, since data without the operation should not break.
    ///
    /// # Errors
    /// [`EvolutionError::TooEarlyToEmit`] while consumers without the operation are still promised
    /// the data; [`EvolutionError::NotInAPatchRelease`]; a day or a number that goes back or is
    /// taken.
    pub fn switch_to(
        self,
        addition: &OperationAddition,
        day: Date,
    ) -> Result<Self, EvolutionError> {
        self.not_in_a_patch(SWITCHING)?;
        addition.may_emit(day)?;
        self.on(day)?.next(format!("producers use {}", addition.operation))
    }

    /// Like [`switch_to`](Self::switch_to), for an operation whose day is not known, or without
    /// forward compatibility: only the version moves.
    ///
    /// # Errors
    /// [`EvolutionError::NotInAPatchRelease`], or a number that is taken.
    pub fn switch_to_operation(self) -> Result<Self, EvolutionError> {
        self.not_in_a_patch(SWITCHING)?;
        self.next("producers use an operation that was added")
    }

    /// Bans an operation, or a use of it, in data of the new version and above.
    ///
    /// # Errors
    /// [`EvolutionError::NotInAPatchRelease`], since data that the previous patch accepts must be
    /// accepted, or a number that is taken.
    pub fn ban_operation(
        self,
        operation: impl Into<String>,
        replacement: impl Into<String>,
    ) -> Result<(Self, OperationBan), EvolutionError> {
        self.not_in_a_patch("banning an operation")?;
        let (operation, replacement) = (operation.into(), replacement.into());
        let instead = match replacement.as_str() {
            "" => String::new(),
            other => format!("; {other} takes its place"),
        };
        let build = self.next(format!("{operation} is refused from here on{instead}"))?;
        let ban = OperationBan::new(operation, build.version, replacement);
        Ok((build, ban))
    }

    /// Removes a banned operation: all data of producers from before the ban is refused.
    ///
    /// # Errors
    /// [`EvolutionError::NotAMajorRelease`], or a bound that goes back or above the version.
    pub fn remove_operation(
        mut self,
        ban: &OperationBan,
        release: ReleaseKind,
    ) -> Result<Self, EvolutionError> {
        if release != ReleaseKind::Major {
            let operation = ban.operation.clone();
            return Err(EvolutionError::NotAMajorRelease { operation });
        }
        let present = self.bounds.min_producer;
        self.bounds.min_producer = self.raised("min_producer", present, ban.from_version)?;
        Ok(self)
    }

    /// Rules out consumers before `version` for new data.
    ///
    /// # Errors
    /// [`EvolutionError::NotInAPatchRelease`], or a bound that goes back or above the version.
    pub fn rule_out_consumers_before(mut self, version: i32) -> Result<Self, EvolutionError> {
        self.not_in_a_patch("raising min_consumer")?;
        let present = self.bounds.min_consumer;
        self.bounds.min_consumer = self.raised("min_consumer", present, version)?;
        if let Some(entry) = self.entries.last_mut() {
            entry.min_consumer = version;
        }
        Ok(self)
    }

    /// Rules out one faulty consumer for new data: the version moves and the consumer is listed.
    ///
    /// # Errors
    /// [`EvolutionError::ConsumerNotOut`]; in a patch release
    /// [`EvolutionError::NotInAPatchRelease`] if the consumer belongs to the same minor release; a
    /// number that is taken.
    pub fn ban_consumer(self, consumer: i32) -> Result<Self, EvolutionError> {
        self.may_ban(consumer)?;
        let mut build = self.next(format!("consumer {consumer} is banned"))?;
        ban(&mut build.bounds.bad_consumers, consumer);
        Ok(build)
    }

    /// Like [`ban_consumer`](Self::ban_consumer), only for data that contains an operation, or
    /// other content, of this name.
    ///
    /// # Errors
    /// As [`ban_consumer`](Self::ban_consumer).
    pub fn ban_consumer_of(
        self,
        content: impl Into<String>,
        consumer: i32,
    ) -> Result<Self, EvolutionError> {
        self.may_ban(consumer)?;
        let content = content.into();
        let mut build =
            self.next(format!("consumer {consumer} is banned for data with {content}"))?;
        let with = &mut build.bounds.bad_consumers_with;
        match with.iter_mut().find(|(known, _)| *known == content) {
            Some((_, consumers)) => ban(consumers, consumer),
            None => with.push((content, vec![consumer])),
        }
        Ok(build)
    }

    fn may_ban(&self, consumer: i32) -> Result<(), EvolutionError> {
        let version = self.version;
        if consumer > version {
            return Err(EvolutionError::ConsumerNotOut { found: consumer, version });
        }
        if consumer >= self.patched {
            self.not_in_a_patch("banning a consumer of the same minor release")?;
        }
        Ok(())
    }

    fn not_itself(&self, consumer: i32) -> Result<(), EvolutionError> {
        let version = self.version;
        if consumer == version { Err(EvolutionError::BansItself { version }) } else { Ok(()) }
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

const SWITCHING: &str = "switching producers to a new operation";

/// Adds a consumer to the sorted list, unless it is there.
fn ban(consumers: &mut Vec<i32>, consumer: i32) {
    if let Err(place) = consumers.binary_search(&consumer) {
        consumers.insert(place, consumer);
    }
}
