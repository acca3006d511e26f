//! The registry as constants, which generated code contains and a program lists at run time.

use crate::{
    Date, Dated, ReleaseNumber, Selected, newest_of_age,
    select::{select, standings},
};

/// The window in days of a line without `window_days`: the age of the oldest builds that read data
/// written for them, and whose data is read.
pub const FOUR_WEEKS: i64 = 28;

/// One dated version of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Entry {
    /// The number that is recorded in data.
    pub number: i32,
    /// The day from which builds read and write it.
    pub introduced: Date,
    /// The summary of the change, for people.
    pub summary: &'static str,
    /// The formats that changed with this number.
    pub formats: &'static [&'static str],
    /// The formats in `formats` whose code at this number was removed.
    pub removed: &'static [&'static str],
    /// The first release that has it, if known.
    pub released_in: Option<&'static str>,
    /// The source of the day, if it is not the day of the change itself.
    pub date_source: Option<&'static str>,
    /// The oldest consumer that reads data of this number, if it is not 0.
    pub min_consumer: i32,
    /// True if the number was withdrawn: listed, read if its format is known, never selected.
    pub withdrawn: bool,
    /// The versions of other lines for their values inside data of this number: line name and
    /// number. An entry without one inherits it from the newest earlier entry that has it.
    pub embeds: &'static [(&'static str, i32)],
}

impl Entry {
    /// Creates an entry of a line.
    pub const fn new(number: i32, introduced: Date) -> Self {
        Self {
            number,
            introduced,
            summary: "",
            formats: &[],
            removed: &[],
            released_in: None,
            date_source: None,
            min_consumer: 0,
            withdrawn: false,
            embeds: &[],
        }
    }

    /// Sets the summary and the formats that changed.
    pub const fn describing(self, summary: &'static str, formats: &'static [&'static str]) -> Self {
        Self { summary, formats, ..self }
    }

    /// Sets the formats whose code was removed.
    pub const fn without(self, removed: &'static [&'static str]) -> Self {
        Self { removed, ..self }
    }

    /// Sets the first release that has the entry.
    pub const fn released_in(self, release: &'static str) -> Self {
        Self { released_in: Some(release), ..self }
    }

    /// Sets the source of the entry's day.
    pub const fn dated_by(self, source: &'static str) -> Self {
        Self { date_source: Some(source), ..self }
    }

    /// Sets the oldest consumer of the entry's data.
    pub const fn for_consumers_from(self, min_consumer: i32) -> Self {
        Self { min_consumer, ..self }
    }

    /// Marks the entry as withdrawn.
    pub const fn withdrawn(self) -> Self {
        Self { withdrawn: true, ..self }
    }

    /// Sets the versions of other lines for the values inside.
    pub const fn embedding(self, embeds: &'static [(&'static str, i32)]) -> Self {
        Self { embeds, ..self }
    }

    /// Returns the input of the selection of versions.
    pub const fn dated(&self) -> Dated {
        Dated { number: self.number, introduced: self.introduced, withdrawn: self.withdrawn }
    }
}

/// The formats of one type, collected from the entries of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeFormats {
    /// The name of the type in `formats`.
    pub name: &'static str,
    /// Requests, ascending; each is granted the format whose number is at the same index of
    /// `recorded`, and so is every later request up to the next one. Requests below the first are
    /// refused.
    pub granted: &'static [i32],
    /// The numbers that data records, each for the request at the same place in `granted`.
    pub recorded: &'static [i32],
    /// The recorded numbers that are read, ascending.
    pub read: &'static [i32],
    /// The features without a format of their own: name, and the first request that is granted
    /// each.
    pub features: &'static [(&'static str, i32)],
}

impl TypeFormats {
    /// Creates the formats of a type without features.
    pub const fn new(
        name: &'static str,
        granted: &'static [i32],
        recorded: &'static [i32],
        read: &'static [i32],
    ) -> Self {
        Self { name, granted, recorded, read, features: &[] }
    }

    /// Sets the features without a format of their own.
    pub const fn with_features(self, features: &'static [(&'static str, i32)]) -> Self {
        Self { features, ..self }
    }
}

/// A line of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LineRecord {
    /// The name in versions.toml.
    pub name: &'static str,
    /// The words before a number in messages.
    pub title: &'static str,
    /// The word for data of this line in messages: "graph", "checkpoint".
    pub data: &'static str,
    /// The use of the line, for people.
    pub summary: &'static str,
    /// The oldest number that is read and written.
    pub minimum: i32,
    /// The oldest producer that a consumer of this build accepts.
    pub min_producer: i32,
    /// The consumers that must not read data of this line.
    pub bad_consumers: &'static [i32],
    /// The consumers that must not read data of this line with a certain content, as pairs of
    /// content and consumers.
    pub bad_consumers_with: &'static [(&'static str, &'static [i32])],
    /// The age in days at which a version is old enough for the builds still in the field.
    pub window_days: i64,
    /// The protobuf packages whose messages are frozen with the line.
    pub packages: &'static [&'static str],
    /// The first number that is a count of days, and its day.
    pub counts_days_from: Option<(i32, Date)>,
    /// The release of the line, if it has one.
    pub release: Option<ReleaseNumber>,
    /// The entries, oldest first.
    pub entries: &'static [Entry],
}

