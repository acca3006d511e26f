//! Errors of programs, and of their conversion for an older reader.

use serdes_abi::ErrorKind;

use super::{Need, StableHloVersion};

/// The reason why a program could not be read, or not be written for a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StableHloError {
    /// The text is not a version.
    #[error("`{found}` is no version of StableHLO; expected three numbers such as 1.16.3")]
    NoVersion {
        /// The text, at most 40 letters of it.
        found: String,
    },
    /// The bytes are not a portable artifact.
    #[error(
        "the program {found}; expected a portable artifact of StableHLO: MLIR bytecode whose producer is StableHLO_vX.Y.Z"
    )]
    NoArtifact {
        /// First bytes of the file.
        found: String,
    },
    /// The bytecode has an encoding that this crate does not support.
    #[error(
        "the bytecode has encoding {found}; expected 6, which StableHLO writes from version 0.15 on"
    )]
    UnknownEncoding {
        /// The number of the encoding.
        found: u64,
    },
    /// The bytes are inconsistent.
    #[error("the bytecode is damaged at byte {at}: expected {expected}")]
    Malformed {
        /// Position in bytes.
        at: usize,
        /// Expected contents.
        expected: &'static str,
    },
    /// Conversion to a version this old is not supported.
    #[error(
        "programs are written for StableHLO {oldest} or later here, and {target} is wanted; use a reader of at least {oldest}",
        oldest = StableHloVersion::OLDEST_TARGET
    )]
    TargetTooOld {
        /// The version that was asked for.
        target: StableHloVersion,
    },
    /// The program has features that the older version cannot express.
    #[error(
        "the program is of StableHLO {version} and has what {target} cannot say: {}; use a reader of at least that version, or write the program with an older framework",
        list_needs(.needs)
    )]
    Inexpressible {
        /// The version of the program.
        version: StableHloVersion,
        /// The version that was asked for.
        target: StableHloVersion,
        /// Features that it cannot express.
        needs: Vec<Need>,
    },
    /// The bridge could not convert the program either.
    #[error(
        "the program is of StableHLO {version} and was not brought to {target}: {words}; use a reader of at least {version}, or write the program with an older framework"
    )]
    Bridge {
        /// The version of the program.
        version: StableHloVersion,
        /// The version that was asked for.
        target: StableHloVersion,
        /// The message of the bridge, or the defect of its answer.
        words: String,
    },
}

impl StableHloError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoVersion { .. } => ErrorKind::InvalidInput,
            Self::NoArtifact { .. } | Self::Malformed { .. } => ErrorKind::Corrupt,
            Self::UnknownEncoding { found: 7.. } => ErrorKind::TooNew,
            Self::UnknownEncoding { .. } => ErrorKind::TooOld,
            Self::TargetTooOld { .. } | Self::Inexpressible { .. } | Self::Bridge { .. } => {
                ErrorKind::Unsupported
            }
        }
    }
}

/// Largest number of needs that a message lists.
const MAX_LISTED_NEEDS: usize = 8;

fn list_needs(needs: &[Need]) -> String {
    let shown: Vec<String> = needs.iter().take(MAX_LISTED_NEEDS).map(Need::to_string).collect();
    let more = needs.len().saturating_sub(MAX_LISTED_NEEDS);
    match more {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}
