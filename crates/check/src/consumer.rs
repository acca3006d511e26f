//! The consumer of an artifact: a version for every line, and its operations.

use std::borrow::Cow;

use serdes::{
    ErrorKind,
    version::{
        self, DeviceState, Ifrt, Line, LineRecord, Release,
        evolution::OperationBan,
        registry,
        tensorflow::{self, UnknownRelease},
    },
};
use serdes_graphs::graph::{DeprecatedOperation, DeprecatedOperations};
use serdes_operations::{OperationDefinition, Registry};

use super::bans::deprecated;

/// A line whose numbers decide whether a consumer accepts an artifact.
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
    pub const ALL: &'static [Self] =
        &[Self::GraphDef, Self::TensorBundle, Self::Checkpoint, Self::DeviceState, Self::Ifrt];

    /// Returns the name of the line in versions.toml.
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

/// A build that loads artifacts: a release of TensorFlow, or custom numbers per line.
///
/// The operations of releases from 2.12 are known ([`Consumer::registry`]), and those of a GraphDef
/// number that is exactly a release's. The operations of any other number are unknown: graphs are
/// then judged by their versions and structure only.
///
/// ```
/// use serdes_check::{ArtifactLine, Consumer};
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
    registry: Option<Registry>,
    /// Operations in addition to those of a release.
    operations: Vec<OperationDefinition>,
    /// The release of jaxlib, if the consumer is one.
    pub(super) jaxlib: Option<&'static serdes_jax_artifacts::Release>,
}

/// The error of a consumer that is not valid.
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
    /// The line does not exist.
    #[error("there is no line \"{found}\"; the lines are {known}")]
    UnknownLine {
        /// The name, cut to 60 characters.
        found: String,
        /// The existing lines.
        known: String,
    },
    /// The release does not exist.
    #[error(transparent)]
    UnknownRelease(#[from] UnknownRelease),
    /// The release of jaxlib does not exist, or is too old for verdicts.
    #[error(
        "no verdicts of jaxlib {found} are known; the releases are {known}; `latest`, `all` and ranges (`0.9..0.10.2`, `0.9..`) name several of them"
    )]
    UnknownJaxlib {
        /// The release, cut to 60 characters.
        found: String,
        /// The known releases.
        known: String,
    },
    /// A range of releases that is empty: it goes from a newer one to an older one.
    #[error("no release is between {oldest} and {newest}; write the older one first")]
    NoRelease {
        /// The first release of the range.
        oldest: String,
        /// The last one.
        newest: String,
    },
    /// The consumer would not accept its own data.
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

impl ConsumerError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownRelease(error) => error.kind(),
            Self::UnknownJaxlib { .. } | Self::UnknownLine { .. } => ErrorKind::NotFound,
            Self::Syntax { .. } | Self::NoRelease { .. } | Self::BelowMinProducer { .. } => {
                ErrorKind::InvalidInput
            }
        }
    }
}

/// Parses the ends of a range of releases, `None` for one that is open: `2.12..2.16`, `2.17..`,
/// `..2.16`, `>=2.17`.
pub(super) fn range(text: &str) -> Option<(Option<&str>, Option<&str>)> {
    let end = |end: &'_ str| !end.is_empty();
    if let Some(oldest) = text.strip_prefix(">=").map(str::trim).filter(|oldest| end(oldest)) {
        return Some((Some(oldest), None));
    }
    let (oldest, newest) = text.split_once("..")?;
    let ends = (Some(oldest).filter(|one| end(one)), Some(newest).filter(|one| end(one)));
    (ends != (None, None)).then_some(ends)
}

impl Default for Consumer {
    fn default() -> Self {
        Self::newest()
    }
}

impl Consumer {
    /// Creates the consumer for a release of TensorFlow (`2.16` or `2.16.2`); an unknown patch has
    /// the numbers of its MAJOR.MINOR.
    ///
    /// # Errors
    /// [`UnknownRelease`], which lists the known ones.
    pub fn tensorflow(release: &str) -> Result<Self, UnknownRelease> {
        tensorflow::release(release).map(|release| Self::of_release(Some(release)))
    }

