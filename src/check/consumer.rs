//! Who wants to load an artifact: a version for every line.

use std::borrow::Cow;

use crate::{
    artifact::graph::{DeprecatedOperation, DeprecatedOperations},
    version::{
        self, DeviceState, Ifrt, Line, LineRecord, Release,
        evolution::OperationBan,
        registry,
        tensorflow::{self, UnknownRelease},
    },
};

/// A line whose numbers decide whether a consumer takes an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArtifactLine {
    /// TensorFlow's graphs.
    GraphDef,
    /// TensorFlow's V2 checkpoints.
    TensorBundle,
    /// TensorFlow's V1 checkpoints.
    Checkpoint,
    /// Device states.
    DeviceState,
    /// IFRT's serialized values.
    Ifrt,
}

impl ArtifactLine {
    /// Every line.
    pub const ALL: [Self; 5] =
        [Self::GraphDef, Self::TensorBundle, Self::Checkpoint, Self::DeviceState, Self::Ifrt];

    /// Its name in versions.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GraphDef => "graph_def",
            Self::TensorBundle => "tensor_bundle",
            Self::Checkpoint => "checkpoint",
            Self::DeviceState => DeviceState::NAME,
            Self::Ifrt => Ifrt::NAME,
        }
    }
}

/// A build that loads artifacts: TensorFlow of some release, or numbers of one's own, line by line.
///
/// ```
/// use serdes::check::{ArtifactLine, Consumer};
///
/// let consumer = Consumer::tensorflow("2.16")?.with("graph_def=1800:22")?;
/// assert_eq!(consumer.line(ArtifactLine::GraphDef).version, 1800);
/// assert_eq!(consumer.line(ArtifactLine::GraphDef).min_producer, 22);
/// assert_eq!(consumer.line(ArtifactLine::TensorBundle).version, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    release: Option<&'static Release>,
    named: Vec<version::Consumer>,
    banned: Vec<DeprecatedOperation>,
}

/// A consumer that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// The text is not `LINE=N` or `LINE=N:MIN_PRODUCER`.
    #[error(
        "\"{found}\" names no consumer; write LINE=N or LINE=N:MIN_PRODUCER, for example graph_def=1395"
    )]
    Syntax {
        /// The text, cut to 60 characters.
        found: String,
    },
    /// There is no such line.
    #[error("there is no line \"{found}\"; the lines are {known}")]
    UnknownLine {
        /// The name, cut to 60 characters.
        found: String,
        /// The lines there are.
        known: String,
    },
    /// The consumer would not take what it makes itself.
    #[error(
        "a consumer of version {version} cannot have the min_producer {min_producer}, which is newer than itself"
    )]
    BelowMinProducer {
        /// The version.
        version: i32,
        /// The min_producer.
        min_producer: i32,
    },
}

impl Default for Consumer {
    fn default() -> Self {
        Self::newest()
    }
}

impl Consumer {
    /// TensorFlow of this release (`2.16` or `2.16.2`); an unknown patch takes what its MAJOR.MINOR
    /// has.
    ///
    /// # Errors
    /// [`UnknownRelease`], which lists the known ones.
    pub fn tensorflow(release: &str) -> Result<Self, UnknownRelease> {
        Ok(Self {
            release: Some(tensorflow::release(release)?),
            named: Vec::new(),
            banned: Vec::new(),
        })
    }

    /// The newest release of the table.
    #[must_use]
    pub fn newest() -> Self {
        Self { release: tensorflow::newest_release(), named: Vec::new(), banned: Vec::new() }
    }

    /// The same with another number for one line, from `LINE=N` or `LINE=N:MIN_PRODUCER`.
    ///
    /// # Errors
    /// [`ConsumerError`], if the text is something else, the line does not exist, or the numbers
    /// contradict each other.
    pub fn with(self, text: &str) -> Result<Self, ConsumerError> {
        let syntax = || ConsumerError::Syntax { found: text.chars().take(60).collect() };
        let (line, numbers) = text.split_once('=').ok_or_else(syntax)?;
        let (version, min_producer) = match numbers.split_once(':') {
            Some((version, min_producer)) => (version, min_producer.parse().map_err(|_| syntax())?),
            None => (numbers, 0),
        };
        self.with_line(line, version.parse().map_err(|_| syntax())?, min_producer)
    }

    /// The same with another version and min_producer for one line.
    ///
    /// # Errors
    /// [`ConsumerError`], if the line does not exist or the numbers contradict each other.
    pub fn with_line(
        mut self,
        line: &str,
        version: i32,
        min_producer: i32,
    ) -> Result<Self, ConsumerError> {
        let Some(record) = registry().line(line) else {
            let known: Vec<&str> =
                registry().lines.iter().map(|line: &LineRecord| line.name).collect();
            return Err(ConsumerError::UnknownLine {
                found: line.chars().take(60).collect(),
                known: known.join(", "),
            });
        };
        if version < min_producer {
            return Err(ConsumerError::BelowMinProducer { version, min_producer });
        }
        self.named.retain(|consumer| consumer.line != record.name);
        self.named.push(version::Consumer::new(record.name, version, min_producer));
        Ok(self)
    }