impl LineRecord {
    /// Creates a line without entries, to be filled by struct update in generated code.
    pub const fn new(name: &'static str, title: &'static str, entries: &'static [Entry]) -> Self {
        Self {
            name,
            title,
            data: title,
            summary: "",
            minimum: 0,
            min_producer: 0,
            bad_consumers: &[],
            bad_consumers_with: &[],
            window_days: FOUR_WEEKS,
            packages: &[],
            counts_days_from: None,
            release: None,
            entries,
        }
    }

    /// Sets the word for the line's data and the summary.
    pub const fn describing(self, data: &'static str, summary: &'static str) -> Self {
        Self { data, summary, ..self }
    }

    /// Sets the minimum, the oldest accepted producer and the faulty consumers.
    pub const fn bounded(
        self,
        minimum: i32,
        min_producer: i32,
        bad_consumers: &'static [i32],
    ) -> Self {
        Self { minimum, min_producer, bad_consumers, ..self }
    }

    /// Sets the consumers that are faulty only with a certain content.
    pub const fn banning_with(
        self,
        bad_consumers_with: &'static [(&'static str, &'static [i32])],
    ) -> Self {
        Self { bad_consumers_with, ..self }
    }

    /// Sets a window other than four weeks, in days.
    pub const fn with_window(self, window_days: i64) -> Self {
        Self { window_days, ..self }
    }

    /// Sets the protobuf packages whose messages are frozen with the line.
    pub const fn in_packages(self, packages: &'static [&'static str]) -> Self {
        Self { packages, ..self }
    }

    /// Makes numbers count days, starting with `number` on `day`.
    pub const fn counting_days_from(self, number: i32, day: Date) -> Self {
        Self { counts_days_from: Some((number, day)), ..self }
    }

    /// Sets the release of the line.
    pub const fn of_release(self, release: ReleaseNumber) -> Self {
        Self { release: Some(release), ..self }
    }

    /// Returns the newest number that is at least `days` days old on `day`; `None` if there is none
    /// yet.
    pub fn newest_of_age(&self, day: Date, days: i64) -> Option<i32> {
        newest_of_age(self.entries.iter().map(Entry::dated), self.minimum, day, days)
    }

    /// Returns the current number on `day`; `None` if the line has none yet.
    pub fn current(&self, day: Date) -> Option<i32> {
        self.newest_of_age(day, 0)
    }

    /// Returns the newest number that is at least as old as the line's window on `day` (by default
    /// four weeks), never below the minimum; the oldest usable one if there is none of that age.
    pub fn week_4_old(&self, day: Date) -> Option<i32> {
        self.newest_of_age(day, self.window_days)
    }

    /// Returns the selection on `day` for builds from `days` days before, with its age; `None` if
    /// there is none yet.
    pub fn select(&self, day: Date, days: i64) -> Option<Selected> {
        select(self.entries.iter().map(Entry::dated), self.minimum, day, days)
    }

    /// Returns the entry with this number.
    pub fn entry(&self, number: i32) -> Option<&'static Entry> {
        self.entries.iter().find(|entry| entry.number == number)
    }

    /// Returns every entry with its age and its flags on `day`; entries introduced later have no
    /// flags.
    pub fn on(&self, day: Date) -> Vec<EntryStatus> {
        let dated = self.entries.iter().map(Entry::dated);
        let standings = standings(dated, self.minimum, self.window_days, day);
        let entries = self.entries.iter().zip(standings);
        entries
            .map(|(entry, standing)| EntryStatus {
                line: self.name,
                number: entry.number,
                introduced: entry.introduced,
                summary: entry.summary,
                formats: entry.formats,
                age_days: standing.age_days,
                current: standing.current,
                week_4_old: standing.week_4_old,
                younger_than_window: standing.younger_than_window,
                minimum: standing.minimum,
                withdrawn: entry.withdrawn,
            })
            .collect()
    }
}

/// The status of an entry on a day: one row of `serdes versions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EntryStatus {
    /// The name of the line.
    pub line: &'static str,
    /// The number.
    pub number: i32,
    /// The day from which builds read and write it.
    pub introduced: Date,
    /// The summary of the change.
    pub summary: &'static str,
    /// The formats that changed with it.
    pub formats: &'static [&'static str],
    /// The number of days from its introduction to the day; negative if it is introduced later.
    pub age_days: i64,
    /// True if it is the newest version on that day.
    pub current: bool,
    /// True if it is the selection for builds as old as the line's window, by default four weeks.
    pub week_4_old: bool,
    /// True if it is that selection although it is younger than the window.
    pub younger_than_window: bool,
    /// True if it is the oldest version that is read and written.
    pub minimum: bool,
    /// True if it was withdrawn.
    pub withdrawn: bool,
}