    /// Creates the consumer for the newest release of the table.
    #[must_use]
    pub fn newest() -> Self {
        Self::of_release(tensorflow::newest_release())
    }

    fn of_release(release: Option<&'static Release>) -> Self {
        Self {
            release,
            named: Vec::new(),
            banned: Vec::new(),
            registry: release.and_then(registry_of),
            operations: Vec::new(),
            jaxlib: None,
        }
    }

    /// Creates consumers for several releases of TensorFlow, oldest first: `all` with known
    /// operations, `latest`, the releases of a range (`2.12..2.16`, both ends included; `2.17..` or
    /// `>=2.17` up to the newest; `..2.16` from the oldest of `all`), or one.
    ///
    /// ```
    /// use serdes_check::Consumer;
    ///
    /// assert_eq!(Consumer::releases("2.12..2.16")?.len(), 5);
    /// assert_eq!(Consumer::releases("all")?[0], Consumer::tensorflow("2.12")?);
    /// assert_eq!(Consumer::releases("latest")?, [Consumer::newest()]);
    /// assert_eq!(Consumer::releases("2.17..")?, Consumer::releases("2.17..2.21")?);
    /// assert!(Consumer::releases("2.16..2.12").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConsumerError`] for an unknown release, and for an empty range.
    pub fn releases(text: &str) -> Result<Vec<Self>, ConsumerError> {
        if text == "latest" {
            return Ok(vec![Self::newest()]);
        }
        let with_operations = || {
            let all = tensorflow::releases().iter().map(|release| Self::of_release(Some(release)));
            all.filter(|consumer| consumer.registry.is_some())
        };
        if text == "all" {
            return Ok(with_operations().collect());
        }
        let Some((oldest, newest)) = range(text) else {
            return Ok(vec![Self::tensorflow(text)?]);
        };
        let oldest_known = with_operations().find_map(|consumer| consumer.release());
        let oldest = oldest.or(oldest_known).unwrap_or_default();
        let newest_known = tensorflow::newest_release().map(|release| release.version);
        let newest = newest.or(newest_known).unwrap_or_default();
        let position = |name: &str| {
            let release = tensorflow::release(name)?;
            Ok::<_, UnknownRelease>(tensorflow::releases().iter().position(|one| one == release))
        };
        let (first, last) = (position(oldest)?, position(newest)?);
        let known =
            first.zip(last).and_then(|(first, last)| tensorflow::releases().get(first..=last));
        let known = known.filter(|known| !known.is_empty()).ok_or_else(|| {
            ConsumerError::NoRelease { oldest: oldest.to_owned(), newest: newest.to_owned() }
        })?;
        Ok(known.iter().map(|release| Self::of_release(Some(release))).collect())
    }

    /// Sets the operations to those of this registry, independent of the numbers.
    #[must_use]
    pub fn with_registry(self, registry: Registry) -> Self {
        let registry = Some(registry.with(self.operations.iter().cloned()));
        Self { registry, ..self }
    }

