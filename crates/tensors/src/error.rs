//! Errors of reading and writing tensors.

use std::{
    borrow::Cow,
    fmt, io,
    path::{Path, PathBuf},
};

use serdes::ErrorKind;
use serdes_checkpoints::{checkpoint_v1::CheckpointV1Error, tensor_bundle::BundleError};
use serdes_files as files;

use super::Refused;

/// Maximum number of a file's characters in a message: a hostile file's text may be megabytes long.
const SHOWN: usize = 256;

/// Cuts a file's text to a length for messages, and removes characters that affect a terminal.
pub(super) fn cut(text: &str) -> String {
    let mut shown = String::new();
    for letter in shortened(text).chars() {
        // Characters that change the text's direction are not control characters.
        if letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\u{2026}", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// Returns a name in quotes, cut.
fn quoted(name: &str) -> impl fmt::Display {
    format!("{:?}", shortened(name))
}

/// Maximum number of names beside the first in a message.
const LISTED: usize = 20;

/// Returns a sentence about further refusals.
fn and_others(others: &[Refused]) -> String {
    let shown = others.iter().take(LISTED);
    let mut text: String =
        shown.map(|other| format!("; {}: {}", quoted(&other.name), cut(&other.reason))).collect();
    if let Some(more) = others.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

/// An error of reading tensors from a file or writing them to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Errors of the bytes.
    /// The file breaks a rule of its format.
    #[error("{} is damaged or no {kind}: found {found}, expected {expected}", path.display())]
    #[non_exhaustive]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The kind of file that it was read as.
        kind: &'static str,
        /// The value that was found.
        found: String,
        /// The value that was expected.
        expected: String,
    },

    // Errors of the caller.
    /// A tensor of this type or form cannot be moved.
    #[error("{}: {reason}", quoted(name))]
    #[non_exhaustive]
    Refused {
        /// The tensor.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A source has tensors or values that a state cannot hold.
    #[error("{}: {reason}{}", quoted(name), and_others(others))]
    #[non_exhaustive]
    CannotSave {
        /// Name of the first of them.
        name: String,
        /// The reason.
        reason: String,
        /// The others.
        others: Vec<Refused>,
    },
    /// The path fits no format.
    #[error("{}: {reason}", path.display())]
    #[non_exhaustive]
    UnknownForm {
        /// The path.
        path: PathBuf,
        /// The reason, with the expected formats.
        reason: String,
    },
    /// No tensor has a name that matches.
    #[error("none of the {count} tensors has a name that {} matches", quoted(pattern))]
    #[non_exhaustive]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// Number of existing tensors.
        count: usize,
    },
    /// The file is valid, but not supported.
    #[error("{}: {reason}", path.display())]
    #[non_exhaustive]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Description of the file, and the remedy.
        reason: String,
    },
    /// A stream is longer than the limit.
    #[error("the stream gave more than {limit} bytes; save them to a file and name that")]
    #[non_exhaustive]
    TooLong {
        /// The limit in bytes.
        limit: u64,
    },

    // Errors of other parts.
    /// The bytes of a tensor could not be read.
    #[error("the data of {} cannot be read: {source}", quoted(name))]
    #[non_exhaustive]
    Data {
        /// The tensor.
        name: String,
        /// Error of its source.
        source: io::Error,
    },
    /// A device state could not be read or written.
    #[error(transparent)]
    DeviceState(Box<serdes_device_state::Error>),
    /// A checkpoint could not be read or written.
    #[error(transparent)]
    Bundle(Box<BundleError>),
    /// A V1 checkpoint could not be read.
    #[error(transparent)]
    CheckpointV1(Box<CheckpointV1Error>),
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    #[non_exhaustive]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Refused { .. }
            | Self::CannotSave { .. }
            | Self::UnknownForm { .. }
            | Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::NoMatch { .. } => ErrorKind::NotFound,
            Self::TooLong { .. } => ErrorKind::Limit,
            Self::DeviceState(error) => error.kind(),
            Self::Bundle(error) => error.kind(),
            Self::CheckpointV1(error) => error.kind(),
            Self::Data { source, .. } | Self::Io { source, .. } => ErrorKind::of_io(source),
        }
    }

    pub(crate) fn corrupt(
        path: &Path,
        kind: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Corrupt {
            path: path.to_path_buf(),
            kind,
            found: cut(&found.into()),
            expected: cut(&expected.into()),
        }
    }

    pub(crate) fn refused(name: &str, reason: impl Into<String>) -> Self {
        Self::Refused { name: name.to_owned(), reason: cut(&reason.into()) }
    }

    /// Creates an error for the bytes of a tensor, for implementations of sources.
    pub fn of_data(name: impl Into<String>, source: io::Error) -> Self {
        Self::Data { name: name.into(), source }
    }

    pub(crate) fn unsupported(path: &Path, reason: impl Into<String>) -> Self {
        Self::Unsupported { path: path.to_path_buf(), reason: cut(&reason.into()) }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }
}

impl From<BundleError> for Error {
    fn from(error: BundleError) -> Self {
        Self::Bundle(Box::new(error))
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Self {
        let files::Error { action, path, source } = error;
        Self::Io { action, path, source }
    }
}

impl From<files::Cancelled> for Error {
    fn from(cancelled: files::Cancelled) -> Self {
        serdes_device_state::Error::from(cancelled).into()
    }
}

impl From<serdes_device_state::Error> for Error {
    fn from(error: serdes_device_state::Error) -> Self {
        Self::DeviceState(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_short_whatever_a_file_says() {
        let long = "\u{fc}".repeat(1 << 20);
        for error in [
            Error::corrupt("x".as_ref(), "npy", long.clone(), long.clone()),
            Error::refused(&long, long.clone()),
            Error::unsupported("x".as_ref(), long.clone()),
            Error::Data { name: long.clone(), source: io::ErrorKind::Other.into() },
        ] {
            let message = error.to_string();
            assert!(message.len() < 8 * SHOWN && message.contains('\u{2026}'), "{message}");
        }
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn a_message_does_nothing_to_a_terminal_whatever_a_file_says() {
        let evil = "\u{1b}]0;owned\u{7}\u{202e}txt.exe\r\n";
        for error in [
            Error::corrupt("x".as_ref(), "npy", evil, evil),
            Error::refused(evil, evil),
            Error::unsupported("x".as_ref(), evil),
            Error::Data { name: evil.to_owned(), source: io::ErrorKind::Other.into() },
        ] {
            let message = error.to_string();
            assert!(message.contains("u{1b}"), "{message}");
            assert!(!message.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r', '\n']), "{message:?}");
        }
    }
}
