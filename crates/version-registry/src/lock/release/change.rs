//! Changes of a line between two releases, each with the kind of release that it needs.

use std::fmt;

use super::{ReleaseState, ReleasedEntry};
use crate::ReleaseKind;

/// A change of a line since its last release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseChange {
    /// The minimum has changed.
    Minimum {
        /// The minimum of the release.
        released: i32,
        /// The present minimum.
        found: i32,
    },
    /// The oldest accepted producer has changed.
    MinProducer {
        /// The oldest accepted producer of the release.
        released: i32,
        /// The present one.
        found: i32,
    },
    /// The code of a format was removed.
    FormatRemoved {
        /// The number of its entry.
        number: i32,
        /// The format.
        format: String,
    },
    /// A number is new.
    NewEntry {
        /// The number.
        number: i32,
    },
    /// A number was withdrawn, or is in use again.
    Withdrawn {
        /// The number.
        number: i32,
        /// True if it was withdrawn.
        withdrawn: bool,
    },
    /// The oldest consumer of a number's data has changed.
    MinConsumer {
        /// The number.
        number: i32,
        /// The oldest consumer in the release.
        released: i32,
        /// The present oldest consumer.
        found: i32,
    },
    /// A consumer is banned.
    Ban {
        /// The consumer.
        consumer: i32,
        /// The content of the data that it must not read; empty for all data.
        content: String,
        /// True if the consumer is of the same MAJOR.MINOR.
        of_this_minor: bool,
    },
    /// A ban was lifted.
    BanLifted {
        /// The consumer.
        consumer: i32,
        /// The content of the data that it must not read; empty for all data.
        content: String,
    },
    /// A number of the release no longer exists.
    EntryGone {
        /// The number.
        number: i32,
    },
    /// A new number is not above those of the release.
    EntryInserted {
        /// The number.
        number: i32,
        /// The newest number of the release.
        newest: i32,
    },
    /// A number of the release has a different day, different formats or different embedded
    /// versions.
    EntryChanged {
        /// The number.
        number: i32,
        /// The key of versions.toml.
        key: &'static str,
        /// Its value in the release.
        released: String,
        /// The present value.
        found: String,
    },
}

impl ReleaseChange {
    /// Returns the smallest kind of release that may make the change; `None` if no release may.
    pub fn needs(&self) -> Option<ReleaseKind> {
        match self {
            Self::EntryGone { .. } | Self::EntryInserted { .. } | Self::EntryChanged { .. } => None,
            Self::FormatRemoved { .. } => Some(ReleaseKind::Major),
            Self::Minimum { released, found } => {
                Some(if found > released { ReleaseKind::Major } else { ReleaseKind::Minor })
            }
            Self::MinProducer { released, found } => {
                Some(if found > released { ReleaseKind::Major } else { ReleaseKind::Patch })
            }
            Self::NewEntry { .. } | Self::Withdrawn { .. } => Some(ReleaseKind::Minor),
            Self::MinConsumer { released, found, .. } => {
                Some(if found > released { ReleaseKind::Minor } else { ReleaseKind::Patch })
            }
            Self::Ban { of_this_minor, .. } => {
                Some(if *of_this_minor { ReleaseKind::Minor } else { ReleaseKind::Patch })
            }
            Self::BanLifted { .. } => Some(ReleaseKind::Patch),
        }
    }
}

impl fmt::Display for ReleaseChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minimum { released, found } => {
                write!(f, "the minimum is {found}, and was {released}")
            }
            Self::MinProducer { released, found } => {
                write!(f, "min_producer is {found}, and was {released}")
            }
            Self::FormatRemoved { number, format } => {
                write!(f, "the format {format} of number {number} is removed")
            }
            Self::NewEntry { number } => write!(f, "number {number} is new"),
            Self::Withdrawn { number, withdrawn: true } => {
                write!(f, "number {number} is withdrawn, and was in use")
            }
            Self::Withdrawn { number, withdrawn: false } => {
                write!(f, "number {number} is in use, and was withdrawn")
            }
            Self::MinConsumer { number, released, found } => {
                write!(f, "min_consumer of number {number} is {found}, and was {released}")
            }
            Self::Ban { consumer, content, .. } => {
                write!(f, "consumer {consumer} is banned{}", With(content))
            }
            Self::BanLifted { consumer, content } => {
                write!(f, "consumer {consumer} is no longer banned{}", With(content))
            }
            Self::EntryGone { number } => write!(f, "number {number} is gone"),
            Self::EntryInserted { number, newest } => {
                write!(f, "number {number} is new, and not above {newest}")
            }
            Self::EntryChanged { number, key, released, found } => {
                write!(f, "`{key}` of number {number} is {found}, and was {released}")
            }
        }
    }
}

