//! Formats of a report, by name.

use std::{fmt, io, str::FromStr};

use serdes_abi::ErrorKind;

use crate::{Artifact, Report, TextOptions, github, gitlab, html, junit, markdown, sarif, text};

/// A format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// GitHub workflow commands, which become annotations of a pull request.
    GitHub,
    /// GitLab Code Quality.
    GitLab,
    /// SARIF 2.1.0, for code scanners.
    Sarif,
    /// JUnit XML: one test case per artifact and release.
    JUnit,
    /// Markdown, for a comment on a pull request.
    Markdown,
    /// A standalone HTML file.
    Html,
    /// Text without colours.
    Text,
}

impl Format {
    /// All formats.
    pub const ALL: &'static [Self] = &[
        Self::Text,
        Self::GitHub,
        Self::GitLab,
        Self::Sarif,
        Self::JUnit,
        Self::Markdown,
        Self::Html,
    ];

    /// Returns the name of the format.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Sarif => "sarif",
            Self::JUnit => "junit",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// Returns the names of all formats, for messages.
fn known() -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.id()).collect();
    names.join(", ")
}

/// The error for an unknown format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no report {found:?}; expected {}", known())]
#[non_exhaustive]
pub struct UnknownFormat {
    /// The name.
    pub found: String,
}

impl UnknownFormat {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.iter().copied().find(|format| format.id() == name);
        named.ok_or_else(|| UnknownFormat { found: name.to_owned() })
    }
}

impl Report {
    /// Writes the report in a format.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, format: Format, out: &mut dyn io::Write) -> io::Result<()> {
        match format {
            Format::Text => text::write(self, TextOptions::file(), out),
            Format::GitHub => github::write(self, out),
            Format::GitLab => gitlab::write(self, out),
            Format::Sarif => sarif::write(self, out),
            Format::JUnit => junit::write(self, out),
            Format::Markdown => markdown::write(self, out),
            Format::Html => html::write(self, out),
        }
    }

    /// Writes the report as text with these widths and colours.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write_text(&self, options: TextOptions, out: &mut dyn io::Write) -> io::Result<()> {
        text::write(self, options, out)
    }
}

impl Artifact {
    /// Writes the answers as text with these widths and colours.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write_text(&self, options: TextOptions, out: &mut dyn io::Write) -> io::Result<()> {
        text::write_artifact(self, options, out)
    }
}
