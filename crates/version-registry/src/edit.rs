//! The steps that change a versions.toml: adding an entry to a line, and moving `as_of` in a
//! release.
//!
//! A step takes the text of the file and returns the text to write, or the rule that the result
//! would break. Everything that the step does not change is kept: comments, order and spaces. The
//! module does not decide if a number or format is valid; the rules of the file do.
//!
//! ```
//! use serdes_version_registry::edit::{NewEntry, add_entry};
//!
//! let text = "as_of = 2026-11-20 # moved by the release\n\n[[line]]\nname = \"snapshots\"\n\
//!             title = \"snapshot\"\nsummary = \"the trainer's\"\nminimum = 0\n\n[[line.entry]]\n\
//!             number = 0\nintroduced = 2026-02-02\nsummary = \"first\"\nformats = [\"Snapshot\"]\n";
//! let day = "2026-12-01".parse()?;
//! let entry = NewEntry::new("snapshots", day).with_formats(["Snapshot"]).with_summary("seeds");
//! let edited = add_entry("versions.toml", text, &entry)?;
//! assert_eq!(edited.number(), Some(1));
//! assert!(edited.text().starts_with("as_of = 2026-12-01 # moved by the release\n"));
//! assert!(edited.text().ends_with(
//!     "[[line.entry]]\nnumber = 1\nintroduced = 2026-12-01\nsummary = \"seeds\"\nformats = [\"Snapshot\"]\n"
//! ));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entry;
mod error;
mod first;
#[cfg(test)]
mod tests;
mod text;

use std::{fs, path::Path};

pub use entry::NewEntry;
pub use error::EditError;
pub use first::FirstLine;

use crate::{Date, Declarations, edit::text::Source, parse};

/// A selection of a line that an edit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectionChange {
    /// The line.
    pub line: String,
    /// `current`, or `week_4_old`.
    pub selector: &'static str,
    /// The number before; `None` if there was none.
    pub before: Option<i32>,
    /// The number after.
    pub after: Option<i32>,
}

/// The result of a step on a versions.toml.
#[derive(Clone, Debug)]
pub struct Edited {
    text: String,
    before: Declarations,
    after: Declarations,
    number: Option<i32>,
}

impl Edited {
    /// Returns the text to write.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the declarations of the text.
    pub fn declarations(&self) -> &Declarations {
        &self.after
    }

    /// Returns the number of the entry that was added, if one was.
    pub fn number(&self) -> Option<i32> {
        self.number
    }

    /// Returns the previous day of the registry.
    pub fn as_of_before(&self) -> Date {
        self.before.as_of
    }

    /// Returns `true` if a declaration changed.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// Returns the selections that changed, of every line: all lines of a registry share its day.
    pub fn selections(&self) -> Vec<SelectionChange> {
        let (from, to) = (self.before.as_of, self.after.as_of);
        let mut changes = Vec::new();
        for line in &self.after.lines {
            let Some(old) = self.before.line(&line.name) else { continue };
            let selected = [
                ("current", old.current(from), line.current(to)),
                (
                    "week_4_old",
                    old.week_4_old(from).map(|selected| selected.number),
                    line.week_4_old(to).map(|selected| selected.number),
                ),
            ];
            for (selector, before, after) in selected {
                if before != after {
                    let line = line.name.clone();
                    changes.push(SelectionChange { line, selector, before, after });
                }
            }
        }
        changes
    }

    /// Writes the text to `path`, completely or not at all.
    ///
    /// # Errors
    /// [`EditError::Write`].
    pub fn write(&self, path: &Path) -> Result<(), EditError> {
        crate::file::replace(path, &self.text)
            .map_err(|source| EditError::Write { file: path.display().to_string(), source })
    }
}

/// Returns the text of the file at `path`.
///
/// # Errors
/// [`EditError::Read`].
pub fn read_text(path: &Path) -> Result<String, EditError> {
    fs::read_to_string(path)
        .map_err(|source| EditError::Read { file: path.display().to_string(), source })
}

/// Adds an entry at the end of its line. The number is the entry's own, or the next one, or in a
/// line that counts days the number of the day. `as_of` moves forward to the entry's day if that is
/// later, and the line's `release` to the entry's release, if it has one.
///
/// # Errors
/// [`EditError::Invalid`] if `text` already breaks a rule, [`EditError::Refused`] if the result
/// would, and further errors of [`EditError`].
pub fn add_entry(file: &str, text: &str, entry: &NewEntry) -> Result<Edited, EditError> {
    let before = parse(file, text).map_err(EditError::Invalid)?;
    let mut lines = before.lines.iter().enumerate();
    let Some((at, line)) = lines.find(|(_, line)| line.name == entry.line) else {
        let known: Vec<&str> = before.lines.iter().map(|line| line.name.as_str()).collect();
        let found = entry.line.chars().take(60).collect();
        return Err(EditError::UnknownLine { found, known: known.join(", ") });
    };
    let mut source = Source::new(file, text);
    let number = entry.number_in(line)?;
    source.add_entry(at, &entry.render(number)?)?;
    if let Some(release) = entry.release {
        source.set_release(at, release);
    }
    if entry.introduced > before.as_of {
        source.set_as_of(entry.introduced);
    }
    finish(file, source, before, Some(number))
}

/// Moves `as_of` to `day`, as a release does: it decides which versions are selected for older
/// builds.
///
/// # Errors
/// [`EditError::Invalid`] if `text` already breaks a rule, [`EditError::AsOfGoesBack`] if the day
/// is before the registry's.
pub fn move_as_of(file: &str, text: &str, day: Date) -> Result<Edited, EditError> {
    let before = parse(file, text).map_err(EditError::Invalid)?;
    if day < before.as_of {
        return Err(EditError::AsOfGoesBack { found: day, as_of: before.as_of });
    }
    let mut source = Source::new(file, text);
    if day != before.as_of {
        source.set_as_of(day);
    }
    finish(file, source, before, None)
}

fn finish(
    file: &str,
    source: Source<'_>,
    before: Declarations,
    number: Option<i32>,
) -> Result<Edited, EditError> {
    let text = source.finish();
    let after = parse(file, &text).map_err(EditError::Refused)?;
    Ok(Edited { text, before, after, number })
}
