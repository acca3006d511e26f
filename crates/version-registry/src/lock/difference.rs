//! Differences between the lock and the package, each with its remedy.

use std::{collections::BTreeSet, fmt};

use super::{Fingerprint, Item, LineFormats, Lock, ReleaseChange, golden_version};
use crate::{ReleaseKind, ReleaseNumber};

/// One difference between versions.lock and the package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The bytes of a frozen format have changed.
    Changed {
        /// The item.
        item: Item,
        /// The frozen fingerprint.
        frozen: Fingerprint,
        /// The present fingerprint.
        found: Fingerprint,
    },
    /// A frozen format no longer exists.
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
    /// A format has no golden bytes for an entry that names it.
    NoGolden {
        /// The line.
        line: String,
        /// The format.
        format: String,
        /// The number of the entry.
        number: i32,
    },
    /// A line has a change that a release of its kind may not make.
    NotInRelease {
        /// The line.
        line: String,
        /// The change.
        change: ReleaseChange,
        /// The last release.
        released: ReleaseNumber,
        /// The release in versions.toml.
        release: ReleaseNumber,
    },
    /// The release in versions.toml is older than the last one.
    ReleaseGoesBack {
        /// The line.
        line: String,
        /// The release in versions.toml.
        found: ReleaseNumber,
        /// The last release.
        released: ReleaseNumber,
    },
    /// A released line no longer has a release, or no longer exists.
    NoRelease {
        /// The line.
        line: String,
        /// The last release.
        released: ReleaseNumber,
    },
}

impl Difference {
    /// Returns `true` if rewriting the lock resolves it, because no released format changes.
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
                 golden bytes. Add tests/golden/{line}/{format}/v{number}.bin (`serdes versions golden`)"
            ),
            Self::NotInRelease { line, change, released, release } => {
                write!(f, "{line}: {change}. {}", Remedy { change, released, release })
            }
            Self::ReleaseGoesBack { line, found, released } => write!(
                f,
                "{line}: the release is {found}, and {released} is out; name a later one in versions.toml"
            ),
            Self::NoRelease { line, released } => write!(
                f,
                "{line}: release {released} is out, and versions.toml says no release of the line; restore \
                 it with `release = \"{released}\"`"
            ),
        }
    }
}

/// The releases that a change would need.
struct Remedy<'c> {
    change: &'c ReleaseChange,
    released: &'c ReleaseNumber,
    release: &'c ReleaseNumber,
}

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, released, release } = self;
        let Some(needs) = change.needs() else {
            return write!(
                f,
                "Release {released} has the number as it was, and no release may change that: restore it, \
                 and add an entry with a number of its own"
            );
        };
        match ReleaseKind::of_step(**released, **release) {
            Ok(kind) => write!(f, "Release {release} is a {kind} release after {released}")?,
            Err(_) => write!(f, "Release {released} is out")?,
        }
        write!(f, ", and this is for a {needs} release")?;
        match released.next(needs) {
            Some(next) => write!(
                f,
                ": say `release = \"{next}\"` for the line in versions.toml, or take it back"
            ),
            None => f.write_str(": take it back"),
        }
    }
}

/// All differences; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences(pub(crate) Vec<Difference>);

impl Differences {
    /// Returns the differences.
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
    /// Returns the differences between this lock and `found`, the lock of a package with these
    /// lines.
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
        differences.extend(self.broken_releases(lines));
        differences
    }

    /// Returns this lock updated with `found`: frozen items of older numbers stay, and so do
    /// releases.
    pub fn updated(&self, found: &Lock, lines: &[LineFormats]) -> Lock {
        let mut items = found.items.clone();
        for (item, frozen) in &self.items {
            if is_history(item, lines) {
                items.entry(item.clone()).or_insert(*frozen);
            }
        }
        Lock { items, releases: self.releases.clone() }
    }

    /// Returns the fingerprint of a message at the newest number below `number`.
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

/// Returns `true` for the descriptor of a message at a number that is no longer the current one.
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

/// Returns `true` if the entry with this number names the message or an enclosing message.
fn names(lines: &[LineFormats], line: &str, message: &str, number: i32) -> bool {
    let Some(line) = lines.iter().find(|candidate| candidate.name == line) else { return false };
    let entry = line.entries.iter().find(|(candidate, _)| *candidate == number);
    entry.is_some_and(|(_, formats)| {
        let last = message.rsplit('.').next().unwrap_or(message);
        let stem = last.strip_suffix("Proto").unwrap_or(last);
        formats.iter().any(|format| [message, last, stem].contains(&format.as_str()))
    })
}

/// Returns the formats in these lines' entries for which `found` has no golden bytes.
pub(super) fn without_golden(found: &Lock, lines: &[LineFormats]) -> Vec<Difference> {
    let shown = Shown::of(found, lines);
    shown.missing(|_, _| true)
}

/// Returns the formats with golden bytes, but none for one of the entries that name them.
fn no_golden(found: &Lock, lines: &[LineFormats]) -> Vec<Difference> {
    let shown = Shown::of(found, lines);
    let known: BTreeSet<(&str, &str)> =
        shown.golden.iter().map(|(line, format, _)| (*line, *format)).collect();
    shown.missing(|line, format| known.contains(&(line, format)))
}

/// The formats and numbers for which a package has golden bytes.
struct Shown<'a> {
    lines: &'a [LineFormats],
    /// Line, format and number.
    golden: BTreeSet<(&'a str, &'a str, i32)>,
}

impl<'a> Shown<'a> {
    fn of(found: &'a Lock, lines: &'a [LineFormats]) -> Self {
        let golden = found.items.keys().filter_map(|item| match item {
            Item::Golden { path } => {
                golden_version(path).or_else(|| of_the_only_format(path, lines))
            }
            Item::Descriptor { .. } => None,
        });
        Self { lines, golden: golden.collect() }
    }

    /// Returns the formats of an entry without golden bytes, among those for which `is_looked_for`
    /// returns `true`.
    fn missing(&self, is_looked_for: impl Fn(&str, &str) -> bool) -> Vec<Difference> {
        let mut missing = Vec::new();
        for line in self.lines {
            for (number, formats) in &line.entries {
                for format in formats {
                    let is_shown = self.golden.contains(&(&line.name, format, *number));
                    if !is_shown
                        && is_looked_for(&line.name, format)
                        && !line.removed.contains(&(*number, format.clone()))
                    {
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
}

/// Returns line, format and number of golden bytes directly in the line's directory, which is
/// allowed if it has one format: `LINE/v2.bin`, `LINE/v2/case.bin`.
fn of_the_only_format<'a>(
    path: &'a str,
    lines: &'a [LineFormats],
) -> Option<(&'a str, &'a str, i32)> {
    let (name, rest) = path.split_once('/')?;
    let line = lines.iter().find(|line| line.name == name)?;
    let mut formats = line.entries.iter().flat_map(|(_, formats)| formats);
    let only = formats.next()?;
    let digits = rest.strip_prefix('v')?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits.get(..end)?.parse().ok()?;
    formats.all(|format| format == only).then_some((name, only.as_str(), number))
}
