//! Errors for paths without a verdict.

use std::io;

use serdes::ErrorKind;
#[cfg(feature = "addresses")]
use serdes_files::object::is_changed;

use super::{Reason, Remedy, Rule, rule::messages};

/// Returns false: files of the system are read as they were when they were opened.
#[cfg(not(feature = "addresses"))]
fn is_changed(_: &io::Error) -> bool {
    false
}

/// The reason why there is no verdict on a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Nothing exists at the path.
    #[error("{path} does not exist; check the path")]
    NotFound {
        /// The path.
        path: String,
    },
    /// A directory without a SavedModel; [`all`](super::all) walks over it.
    #[error("{path} is a directory and holds no SavedModel; check what is in it one by one")]
    Directory {
        /// The path.
        path: String,
    },
    /// The system could not read the path.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A stream is longer than the limit.
    #[error("{path} gave more than {limit} bytes; save it to a file and check that")]
    TooLong {
        /// The source of the bytes.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
}

impl CheckError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Directory { .. } => ErrorKind::InvalidInput,
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::TooLong { .. } => ErrorKind::Limit,
        }
    }

    /// Converts the system's error for a path.
    pub(super) fn of_system(path: impl Into<String>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            _ => Self::Io { path, source },
        }
    }

    /// Returns the error as a reason.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotFound { .. } => Reason::new(Rule::NotFound, self.to_string()),
            Self::Directory { .. } | Self::TooLong { .. } => {
                Reason::new(Rule::Unsupported, self.to_string())
            }
            Self::Io { path, .. } if path.contains("://") => {
                Reason::new(Rule::Unsupported, self.to_string()).with_remedy(Remedy::GiveAccess)
            }
            Self::Io { .. } => {
                Reason::new(Rule::Unsupported, self.to_string()).with_remedy(Remedy::MakeReadable)
            }
        }
    }
}

/// Returns the reason for a file that turned out shorter than the system had reported.
pub(super) fn became_shorter() -> Reason {
    Reason::from(messages::became_shorter()).with_remedy(Remedy::CheckOnceWritten)
}

/// Returns the rule for a system error that occurs while an artifact is read.
pub(super) fn rule_of_io(error: &io::Error) -> Rule {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Rule::Corrupt,
        io::ErrorKind::NotFound => Rule::NotFound,
        _ => Rule::Unsupported,
    }
}

/// Returns the reason for a system error, with the reader's message.
pub(super) fn reason_of_io(error: &io::Error, message: String) -> Reason {
    let reason = Reason::new(rule_of_io(error), message);
    match reason.rule {
        Rule::Unsupported if is_changed(error) => reason.with_remedy(Remedy::CheckOnceWritten),
        Rule::Unsupported => reason.with_remedy(Remedy::MakeReadable),
        _ => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_is_about_the_disk_or_the_address() {
        for (path, remedy) in
            [("a/x.pb", Remedy::MakeReadable), ("s3://bucket/x.pb", Remedy::GiveAccess)]
        {
            let refused = io::Error::from(io::ErrorKind::PermissionDenied);
            let reason = CheckError::of_system(path, refused).reason();
            assert_eq!((reason.rule, reason.remedy), (Rule::Unsupported, remedy), "{path}");
        }
    }
}