/// The content to which a ban is limited.
struct With<'c>(&'c str);

impl fmt::Display for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " for data with {}", self.0) }
    }
}

/// Returns every change from one state of a line to another.
pub(in crate::lock) fn changes(
    released: &ReleaseState,
    found: &ReleaseState,
) -> Vec<ReleaseChange> {
    let mut changes = Vec::new();
    if released.minimum != found.minimum {
        let (released, found) = (released.minimum, found.minimum);
        changes.push(ReleaseChange::Minimum { released, found });
    }
    if released.min_producer != found.min_producer {
        let (released, found) = (released.min_producer, found.min_producer);
        changes.push(ReleaseChange::MinProducer { released, found });
    }
    for (number, entry) in &released.entries {
        match found.entries.get(number) {
            Some(now) => entry_changes(*number, entry, now, &mut changes),
            None => changes.push(ReleaseChange::EntryGone { number: *number }),
        }
    }
    let bans = ban_changes(released, found);
    new_entries(released, found, &bans, &mut changes);
    changes.extend(bans);
    changes
}

/// Returns the changes of an entry that is in both states.
fn entry_changes(
    number: i32,
    released: &ReleasedEntry,
    found: &ReleasedEntry,
    changes: &mut Vec<ReleaseChange>,
) {
    let text = |names: Vec<&str>| format!("[{}]", names.join(", "));
    let formats = |entry: &ReleasedEntry| text(entry.formats.keys().map(String::as_str).collect());
    let embeds = |entry: &ReleasedEntry| {
        let embeds = entry.embeds.iter().map(|(line, number)| format!("{line} = {number}"));
        format!("{{ {} }}", embeds.collect::<Vec<_>>().join(", "))
    };
    for (key, released, found) in [
        ("introduced", released.introduced.to_string(), found.introduced.to_string()),
        ("formats", formats(released), formats(found)),
        ("embeds", embeds(released), embeds(found)),
    ] {
        if released != found {
            changes.push(ReleaseChange::EntryChanged { number, key, released, found });
        }
    }
    if released.withdrawn != found.withdrawn {
        changes.push(ReleaseChange::Withdrawn { number, withdrawn: found.withdrawn });
    }
    if released.min_consumer != found.min_consumer {
        let (released, found) = (released.min_consumer, found.min_consumer);
        changes.push(ReleaseChange::MinConsumer { number, released, found });
    }
    for (format, is_removed) in &found.formats {
        if *is_removed && released.formats.get(format) == Some(&false) {
            let format = format.clone();
            changes.push(ReleaseChange::FormatRemoved { number, format });
        }
    }
}

/// Returns the bans that were added and lifted.
fn ban_changes(released: &ReleaseState, found: &ReleaseState) -> Vec<ReleaseChange> {
    let new = found.bans.difference(&released.bans).map(|(consumer, content)| ReleaseChange::Ban {
        consumer: *consumer,
        content: content.clone(),
        of_this_minor: *consumer >= released.minor_from,
    });
    let lifted = released.bans.difference(&found.bans).map(|(consumer, content)| {
        ReleaseChange::BanLifted { consumer: *consumer, content: content.clone() }
    });
    new.chain(lifted).collect()
}

/// Returns the numbers that were added. A number that is added with a ban and has no format is part
/// of the ban: a new number of the producer announces banned consumers.
fn new_entries(
    released: &ReleaseState,
    found: &ReleaseState,
    bans: &[ReleaseChange],
    changes: &mut Vec<ReleaseChange>,
) {
    let newest = released.entries.last_key_value().map(|(number, _)| *number);
    let min_consumer = released
        .current()
        .and_then(|current| released.entries.get(&current))
        .map_or(0, |entry| entry.min_consumer);
    let bans = bans.iter().any(|change| matches!(change, ReleaseChange::Ban { .. }));
    for (number, entry) in &found.entries {
        if released.entries.contains_key(number) {
            continue;
        }
        let is_of_a_ban = bans
            && entry.formats.is_empty()
            && entry.embeds.is_empty()
            && entry.min_consumer <= min_consumer;
        match newest {
            Some(newest) if *number < newest => {
                changes.push(ReleaseChange::EntryInserted { number: *number, newest });
            }
            _ if is_of_a_ban => {}
            _ => changes.push(ReleaseChange::NewEntry { number: *number }),
        }
    }
}
