//! The changes of a versions.toml that the steps taken require.

use std::fmt;

use super::Date;

/// An entry that a step adds to its line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedEntry {
    /// The number of the entry.
    pub number: i32,
    /// The day of the entry, if the steps were given one.
    pub introduced: Option<Date>,
    /// The summary of the entry.
    pub summary: String,
    /// The oldest consumer of its data.
    pub min_consumer: i32,
}

/// The changes of a versions.toml that the steps taken require. Its `Display` form is the rows to
/// write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// The line, if the steps started from one.
    pub line: Option<String>,
    /// The new `min_producer` of the line.
    pub min_producer: Option<i32>,
    /// The new `bad_consumers` of the line.
    pub bad_consumers: Option<Vec<i32>>,
    /// The new `bad_consumers_with` of the line: content and consumers.
    pub bad_consumers_with: Option<Vec<(String, Vec<i32>)>>,
    /// An existing entry's number, and its new `min_consumer`.
    pub min_consumer: Option<(i32, i32)>,
    /// The entries to add, in this order.
    pub entries: Vec<PlannedEntry>,
}

impl Changes {
    /// Returns `true` if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self { line: self.line.clone(), ..Self::default() }
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.as_deref().unwrap_or("this");
        if self.is_empty() {
            return writeln!(f, "# line {line}: nothing to write");
        }
        let keys = self.min_producer.is_some()
            || self.bad_consumers.is_some()
            || self.bad_consumers_with.is_some();
        if keys {
            writeln!(f, "# line {line}: in its [[line]] table")?;
        }
        if let Some(min_producer) = self.min_producer {
            writeln!(f, "min_producer = {min_producer}")?;
        }
        if let Some(consumers) = &self.bad_consumers {
            writeln!(f, "bad_consumers = {consumers:?}")?;
        }
        if let Some(with) = &self.bad_consumers_with {
            let fields = with.iter();
            let fields: Vec<String> =
                fields.map(|(content, bad)| format!("{} = {bad:?}", Quoted(content))).collect();
            writeln!(f, "bad_consumers_with = {{ {} }}", fields.join(", "))?;
        }
        if let Some((number, min_consumer)) = self.min_consumer {
            writeln!(f, "# line {line}: in its entry {number}\nmin_consumer = {min_consumer}")?;
        }
        for (at, entry) in self.entries.iter().enumerate() {
            if at == 0 {
                writeln!(f, "# line {line}: at its end")?;
            }
            writeln!(f, "[[line.entry]]\nnumber = {}", entry.number)?;
            match entry.introduced {
                Some(day) => writeln!(f, "introduced = {day}")?,
                None => writeln!(f, "introduced =  # the day of the change")?,
            }
            writeln!(f, "summary = {}", Quoted(&entry.summary))?;
            if entry.min_consumer != 0 {
                writeln!(f, "min_consumer = {}", entry.min_consumer)?;
            }
        }
        Ok(())
    }
}

/// A text formatted as a basic string of TOML.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if control.is_control() => write!(f, "\\u{:04X}", u32::from(control))?,
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"")
    }
}
