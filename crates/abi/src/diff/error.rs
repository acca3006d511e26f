//! Errors of layouts that cannot be compared.

use std::path::PathBuf;

use super::built_in;
use crate::ErrorKind;

/// The error of a layout that cannot be read for a comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutFileError {
    /// System: the file cannot be read.
    #[error("cannot read {path}: {error}; the layouts that are built in are {}", built_in::names())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// Bytes: the file is not JSON.
    #[error("{path} is not JSON: {error}; docs/abi.md describes the form of layouts")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The place and the problem.
        error: String,
    },
    /// Caller: the file has no such section.
    #[error("{path} has no layout {}: {found}; name one with {path}#SECTION",
        if section.is_empty() { "by itself".to_owned() } else { format!("`{section}`") })]
    NoSection {
        /// The file.
        path: PathBuf,
        /// The requested section.
        section: String,
        /// The value found.
        found: String,
    },
    /// Bytes: a struct does not have the documented form.
    #[error("{at}: found {found}, expected {expected}")]
    Malformed {
        /// The place: section, struct, field.
        at: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl LayoutFileError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable { error, .. } => ErrorKind::of_io(error),
            Self::NoSection { .. } => ErrorKind::NotFound,
            Self::NotJson { .. } | Self::Malformed { .. } => ErrorKind::Corrupt,
        }
    }
}
