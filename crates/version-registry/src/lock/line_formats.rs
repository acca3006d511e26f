//! The parts of a line that the lock compares.

use std::collections::{BTreeMap, BTreeSet};

use super::{ReleaseState, ReleasedEntry, release::field};
use crate::Registry;

/// The parts of a line that the lock compares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineFormats {
    /// The name of the line.
    pub name: String,
    /// The protobuf packages whose messages belong to it.
    pub packages: Vec<String>,
    /// The numbers that are not withdrawn, each with the formats that changed.
    pub entries: Vec<(i32, Vec<String>)>,
    /// The formats whose code was removed, each with the number of its entry.
    pub removed: Vec<(i32, String)>,
    /// The state of the line in its release; `None` if it has none.
    pub release: Option<ReleaseState>,
}

impl LineFormats {
    /// Returns the lines of a registry.
    pub fn of_registry(registry: &Registry) -> Vec<Self> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let entries = |line: &crate::LineRecord| {
            let used = line.entries.iter().filter(|entry| !entry.withdrawn);
            used.map(|entry| (entry.number, owned(entry.formats))).collect()
        };
        let removed = |line: &crate::LineRecord| {
            let entries = line.entries.iter();
            entries
                .flat_map(|entry| {
                    entry.removed.iter().map(|format| (entry.number, (*format).to_owned()))
                })
                .collect()
        };
        let lines = registry.lines.iter();
        lines
            .map(|line| Self {
                name: line.name.to_owned(),
                packages: owned(line.packages),
                entries: entries(line),
                removed: removed(line),
                release: state_of_record(line),
            })
            .collect()
    }

    /// Returns the lines of a versions.toml.
    pub fn of_declarations(declarations: &crate::Declarations) -> Vec<Self> {
        let lines = declarations.lines.iter();
        lines
            .map(|line| {
                let used = line.entries.iter().filter(|entry| !entry.withdrawn);
                Self {
                    name: line.name.clone(),
                    packages: line.packages.clone(),
                    entries: used.map(|entry| (entry.number, entry.formats.clone())).collect(),
                    removed: line
                        .entries
                        .iter()
                        .flat_map(|entry| {
                            entry.removed.iter().map(|format| (entry.number, format.clone()))
                        })
                        .collect(),
                    release: state_of_declaration(line),
                }
            })
            .collect()
    }

    /// Returns the current number.
    pub(super) fn newest(&self) -> Option<i32> {
        self.entries.last().map(|(number, _)| *number)
    }
}

/// Returns the formats of an entry in the form of the lock; `true` for those whose code was
/// removed.
fn formats<N: AsRef<str> + PartialEq>(formats: &[N], removed: &[N]) -> BTreeMap<String, bool> {
    formats.iter().map(|name| (field(name.as_ref()), removed.contains(name))).collect()
}

/// Returns the versions of other lines inside an entry's data.
fn embeds<N: AsRef<str>>(embeds: &[(N, i32)]) -> BTreeMap<String, i32> {
    embeds.iter().map(|(name, number)| (field(name.as_ref()), *number)).collect()
}

/// Returns the banned consumers, those for all data first.
fn bans<N: AsRef<str>, C: AsRef<[i32]>>(all: &[i32], with: &[(N, C)]) -> BTreeSet<(i32, String)> {
    let with = with.iter().flat_map(|(content, consumers)| {
        consumers.as_ref().iter().map(|consumer| (*consumer, field(content.as_ref())))
    });
    all.iter().map(|consumer| (*consumer, String::new())).chain(with).collect()
}

/// Returns the state of a registry's line, if it has a release.
fn state_of_record(line: &crate::LineRecord) -> Option<ReleaseState> {
    let entries = line.entries.iter().map(|entry| {
        let state = ReleasedEntry {
            introduced: entry.introduced,
            min_consumer: entry.min_consumer,
            withdrawn: entry.withdrawn,
            formats: formats(entry.formats, entry.removed),
            embeds: embeds(entry.embeds),
        };
        (entry.number, state)
    });
    let bans = bans(line.bad_consumers, line.bad_consumers_with);
    let bounds = (line.minimum, line.min_producer);
    Some(ReleaseState::new(line.release?, bounds, bans, entries.collect()))
}

/// Returns the state of a line of a versions.toml, if it has a release.
fn state_of_declaration(line: &crate::LineDeclaration) -> Option<ReleaseState> {
    let entries = line.entries.iter().map(|entry| {
        let state = ReleasedEntry {
            introduced: entry.introduced,
            min_consumer: entry.min_consumer,
            withdrawn: entry.withdrawn,
            formats: formats(&entry.formats, &entry.removed),
            embeds: embeds(&entry.embeds),
        };
        (entry.number, state)
    });
    let bans = bans(&line.bad_consumers, &line.bad_consumers_with);
    let bounds = (line.minimum, line.min_producer);
    Some(ReleaseState::new(line.release?, bounds, bans, entries.collect()))
}