    /// The same, refusing an operation in graphs of the producers that a ban names, beside the
    /// operations that the options of the check refuse.
    ///
    /// ```
    /// use serdes::check::{self, Consumer, Rule};
    /// use serdes::version::evolution::BuildVersions;
    ///
    /// let (banned, ban) = BuildVersions::new(2474, 0, 0)?.ban_operation("OurFusedOp", "OurFusedOpV2")?;
    /// let consumer =
    ///     Consumer::newest().with_line("graph_def", banned.version(), 0)?.with_ban(&ban);
    /// // One node "a" with op "OurFusedOp", of producer 2475.
    /// let graph = [&b"\x0a\x0f\x0a\x01a\x12\x0aOurFusedOp\x22\x03\x08\xab\x13"[..]].concat();
    /// let verdict = check::bytes(graph).for_consumer(&consumer);
    /// assert_eq!(verdict.reasons()[0].rule, Rule::DeprecatedOp);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_ban(mut self, ban: &OperationBan) -> Self {
        self.banned.push(ban.into());
        self
    }

    /// A list of operations with this consumer's bans on it.
    pub(super) fn bans_on<'l>(
        &self,
        list: &'l DeprecatedOperations,
    ) -> Cow<'l, DeprecatedOperations> {
        if self.banned.is_empty() {
            return Cow::Borrowed(list);
        }
        Cow::Owned(list.clone().with(self.banned.iter().cloned()))
    }

    /// What it is in one line: named, of the release, or for lines that are not TensorFlow's, this
    /// build.
    #[must_use]
    pub fn line(&self, line: ArtifactLine) -> version::Consumer {
        let line = line.name();
        if let Some(consumer) = self.named.iter().find(|consumer| consumer.line == line) {
            return consumer.clone();
        }
        if let Some(consumer) = self.release.and_then(|release| tensorflow::consumer(release, line))
        {
            return consumer;
        }
        let newest = registry().line(line).and_then(|record| {
            let newest = record.entries.iter().rev().find(|entry| !entry.withdrawn)?;
            Some(version::Consumer::new(record.name, newest.number, record.min_producer))
        });
        // Every line has an entry; a consumer of one that had none would take nothing.
        newest.unwrap_or_else(|| version::Consumer::new(line, i32::MIN, i32::MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_sets_every_line_of_tensorflow() {
        let consumer = Consumer::tensorflow("2.12.0").unwrap();
        assert_eq!(consumer.line(ArtifactLine::GraphDef).version, 1395);
        assert_eq!(consumer.line(ArtifactLine::Checkpoint).version, 1);
        assert_eq!(consumer.line(ArtifactLine::DeviceState).version, 0);
        assert_eq!(Consumer::newest().line(ArtifactLine::GraphDef).version, 2474);
        assert!(Consumer::tensorflow("9.9").is_err());
    }

    #[test]
    fn every_line_of_artifacts_is_in_the_registry() {
        for line in ArtifactLine::ALL {
            let record = registry().line(line.name()).unwrap();
            assert!(record.entries.iter().any(|entry| !entry.withdrawn), "{line:?}");
            assert_ne!(Consumer::newest().line(line).version, i32::MIN);
        }
    }

    #[test]
    fn a_ban_is_one_more_operation_that_graphs_may_not_use() {
        let list = DeprecatedOperations::tensorflow();
        assert!(matches!(Consumer::newest().bans_on(list), Cow::Borrowed(_)));
        let banning = Consumer::newest().with_ban(&OperationBan::new("OurFusedOp", 2475, "V2"));
        let both = banning.bans_on(list);
        assert_eq!(both.entries().len(), list.entries().len() + 1);
        assert_eq!(both.get("OurFusedOp").unwrap().version, 2475);
        // One node "a" with op "OurFusedOp", of producer 2474 and 2475.
        let verdict = |last: u8| {
            let graph = [&b"\x0a\x0f\x0a\x01a\x12\x0aOurFusedOp\x22\x03\x08"[..], &[last, 0x13]];
            crate::check::bytes(graph.concat()).for_consumer(&banning)
        };
        assert!(verdict(0xaa).is_acceptable());
        assert!(!verdict(0xab).is_acceptable());
    }

    #[test]
    fn a_consumer_that_cannot_be_is_an_error_that_says_why() {
        let error = |text: &str| Consumer::newest().with(text).unwrap_err().to_string();
        assert!(error("graph_def").contains("LINE=N"));
        assert!(error("graph_def=x").contains("LINE=N"));
        assert!(error("graph_def=1:y").contains("LINE=N"));
        assert!(error("nothing=1").contains("graph_def"));
        assert!(error("graph_def=5:6").contains("newer than itself"));
    }
}