/// A release of a product and the number that it has in each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Release {
    /// The release, `MAJOR.MINOR.PATCH`.
    pub version: &'static str,
    /// The day of its branch point.
    pub date: Date,
    /// Line names and numbers.
    pub numbers: &'static [(&'static str, i32)],
}

impl Release {
    /// Creates a release.
    pub const fn new(
        version: &'static str,
        date: Date,
        numbers: &'static [(&'static str, i32)],
    ) -> Self {
        Self { version, date, numbers }
    }

    /// Returns the number that the release has in a line.
    pub fn number(&self, line: &str) -> Option<i32> {
        self.numbers.iter().find(|(name, _)| *name == line).map(|(_, number)| *number)
    }
}

/// A product whose releases have a number in several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Product {
    /// The name in versions.toml.
    pub name: &'static str,
    /// The name in messages.
    pub title: &'static str,
    /// The releases, oldest first.
    pub releases: &'static [Release],
}

impl Product {
    /// Creates a product.
    pub const fn new(
        name: &'static str,
        title: &'static str,
        releases: &'static [Release],
    ) -> Self {
        Self { name, title, releases }
    }

    /// Returns the release for `version`: exactly this release, or else the newest known patch of
    /// the same `MAJOR.MINOR`, if the patch is not listed or omitted.
    pub fn release(&self, version: &str) -> Option<&'static Release> {
        let wanted = parse_release(version)?;
        let exact = self
            .releases
            .iter()
            .find(|release| wanted.2.is_some() && parse_release(release.version) == Some(wanted));
        exact.or_else(|| {
            self.releases.iter().rev().find(|release| {
                parse_release(release.version)
                    .is_some_and(|(major, minor, _)| (major, minor) == (wanted.0, wanted.1))
            })
        })
    }
}

/// Parses `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`.
pub(crate) fn parse_release(version: &str) -> Option<(u32, u32, Option<u32>)> {
    let mut parts = version.split('.').map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u32>().ok()).flatten()
    });
    let major = parts.next()??;
    let minor = parts.next()??;
    let patch = match parts.next() {
        Some(patch) => Some(patch?),
        None => None,
    };
    parts.next().is_none().then_some((major, minor, patch))
}

/// One known layout of a set of C structs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NamedLayout {
    /// The name for selecting it.
    pub name: &'static str,
    /// The difference from the other layouts, for people.
    pub summary: &'static str,
    /// The headers that have it.
    pub headers: &'static [&'static str],
    /// Struct names, and their struct_size in bytes.
    pub struct_sizes: &'static [(&'static str, u32)],
}

impl NamedLayout {
    /// Creates a layout.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        headers: &'static [&'static str],
        struct_sizes: &'static [(&'static str, u32)],
    ) -> Self {
        Self { name, summary, headers, struct_sizes }
    }

    /// Returns the struct_size of a struct in bytes; `None` if the layout does not have it.
    pub fn struct_size(&self, name: &str) -> Option<u32> {
        self.struct_sizes.iter().find(|(found, _)| *found == name).map(|(_, size)| *size)
    }
}

/// The layouts of an interface that declare the same version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LayoutFamily {
    /// The name in versions.toml.
    pub name: &'static str,
    /// The version, `MAJOR.MINOR.PATCH`, that all of them declare.
    pub version: &'static str,
    /// The layouts, oldest first.
    pub layouts: &'static [NamedLayout],
}

impl LayoutFamily {
    /// Creates a family of layouts.
    pub const fn new(
        name: &'static str,
        version: &'static str,
        layouts: &'static [NamedLayout],
    ) -> Self {
        Self { name, version, layouts }
    }
}

/// A whole versions.toml as constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Registry {
    /// The day for which the accessors select.
    pub as_of: Date,
    /// The lines, in the order of the file.
    pub lines: &'static [LineRecord],
    /// The products with a release table.
    pub products: &'static [Product],
    /// The named layouts.
    pub layouts: &'static [LayoutFamily],
}

impl Registry {
    /// Creates a registry.
    pub const fn new(
        as_of: Date,
        lines: &'static [LineRecord],
        products: &'static [Product],
        layouts: &'static [LayoutFamily],
    ) -> Self {
        Self { as_of, lines, products, layouts }
    }

    /// Returns the named line.
    pub fn line(&self, name: &str) -> Option<&'static LineRecord> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// Returns the named product.
    pub fn product(&self, name: &str) -> Option<&'static Product> {
        self.products.iter().find(|product| product.name == name)
    }

    /// Returns the named family of layouts.
    pub fn layout_family(&self, name: &str) -> Option<&'static LayoutFamily> {
        self.layouts.iter().find(|family| family.name == name)
    }

    /// Returns the status of every entry of every line on `day`, in the order of the file.
    pub fn on(&self, day: Date) -> Vec<EntryStatus> {
        self.lines.iter().flat_map(|line| line.on(day)).collect()
    }
}
