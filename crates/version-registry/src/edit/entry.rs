//! The entry to add, and its text.

use std::fmt::Write;

use super::EditError;
use crate::{Date, LineDeclaration, ReleaseNumber};

/// The width of a row of the file, in columns.
const WIDTH: usize = 100;

/// An entry to add to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    pub(super) line: String,
    pub(super) introduced: Date,
    number: Option<i32>,
    formats: Vec<String>,
    summary: Option<String>,
    released_in: Option<String>,
    date_source: Option<String>,
    min_consumer: Option<i32>,
    pub(super) release: Option<ReleaseNumber>,
}

impl NewEntry {
    /// Creates an entry of the named line, introduced on this day.
    pub fn new(line: impl Into<String>, introduced: Date) -> Self {
        Self {
            line: line.into(),
            introduced,
            number: None,
            formats: Vec::new(),
            summary: None,
            released_in: None,
            date_source: None,
            min_consumer: None,
            release: None,
        }
    }

    /// Sets the formats that change with it.
    #[must_use]
    pub fn with_formats(mut self, formats: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.formats = formats.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the summary for people; by default, it names the formats.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Sets a number other than the next one, for a line whose numbers an external project assigns.
    #[must_use]
    pub fn with_number(mut self, number: i32) -> Self {
        self.number = Some(number);
        self
    }

    /// Sets the first release that has the entry.
    #[must_use]
    pub fn with_released_in(mut self, release: impl Into<String>) -> Self {
        self.released_in = Some(release.into());
        self
    }

    /// Sets the source of the entry's day, if that is not the day of the change.
    #[must_use]
    pub fn with_date_source(mut self, source: impl Into<String>) -> Self {
        self.date_source = Some(source.into());
        self
    }

    /// Sets the oldest consumer of the entry's data.
    #[must_use]
    pub fn with_min_consumer(mut self, consumer: i32) -> Self {
        self.min_consumer = Some(consumer);
        self
    }

    /// Sets the release of the line: the line's `release` moves to this number.
    #[must_use]
    pub fn with_release(mut self, release: ReleaseNumber) -> Self {
        self.release = Some(release);
        self
    }

    /// Returns the entry's number in this line.
    pub(super) fn number_in(&self, line: &LineDeclaration) -> Result<i32, EditError> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        let last = line.entries.last().map_or(-1, |entry| entry.number);
        let next = match line.counts_days_from {
            Some((base, day)) if self.introduced >= day => {
                i32::try_from(i64::from(base) + self.introduced.days_since(day)).ok()
            }
            _ => last.checked_add(1),
        };
        let out =
            || EditError::OutOfNumbers { line: line.name.clone(), day: self.introduced, last };
        next.ok_or_else(out)
    }

    /// Returns the entry's text: a `[[line.entry]]` table, with rows ended by `\n`.
    pub(super) fn render(&self, number: i32) -> Result<String, EditError> {
        let summary = match &self.summary {
            Some(summary) => summary.clone(),
            None if self.formats.is_empty() => return Err(EditError::NothingSaid),
            None => format!("new format of {}", self.formats.join(", ")),
        };
        let mut text = format!(
            "[[line.entry]]\nnumber = {number}\nintroduced = {}\nsummary = {}\n",
            self.introduced,
            quoted(&summary)
        );
        if !self.formats.is_empty() {
            text.push_str(&list("formats", &self.formats));
        }
        // Writing to a string cannot fail.
        if let Some(release) = &self.released_in {
            let _ = writeln!(text, "released_in = {}", quoted(release));
        }
        if let Some(source) = &self.date_source {
            let _ = writeln!(text, "date_source = {}", quoted(source));
        }
        if let Some(consumer) = self.min_consumer {
            let _ = writeln!(text, "min_consumer = {consumer}");
        }
        Ok(text)
    }
}

/// Returns an array of texts, in one row, or in several if it is too long for one.
fn list(key: &str, items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    let row = format!("{key} = [{}]\n", quoted.join(", "));
    if row.len() <= WIDTH {
        return row;
    }
    let mut text = format!("{key} = [\n");
    let mut row = String::from("   ");
    for item in quoted {
        if row.len() > 3 && row.len() + item.len() + 2 > WIDTH {
            text.push_str(&row);
            text.push('\n');
            row.truncate(3);
        }
        row.push(' ');
        row.push_str(&item);
        row.push(',');
    }
    text.push_str(&row);
    text.push_str("\n]\n");
    text
}

/// Returns a text as a basic string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
