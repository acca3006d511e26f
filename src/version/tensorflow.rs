//! TensorFlow's own lines: the numbers of each release, and the meaning of a GraphDef number.

use serdes_abi::ErrorKind;

use super::{
    Consumer, Date, LineRecord, Producer, Product, Release, evolution::OperationAddition, registry,
};

/// The lines in which TensorFlow's releases have a number.
pub const LINES: &[&str] = &["graph_def", "checkpoint", "tensor_bundle"];

/// The error of a release that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "TensorFlow {found:?} is not a known release; known are {known} (another patch of one of these \
     counts as that one)"
)]
#[non_exhaustive]
pub struct UnknownRelease {
    /// The text found, cut at 40 characters.
    pub found: String,
    /// The known releases, as text.
    pub known: String,
}

impl UnknownRelease {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }
}

fn product() -> Option<&'static Product> {
    registry().product("tensorflow")
}

/// Returns the known releases, oldest first.
pub fn releases() -> &'static [Release] {
    product().map_or(&[], |product| product.releases)
}

/// Returns the release that `version` (`MAJOR.MINOR.PATCH` or `MAJOR.MINOR`) stands for. A patch
/// that the table does not list takes the numbers of its `MAJOR.MINOR`.
///
/// ```
/// use serdes::version::tensorflow;
///
/// assert_eq!(tensorflow::release("2.12.0")?.number("graph_def"), Some(1395));
/// assert_eq!(tensorflow::release("2.16")?.version, "2.16.2");
/// assert!(tensorflow::release("2.99.0").unwrap_err().to_string().contains("2.21.0"));
/// # Ok::<(), tensorflow::UnknownRelease>(())
/// ```
pub fn release(version: &str) -> Result<&'static Release, UnknownRelease> {
    product().and_then(|product| product.release(version)).ok_or_else(|| {
        let known: Vec<&str> = releases().iter().map(|release| release.version).collect();
        UnknownRelease { found: version.chars().take(40).collect(), known: known.join(", ") }
    })
}

/// Returns the newest release of the table, the consumer to assume if none is named.
pub fn newest_release() -> Option<&'static Release> {
    releases().last()
}

/// Returns a release as a consumer of one of [`LINES`]; `None` for any other line.
pub fn consumer(release: &Release, line: &str) -> Option<Consumer> {
    let version = release.number(line)?;
    let record = registry().line(line)?;
    let consumer = Consumer::new(record.name, record.data, version, record.min_producer);
    Some(consumer.of_release(format!("TensorFlow {}", release.version)))
}

/// Returns a release as a producer of one of [`LINES`]; `None` for any other line.
///
/// ```
/// use serdes::version::{Producer, tensorflow};
///
/// let producer = tensorflow::producer(tensorflow::release("2.21.0")?, "graph_def").unwrap();
/// assert_eq!(producer, Producer::new(2474, 0));
/// let graph = producer.stamp();
/// let old = tensorflow::consumer(tensorflow::release("2.12.0")?, "graph_def").unwrap();
/// assert!(old.check(&graph).is_ok());
/// # Ok::<(), tensorflow::UnknownRelease>(())
/// ```
pub fn producer(release: &Release, line: &str) -> Option<Producer> {
    let version = release.number(line)?;
    let record = registry().line(line)?;
    // A release lists faulty consumers that are older than itself.
    let known = |bad: &[i32]| bad.iter().copied().filter(|bad| *bad < version).collect::<Vec<_>>();
    let mut producer =
        Producer::new(version, record.entry(version).map_or(0, |entry| entry.min_consumer))
            .with_bad_consumers(known(record.bad_consumers));
    for (content, bad) in record.bad_consumers_with {
        producer = producer.with_bad_consumers_of(*content, known(bad));
    }
    Some(producer)
}

/// The day and the releases that belong to a GraphDef number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphDefNumber {
    /// The number.
    pub number: i32,
    /// The day that the number stands for: from the list below 30, and from the count of days for
    /// 30 and above; `None` for negative numbers and for days outside the calendar.
    pub date: Option<Date>,
    /// The release that has exactly this number.
    pub release: Option<&'static Release>,
    /// The oldest known release that reads a graph with this number as its min_consumer.
    pub first_release_with: Option<&'static Release>,
}

/// Returns the day and the releases that a GraphDef number stands for.
///
/// ```
/// let number = serdes::version::tensorflow::graph_def(1400);
/// assert_eq!(number.date.unwrap().to_string(), "2023-02-07");
/// assert_eq!(number.release, None);
/// assert_eq!(number.first_release_with.unwrap().version, "2.13.1");
/// ```
pub fn graph_def(number: i32) -> GraphDefNumber {
    let of = |release: &&Release| release.number("graph_def");
    GraphDefNumber {
        number,
        date: registry().line("graph_def").and_then(|line| day_of(line, number)),
        release: releases().iter().find(|release| of(release) == Some(number)),
        first_release_with: releases()
            .iter()
            .find(|release| of(release).is_some_and(|found| found >= number)),
    }
}

/// Returns the addition of an operation that consumers have from a GraphDef number on, which says
/// when producers may emit it. `None` for a number that stands for no day.
///
/// ```
/// use serdes::version::tensorflow;
///
/// // Consumers have it from the branch point of TensorFlow 2.21.0 on, 2026-01-16.
/// let operation = tensorflow::addition("SomethingV2", 2474).expect("a number with a day");
/// assert_eq!(operation.writable_from().expect("a day").to_string(), "2026-02-06");
/// assert!(operation.may_emit("2026-02-05".parse()?).is_err());
/// # Ok::<(), serdes::version::ParseDateError>(())
/// ```
pub fn addition(operation: impl Into<String>, number: i32) -> Option<OperationAddition> {
    Some(OperationAddition::new(operation, graph_def(number).date?))
}

fn day_of(line: &LineRecord, number: i32) -> Option<Date> {
    match line.counts_days_from {
        Some((base, day)) if number >= base => day.plus_days(i64::from(number) - i64::from(base)),
        _ => line.entry(number).map(|entry| entry.introduced),
    }
}
