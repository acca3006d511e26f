//! The versions that a piece of data records, as in TensorFlow.

use std::fmt;

/// The versions that a piece of data records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct VersionDef {
    /// The version of the producer that wrote the data.
    pub producer: i32,
    /// The oldest consumer that may accept the data.
    pub min_consumer: i32,
    /// Consumers that must not accept the data, in any order and number.
    pub bad_consumers: Vec<i32>,
}

impl VersionDef {
    /// Merges the versions of imported data into these: takes the older producer, the newer
    /// min_consumer, and the sorted union of the bad consumers.
    ///
    /// ```
    /// use serdes_version_registry::VersionDef;
    ///
    /// let mut graph = VersionDef { producer: 2474, min_consumer: 0, bad_consumers: vec![7] };
    /// graph.merge(&VersionDef { producer: 1395, min_consumer: 12, bad_consumers: vec![3, 7] });
    /// assert_eq!(graph, VersionDef { producer: 1395, min_consumer: 12, bad_consumers: vec![3, 7] });
    /// ```
    pub fn merge(&mut self, imported: &VersionDef) {
        self.producer = self.producer.min(imported.producer);
        self.min_consumer = self.min_consumer.max(imported.min_consumer);
        self.bad_consumers.extend_from_slice(&imported.bad_consumers);
        self.bad_consumers.sort_unstable();
        self.bad_consumers.dedup();
    }
}

/// Formats as `producer 2474, min_consumer 0`, followed by the bad consumers if there are any.
impl fmt::Display for VersionDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "producer {}, min_consumer {}", self.producer, self.min_consumer)?;
        if !self.bad_consumers.is_empty() {
            write!(f, ", bad_consumers {:?}", self.bad_consumers)?;
        }
        Ok(())
    }
}