    /// Adds operations to those of the release: those of the custom libraries that the consumer
    /// loads.
    ///
    /// ```
    /// use serdes_operations::OperationDefinition;
    /// use serdes_check::Consumer;
    ///
    /// let ours = OperationDefinition::of_name("OurFusedOp");
    /// let consumer = Consumer::tensorflow("2.16")?.with_operations([ours]);
    /// assert!(consumer.registry().unwrap().operation("OurFusedOp").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_operations(
        mut self,
        operations: impl IntoIterator<Item = OperationDefinition>,
    ) -> Self {
        let operations: Vec<_> = operations.into_iter().collect();
        if operations.is_empty() {
            return self;
        }
        self.registry = self.registry.map(|registry| registry.with(operations.iter().cloned()));
        self.operations.extend(operations);
        self
    }

    /// Returns the operations of the consumer; `None` if unknown.
    #[must_use]
    pub fn registry(&self) -> Option<&Registry> {
        self.registry.as_ref()
    }

    /// Returns the release that the consumer is for graphs, `MAJOR.MINOR`; `None` for a GraphDef
    /// number that is not a release's.
    #[must_use]
    pub fn release(&self) -> Option<&'static str> {
        let version = self.release_of_graphs()?.version;
        let minor = version.match_indices('.').nth(1).map_or(version.len(), |(end, _)| end);
        version.get(..minor)
    }

    /// Returns the consumer as each release with known operations, oldest first, with its
    /// additional operations.
    pub(super) fn of_every_release(&self) -> Vec<Self> {
        let line = ArtifactLine::GraphDef.name();
        let at = |release| {
            let mut consumer = Self { release: Some(release), ..self.clone() };
            consumer.named.retain(|named| named.line != line);
            let registry = registry_of(release)?;
            consumer.registry = Some(registry.with(self.operations.iter().cloned()));
            Some(consumer)
        };
        tensorflow::releases().iter().filter_map(at).collect()
    }

    fn release_of_graphs(&self) -> Option<&'static Release> {
        let line = ArtifactLine::GraphDef.name();
        match self.named.iter().find(|consumer| consumer.line == line) {
            Some(named) => tensorflow::graph_def(named.version).release,
            None => self.release,
        }
    }

    /// Sets the numbers of one line, from `LINE=N` or `LINE=N:MIN_PRODUCER`; see
    /// [`with_line`](Self::with_line).
    ///
    /// # Errors
    /// [`ConsumerError`], if the text is malformed, the line does not exist, or the numbers
    /// contradict each other.
    pub fn with(self, text: &str) -> Result<Self, ConsumerError> {
        let syntax = || ConsumerError::Syntax { found: text.chars().take(60).collect() };
        let (line, numbers) = text.split_once('=').ok_or_else(syntax)?;
        let (version, min_producer) = match numbers.split_once(':') {
            Some((version, min_producer)) => {
                (version, plain_number(min_producer).ok_or_else(syntax)?)
            }
            None => (numbers, 0),
        };
        self.with_line(line, plain_number(version).ok_or_else(syntax)?, min_producer)
    }

    /// Sets the version and min_producer of one line. After a change of the GraphDef version the
    /// consumer has the operations of the release with exactly that number; they are unknown if
    /// there is none.
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
        self.named.push(version::consumer(record.name, version, min_producer));
        if record.name == ArtifactLine::GraphDef.name() {
            let registry = self.release_of_graphs().and_then(registry_of);
            self.registry = registry.map(|registry| registry.with(self.operations.iter().cloned()));
        }
        Ok(self)
    }

    /// Bans an operation from graphs of the producers that the ban names, in addition to the
    /// operations that the options of the check refuse. Otherwise the consumer has the operation.
    ///
    /// ```
    /// use serdes_check::{self as check, Consumer, Rule};
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
        self.banned.push(deprecated(ban));
        self.having([ban.operation.as_str()])
    }

    /// Adds these operations by name where the release does not have them: operations that are
    /// banned from some version are used by older graphs.
    pub(super) fn having<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Self {
        let Some(registry) = &self.registry else { return self };
        let unknown = names.into_iter().filter(|name| registry.operation(name).is_none());
        let unknown: Vec<_> = unknown.map(OperationDefinition::of_name).collect();
        self.with_operations(unknown)
    }

    /// Returns the banned operations.
    pub(super) fn banned(&self) -> &[DeprecatedOperation] {
        &self.banned
    }

    /// Returns a list of operations with this consumer's bans added.
    pub(super) fn bans_on<'l>(
        &self,
        list: &'l DeprecatedOperations,
    ) -> Cow<'l, DeprecatedOperations> {
        if self.banned.is_empty() {
            return Cow::Borrowed(list);
        }
        Cow::Owned(list.clone().with(self.banned.iter().cloned()))
    }

    /// Returns the consumer of one line: as it was set, of the release, or, for lines that are not
    /// TensorFlow's, this build.
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
            Some(version::consumer(record.name, newest.number, record.min_producer))
        });
        // Every line has an entry; otherwise the consumer would accept nothing.
        newest.unwrap_or_else(|| version::consumer(line, i32::MIN, i32::MIN))
    }
}

