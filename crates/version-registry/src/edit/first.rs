//! The first versions.toml of a crate.

use std::path::Path;

use super::{EditError, entry::quoted};
use crate::{Date, Declarations, ReleaseNumber, parse};

/// The first line of a crate: one type with one format.
///
/// ```
/// use serdes_version_registry::edit::FirstLine;
///
/// let day = "2026-11-20".parse()?;
/// let (text, declared) = FirstLine::new("snapshots", "Snapshot", day).render("versions.toml")?;
/// assert!(text.starts_with('#') && text.contains("formats = [\"Snapshot\"]"));
/// assert_eq!(declared.lines[0].rust_type.as_deref(), Some("Snapshots"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstLine {
    name: String,
    format: String,
    day: Date,
    release: Option<ReleaseNumber>,
}

impl FirstLine {
    /// Creates a line with this name (`lower_snake_case`) whose first format, of the type `format`,
    /// was introduced on `day`.
    pub fn new(name: impl Into<String>, format: impl Into<String>, day: Date) -> Self {
        Self { name: name.into(), format: format.into(), day, release: None }
    }

    /// Sets the release of the line: the lock then holds the line to the kinds of its releases.
    #[must_use]
    pub fn with_release(mut self, release: ReleaseNumber) -> Self {
        self.release = Some(release);
        self
    }

    /// Returns the Rust type of the line, which is its name in camel case, followed by `Line` if
    /// the format has the same name.
    pub fn rust_type(&self) -> String {
        let parts = self.name.split('_').map(|part| {
            let mut characters = part.chars();
            let first = characters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(characters).collect::<String>()
        });
        let name: String = parts.collect();
        // The types of the line and of the format are in the same module.
        if name == self.format { format!("{name}Line") } else { name }
    }

    /// Returns the text of the file, and its declarations. `file` is the name for errors.
    ///
    /// # Errors
    /// [`EditError::Refused`] if the names break a rule of the file.
    pub fn render(&self, file: &str) -> Result<(String, Declarations), EditError> {
        let Self { name, format, day, release } = self;
        let release = release.map_or_else(String::new, |release| {
            format!(
                "# The release of this crate that the line is of: what was released goes at a major release\n\
                 # only, and a patch adds no number.\n\
                 release = \"{release}\"\n"
            )
        });
        let title = name.strip_suffix('s').unwrap_or(name).replace('_', " ");
        let text = format!(
            "# The versions of what this crate writes. All keys and rules: the documentation of the crate\n\
             # serdes-version-registry. A new format begins with `serdes versions add`.\n\n\
             # The day for which versions are selected; `serdes versions release` moves it.\n\
             as_of = {day}\n\n\
             [[line]]\n\
             name = {}\n\
             # The Rust type of the line, which `serdes::lines!()` declares.\n\
             type = {}\n\
             # The words before a number in messages.\n\
             title = {}\n\
             summary = {}\n\
             # The oldest number that is read and written.\n\
             minimum = 0\n{release}\n\
             [[line.entry]]\n\
             number = 0\n\
             # The day from which builds read and write it.\n\
             introduced = {day}\n\
             summary = \"first format\"\n\
             # The types that have a format of this number, by the names that they give to `Formats::of`.\n\
             formats = [{}]\n",
            quoted(name),
            quoted(&self.rust_type()),
            quoted(&title),
            quoted(&format!("what this crate writes as {format}")),
            quoted(format),
        );
        let declared = parse(file, &text).map_err(EditError::Refused)?;
        Ok((text, declared))
    }

    /// Writes the file, unless it exists.
    ///
    /// # Errors
    /// As [`render`](Self::render); [`EditError::Exists`]; [`EditError::Write`].
    pub fn write(&self, path: &Path) -> Result<Declarations, EditError> {
        let file = path.display().to_string();
        let (text, declared) = self.render(&file)?;
        match crate::file::create(path, &text) {
            Ok(()) => Ok(declared),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(EditError::Exists { file })
            }
            Err(source) => Err(EditError::NotCreated { file, source }),
        }
    }
}
