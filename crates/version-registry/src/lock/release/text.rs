//! The rows of releases in versions.lock.
//!
//! Names are written with their control characters escaped, and are compared as written.

use std::collections::{BTreeMap, BTreeSet};

use super::{ReleaseState, ReleasedEntry};

/// Escapes a name, so that it is one field of a row.
pub(in crate::lock) fn field(name: &str) -> String {
    name.escape_default().to_string()
}

impl ReleaseState {
    /// Appends the rows of a line to `text`: its release with its bounds and bans, then its
    /// entries.
    pub(in crate::lock) fn render(&self, line: &str, text: &mut String) {
        let Self { release, minor_from, minimum, min_producer, bans, entries } = self;
        text.push_str(&format!(
            "release\t{line}\t{release}\t{minor_from}\t{minimum}\t{min_producer}"
        ));
        for (consumer, content) in bans {
            let space = if content.is_empty() { "" } else { " " };
            text.push_str(&format!("\t{consumer}{space}{content}"));
        }
        text.push('\n');
        for (number, entry) in entries {
            let ReleasedEntry { introduced, min_consumer, withdrawn, formats, embeds } = entry;
            let used = if *withdrawn { "withdrawn" } else { "used" };
            text.push_str(&format!(
                "released\t{line}\t{number}\t{introduced}\t{min_consumer}\t{used}"
            ));
            for (format, is_removed) in formats {
                text.push_str(&format!("\t{}{format}", if *is_removed { '-' } else { '+' }));
            }
            for (embedded, number) in embeds {
                text.push_str(&format!("\t@{number} {embedded}"));
            }
            text.push('\n');
        }
    }

    /// Parses the fields of a `release` row after the name of its line. The entries have rows of
    /// their own.
    fn parse(fields: &[&str]) -> Option<Self> {
        let [release, minor_from, minimum, min_producer, bans @ ..] = fields else { return None };
        let ban = |field: &&str| {
            let (consumer, content) = field.split_once(' ').unwrap_or((field, ""));
            Some((consumer.parse().ok()?, content.to_owned()))
        };
        Some(Self {
            release: release.parse().ok()?,
            minor_from: minor_from.parse().ok()?,
            minimum: minimum.parse().ok()?,
            min_producer: min_producer.parse().ok()?,
            bans: bans.iter().map(ban).collect::<Option<BTreeSet<_>>>()?,
            entries: BTreeMap::new(),
        })
    }
}

impl ReleasedEntry {
    /// Parses the fields of a `released` row after the name of its line: the number and the entry.
    fn parse(fields: &[&str]) -> Option<(i32, Self)> {
        let [number, introduced, min_consumer, used, formats_and_embeds @ ..] = fields else {
            return None;
        };
        let mut entry = Self {
            introduced: introduced.parse().ok()?,
            min_consumer: min_consumer.parse().ok()?,
            withdrawn: match *used {
                "used" => false,
                "withdrawn" => true,
                _ => return None,
            },
            formats: BTreeMap::new(),
            embeds: BTreeMap::new(),
        };
        for field in formats_and_embeds {
            if let Some(format) = field.strip_prefix('+') {
                entry.formats.insert(format.to_owned(), false);
            } else if let Some(format) = field.strip_prefix('-') {
                entry.formats.insert(format.to_owned(), true);
            } else {
                let (number, line) = field.strip_prefix('@')?.split_once(' ')?;
                entry.embeds.insert(line.to_owned(), number.parse().ok()?);
            }
        }
        Some((number.parse().ok()?, entry))
    }
}

/// Parses a `release` or `released` row into `releases`. Returns `Ok(false)` for a row of another
/// kind.
///
/// # Errors
/// A message for a row that cannot be parsed, that occurs twice, or that has no `release` row above
/// it.
pub(in crate::lock) fn parse_row(
    row: &str,
    releases: &mut BTreeMap<String, ReleaseState>,
) -> Result<bool, &'static str> {
    let fields: Vec<&str> = row.split('\t').collect();
    match fields[..] {
        ["release", line, ref rest @ ..] => {
            let state = ReleaseState::parse(rest)
                .ok_or("the release, its bounds or its bans cannot be read")?;
            match releases.insert(line.to_owned(), state) {
                None => Ok(true),
                Some(_) => Err("the line has two releases"),
            }
        }
        ["released", line, ref rest @ ..] => {
            let state = releases.get_mut(line).ok_or("no `release` row of its line is above it")?;
            let (number, entry) =
                ReleasedEntry::parse(rest).ok_or("the released entry cannot be read")?;
            match state.entries.insert(number, entry) {
                None => Ok(true),
                Some(_) => Err("the entry stands there twice"),
            }
        }
        _ => Ok(false),
    }
}
