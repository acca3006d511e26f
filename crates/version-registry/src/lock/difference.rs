//! What differs between the lock and the present, and what to do about it.

use std::fmt;

use super::{Fingerprint, Item, LineFormats, Lock, golden_version};

/// One difference between versions.lock and the package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// A frozen format has other bytes now.
    Changed {
        /// The item.
        item: Item,
        /// The frozen fingerprint.
        frozen: Fingerprint,
        /// The present one.
        found: Fingerprint,
    },
    /// A frozen format is gone.
    Gone {
        /// The item.
        item: Item,
    },
    /// A format is not frozen yet.
    NotFrozen {
        /// The item.
        item: Item,
    },
    /// A message changed with a new entry that does not name it.
    NotNamed {
        /// The item as it is now.
        item: Item,
    },
    /// A format has golden bytes, but none for an entry that names it.
    NoGolden {
        /// The line.
        line: String,
        /// The format.
        format: String,
        /// The number of the entry.
        number: i32,
    },
}

impl Difference {
    /// Whether rewriting the lock settles it: nothing that is out in the field is touched.
    pub const fn is_addition(&self) -> bool {
        matches!(self, Self::NotFrozen { .. })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { item, frozen, found } => write!(
                f,
                "{item}: changed from {frozen} to {found}. Builds in the field know the frozen form: \
                 restore it; or write the new form under a new number (an entry with today's day in \
                 versions.toml that names the format) beside the old one, then run \
                 `serdes versions lock`"
            ),
            Self::Gone { item } => write!(
                f,
                "{item}: frozen, but gone. Restore it; golden bytes are kept for ever, and a message \
                 stays until the line's minimum is above every number that writes it"
            ),
            Self::NotFrozen { item } => {
                write!(
                    f,
                    "{item}: not frozen yet. Run `serdes versions lock` and commit versions.lock"
                )
            }
            Self::NotNamed { item } => write!(
                f,
                "{item}: changed, but the entry of that number does not name it. Add it to the \
                 `formats` of the entry in versions.toml, or restore it"
            ),
            Self::NoGolden { line, format, number } => write!(
                f,
                "{format} of {line} version {number}: versions.toml names the format, but there are no \
                 golden bytes. Add tests/golden/{line}/{format}/v{number}.bin"
            ),
        }
    }
}

/// All differences; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences(pub(crate) Vec<Difference>);

impl Differences {
    /// The differences.
    pub fn iter(&self) -> std::slice::Iter<'_, Difference> {
        self.0.iter()
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, difference) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{difference}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Differences {}

impl Lock {
    /// How `found`, collected from a package with these lines, differs from this lock.
    pub fn compare(&self, found: &Lock, lines: &[LineFormats]) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (item, frozen) in self.iter() {
            match found.items.get(item) {
                Some(now) if *now != frozen => differences.push(Difference::Changed {
                    item: item.clone(),
                    frozen,
                    found: *now,
                }),
                None if !is_history(item, lines) => {
                    differences.push(Difference::Gone { item: item.clone() });
                }
                _ => {}
            }
        }
        for (item, now) in found.iter().filter(|(item, _)| !self.items.contains_key(item)) {
            let item = item.clone();
            differences.push(match &item {
                Item::Descriptor { line, message, number }
                    if self.newest_below(line, message, *number).is_some_and(|old| old != now)
                        && !names(lines, line, message, *number) =>
                {
                    Difference::NotNamed { item }
                }
                _ => Difference::NotFrozen { item },
            });
        }
        differences.extend(no_golden(found, lines));
        differences
    }

    /// This lock with what `found` has: frozen items that are history now stay.
    pub fn updated(&self, found: &Lock, lines: &[LineFormats]) -> Lock {
        let mut items = found.items.clone();
        for (item, frozen) in &self.items {
            if is_history(item, lines) {
                items.entry(item.clone()).or_insert(*frozen);
            }
        }
        Lock { items }
    }

    /// The fingerprint that a message had at the newest number below this one.
    fn newest_below(&self, line: &str, message: &str, number: i32) -> Option<Fingerprint> {
        let same = self.iter().filter_map(|(item, fingerprint)| match item {
            Item::Descriptor { line: l, message: m, number: n }
                if l == line && m == message && *n < number =>
            {
                Some((*n, fingerprint))
            }
            _ => None,
        });
        same.max_by_key(|(number, _)| *number).map(|(_, fingerprint)| fingerprint)
    }
}

/// Whether an item shows how a message was at a number that is no longer the current one.
fn is_history(item: &Item, lines: &[LineFormats]) -> bool {
    match item {
        Item::Descriptor { line, number, .. } => lines
            .iter()
            .find(|candidate| candidate.name == *line)
            .and_then(LineFormats::newest)
            .is_some_and(|newest| *number < newest),
        Item::Golden { .. } => false,
    }
}

/// Whether the entry of this number names the message or a message around it.
fn names(lines: &[LineFormats], line: &str, message: &str, number: i32) -> bool {
    let Some(line) = lines.iter().find(|candidate| candidate.name == line) else { return false };
    let entry = line.entries.iter().find(|(candidate, _)| *candidate == number);
    entry.is_some_and(|(_, formats)| {
        let last = message.rsplit('.').next().unwrap_or(message);
        let stem = last.strip_suffix("Proto").unwrap_or(last);
        formats.iter().any(|format| [message, last, stem].contains(&format.as_str()))
    })
}

fn no_golden(found: &Lock, lines: &[LineFormats]) -> Vec<Difference> {
    let golden: Vec<(&str, &str, i32)> = found
        .items
        .keys()
        .filter_map(|item| match item {
            Item::Golden { path } => golden_version(path),
            Item::Descriptor { .. } => None,
        })
        .collect();
    let mut missing = Vec::new();
    for line in lines {
        for (number, formats) in &line.entries {
            for format in formats {
                let of_format = || golden.iter().filter(|(l, f, _)| *l == line.name && f == format);
                if of_format().next().is_some() && !of_format().any(|(_, _, n)| n == number) {
                    missing.push(Difference::NoGolden {
                        line: line.name.clone(),
                        format: format.clone(),
                        number: *number,
                    });
                }
            }
        }
    }
    missing
}
