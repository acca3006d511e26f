//! The declarations of a versions.toml, owned.

use crate::{
    Date, Dated, ReleaseNumber, Selected, Standing, newest_of_age, select, select::standings,
};

/// A whole versions.toml that meets every rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declarations {
    /// The day for which the accessors select.
    pub as_of: Date,
    /// The lines, in the order of the file.
    pub lines: Vec<LineDeclaration>,
    /// The products with a release table.
    pub products: Vec<ProductDeclaration>,
    /// The named layouts.
    pub layouts: Vec<LayoutFamilyDeclaration>,
}

impl Declarations {
    /// Returns the named line.
    pub fn line(&self, name: &str) -> Option<&LineDeclaration> {
        self.lines.iter().find(|line| line.name == name)
    }
}

/// A `[[line]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineDeclaration {
    /// `name`.
    pub name: String,
    /// `title`.
    pub title: String,
    /// `type`: the Rust type, for lines with accessors.
    pub rust_type: Option<String>,
    /// `data`; the title if left out.
    pub data: String,
    /// `summary`.
    pub summary: String,
    /// `minimum`.
    pub minimum: i32,
    /// `min_producer`.
    pub min_producer: i32,
    /// `bad_consumers`.
    pub bad_consumers: Vec<i32>,
    /// `bad_consumers_with`: content and consumers, in the order of the contents.
    pub bad_consumers_with: Vec<(String, Vec<i32>)>,
    /// `window_days`; 28 if left out.
    pub window_days: i64,
    /// `packages`.
    pub packages: Vec<String>,
    /// `counts_days_from`.
    pub counts_days_from: Option<(i32, Date)>,
    /// `release`.
    pub release: Option<ReleaseNumber>,
    /// The `[[line.entry]]`s, oldest first.
    pub entries: Vec<EntryDeclaration>,
}

impl LineDeclaration {
    /// Returns the newest number that is at least `days` days old on `day`; `None` if there is none
    /// yet.
    pub fn newest_of_age(&self, day: Date, days: i64) -> Option<i32> {
        newest_of_age(self.dated(), self.minimum, day, days)
    }

    /// Returns the current number on `day`; `None` if the line has none yet.
    pub fn current(&self, day: Date) -> Option<i32> {
        self.newest_of_age(day, 0)
    }

    /// Returns the selection on `day` for builds as old as the line's window, with its age; `None`
    /// if there is none yet.
    pub fn week_4_old(&self, day: Date) -> Option<Selected> {
        select(self.dated(), self.minimum, day, self.window_days)
    }

    /// Returns the age and the roles of each entry on `day`, in the order of the entries.
    pub fn on(&self, day: Date) -> Vec<Standing> {
        standings(self.dated(), self.minimum, self.window_days, day)
    }

    /// Returns the last number that uses a format as introduced by the entry at index `at`: the one
    /// before the next entry that changes it. Withdrawn entries change nothing.
    pub(crate) fn last_use(&self, at: usize, format: &str) -> Option<i32> {
        let leaves = |entry: &&EntryDeclaration| {
            entry.withdrawn || !entry.formats.iter().any(|changed| changed == format)
        };
        let used = self.entries.iter().skip(at + 1).take_while(leaves).last();
        used.or_else(|| self.entries.get(at)).map(|entry| entry.number)
    }

    fn dated(&self) -> impl Iterator<Item = Dated> + Clone {
        self.entries.iter().map(EntryDeclaration::dated)
    }
}

/// A `[[line.entry]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryDeclaration {
    /// `number`.
    pub number: i32,
    /// `introduced`.
    pub introduced: Date,
    /// `summary`.
    pub summary: String,
    /// `formats`.
    pub formats: Vec<String>,
    /// `removed`.
    pub removed: Vec<String>,
    /// `released_in`.
    pub released_in: Option<String>,
    /// `date_source`.
    pub date_source: Option<String>,
    /// `min_consumer`.
    pub min_consumer: i32,
    /// `withdrawn`.
    pub withdrawn: bool,
    /// `recorded_as`: type and number.
    pub recorded_as: Vec<(String, i32)>,
    /// `also_read`.
    pub also_read: Vec<String>,
    /// `features`: type and feature.
    pub features: Vec<(String, String)>,
    /// `embeds`: line and number.
    pub embeds: Vec<(String, i32)>,
}

impl EntryDeclaration {
    pub(crate) fn dated(&self) -> Dated {
        Dated { number: self.number, introduced: self.introduced, withdrawn: self.withdrawn }
    }
}

/// A `[[product]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProductDeclaration {
    /// `name`.
    pub name: String,
    /// `title`.
    pub title: String,
    /// The `[[product.release]]`s, oldest first.
    pub releases: Vec<ReleaseDeclaration>,
}

/// A `[[product.release]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseDeclaration {
    /// `version`.
    pub version: String,
    /// `date`.
    pub date: Date,
    /// `numbers`: line name and number.
    pub numbers: Vec<(String, i32)>,
}

/// A `[[layouts]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutFamilyDeclaration {
    /// `name`.
    pub name: String,
    /// `version`.
    pub version: String,
    /// The `[[layouts.layout]]`s, oldest first.
    pub layouts: Vec<LayoutDeclaration>,
}

/// A `[[layouts.layout]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutDeclaration {
    /// `name`.
    pub name: String,
    /// `summary`.
    pub summary: String,
    /// `headers`.
    pub headers: Vec<String>,
    /// `struct_sizes`: struct name and struct_size in bytes.
    pub struct_sizes: Vec<(String, u32)>,
}