/// Returns the operations of a release, if they are known.
fn registry_of(release: &Release) -> Option<Registry> {
    Registry::tensorflow(release.version).ok()
}

/// Parses a number in the form in which it is printed, without a sign.
fn plain_number(text: &str) -> Option<i32> {
    let number: i32 = text.parse().ok()?;
    (number >= 0 && number.to_string() == text).then_some(number)
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
    fn consumer_has_the_operations_of_its_release() {
        let release = |consumer: &Consumer| consumer.registry().map(Registry::release);
        let newest = Consumer::newest();
        assert_eq!((release(&newest), newest.release()), (Some("2.21"), Some("2.21")));
        let by_number = |text: &str| Consumer::newest().with(text).unwrap();
        assert_eq!(release(&by_number("graph_def=1395")), Some("2.12"));
        assert_eq!(by_number("graph_def=1395").release(), Some("2.12"));
        assert_eq!(release(&by_number("graph_def=1396")), None);
        assert_eq!(by_number("graph_def=1396").release(), None);
        assert_eq!(release(&by_number("tensor_bundle=2")), Some("2.21"));
        let old = Consumer::tensorflow("2.8").unwrap();
        assert_eq!((release(&old), old.release()), (None, Some("2.8")));
        let given = by_number("graph_def=1396")
            .with_operations([OperationDefinition::of_name("Ours")])
            .with_registry(Registry::tensorflow("2.16").unwrap());
        assert_eq!(release(&given), Some("2.16"));
        assert!(given.registry().unwrap().operation("Ours").is_some());
        // Settings are kept when the number changes.
        let moved = given.with("graph_def=1482").unwrap();
        assert_eq!(release(&moved), Some("2.13"));
        assert!(moved.registry().unwrap().operation("Ours").is_some());
    }

    #[test]
    fn a_banned_operation_is_one_that_the_consumer_has() {
        let has = |consumer: &Consumer, name: &str| {
            consumer.registry().is_some_and(|registry| registry.operation(name).is_some())
        };
        let banning = Consumer::newest().with_ban(&OperationBan::new("OurFusedOp", 2475, "V2"));
        assert!(has(&banning, "OurFusedOp"));
        let known = Consumer::newest().with_ban(&OperationBan::new("MatMul", 2475, "V2"));
        assert!(!known.registry().unwrap().operation("MatMul").unwrap().is_name_alone());
    }

    #[test]
    fn releases_are_named_by_ranges_and_words() {
        let names = |text: &str| {
            let releases = Consumer::releases(text).unwrap();
            releases.iter().map(|one| one.release().unwrap()).collect::<Vec<_>>()
        };
        let all = names("all");
        assert_eq!(all, Registry::releases().collect::<Vec<_>>());
        assert_eq!(names("2.12..2.14"), ["2.12", "2.13", "2.14"]);
        assert_eq!(names("2.16.2..2.16"), ["2.16"]);
        assert_eq!(names("2.10..2.12"), ["2.10", "2.12"]);
        assert_eq!(names("2.13"), ["2.13"]);
        assert_eq!(names("latest"), ["2.21"]);
        assert_eq!(names("2.20.."), ["2.20", "2.21"]);
        assert_eq!(names(">= 2.20"), ["2.20", "2.21"]);
        assert_eq!(names("..2.13"), ["2.12", "2.13"]);
        for text in ["", "..", ">=", "9.9..", "2.12..9.9", "ALL", "2.12...2.13"] {
            let error = Consumer::releases(text).unwrap_err().to_string();
            assert!(error.contains("2.21.0"), "{error}");
        }
        let error = Consumer::releases("2.14..2.12").unwrap_err().to_string();
        assert!(error.contains("the older one first"), "{error}");
    }

    #[test]
    fn every_line_of_artifacts_is_in_the_registry() {
        for &line in ArtifactLine::ALL {
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
            crate::bytes(graph.concat()).for_consumer(&banning)
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
