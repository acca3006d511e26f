//! Errors of writing, reading and moving states.

use std::{
    io,
    path::{Path, PathBuf},
};

use serdes::codec::{DecodeError, EncodeError, ErrorKind};
use serdes_files::{self, Cancelled};
use serdes_pjrt::PjrtError;

/// An error of writing, reading or moving a state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Errors of the bytes.
    /// The file is not a device state.
    #[error(
        "{} is no device state: found {found}, expected a file that serdes saved",
        subject(path)
    )]
    #[non_exhaustive]
    NotDeviceState {
        /// The file, if it is known.
        path: Option<PathBuf>,
        /// First bytes of the file.
        found: String,
    },
    /// The bytes are damaged: no version has such a layout.
    #[error(
        "the device state{} is damaged at its {place}: found {found}, expected {expected}; take another copy{}",
        named(path),
        or_salvage(place)
    )]
    #[non_exhaustive]
    Corrupt {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// The part of the file.
        place: String,
        /// The value that was found.
        found: String,
        /// The value that was expected.
        expected: String,
    },
    /// A state cannot be salvaged: its header is damaged, or the index over its parts.
    #[error(
        "nothing of {} can be salvaged, because its {place} is damaged: found {found}, expected {expected}; {remedy}",
        path.display()
    )]
    #[non_exhaustive]
    NothingSalvaged {
        /// The file.
        path: PathBuf,
        /// The part of the file.
        place: String,
        /// The value that was found.
        found: String,
        /// The value that was expected.
        expected: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The state needs a newer build.
    #[error(
        "the {what} {found} of the state{} is newer than {supported}, the newest that this build reads; upgrade this build, or save again with an older version",
        named(path)
    )]
    #[non_exhaustive]
    TooNew {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// Name of the number.
        what: &'static str,
        /// The number found.
        found: i64,
        /// The newest number that this build reads.
        supported: i64,
    },
    /// The state has a critical field that this build does not know.
    #[error(
        "the state{} needs {what} {found}, which this build does not know; upgrade this build",
        named(path)
    )]
    #[non_exhaustive]
    TooNewFeature {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// Kind of the field.
        what: &'static str,
        /// Number of the field.
        found: u32,
    },
    /// The format of the state is too old for this build.
    #[error(
        "the device state format {found} of the state{} is older than {supported}, the oldest that this build reads; restore it with an older build, and save it from there at format {supported} or newer",
        named(path)
    )]
    #[non_exhaustive]
    TooOld {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// The format found.
        found: i32,
        /// The oldest format that this build reads.
        supported: i32,
    },
    /// The state was written by a build whose states this build does not read.
    #[error(
        "the state{} was written by a build of device-state number {found}, and this build takes {supported} or newer; save it again with a newer build",
        named(path)
    )]
    #[non_exhaustive]
    ProducerTooOld {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// The number of the build that wrote the state.
        found: i32,
        /// The oldest producer whose states this build reads.
        supported: i32,
    },
    /// The writer lists this build's number as faulty.
    #[error(
        "the state{}, written by {release:?}, excludes readers of device-state version {number}, which is this build's; upgrade this build",
        named(path)
    )]
    #[non_exhaustive]
    BadConsumer {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// The number of this build.
        number: i32,
        /// The release that wrote the state.
        release: String,
    },
    /// The array spec of a tensor cannot be read.
    #[error("the array spec of {name:?} in the state{} cannot be read: {source}", named(path))]
    #[non_exhaustive]
    Spec {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// The tensor.
        name: String,
        /// Error of the spec.
        source: Box<DecodeError>,
    },

    /// A part of a state that several processes saved is missing.
    #[error(
        "{part} of the state is not at {}; the parts of a state belong beside it: copy the directory along with the file",
        place.display()
    )]
    #[non_exhaustive]
    MissingPart {
        /// The part.
        part: String,
        /// Path where it was expected.
        place: PathBuf,
    },
    /// Data of a tensor are in a part that cannot be used.
    #[error(
        "some of its data is in {part}, which cannot be used; bring that part back, or save again"
    )]
    #[non_exhaustive]
    LostPart {
        /// The part.
        part: String,
    },
    /// The pieces of an array do not cover the array.
    #[error(
        "the shards of {name:?} do not make up the array: {reason}; each element belongs into one shard"
    )]
    #[non_exhaustive]
    Shards {
        /// The tensor.
        name: String,
        /// The reason.
        reason: String,
    },

    // Errors of the caller.
    /// Parts of a save are missing.
    #[error(
        "{}", words_of_incomplete(save, *found, *expected, *first_missing)
    )]
    #[non_exhaustive]
    IncompleteSave {
        /// The save.
        save: String,
        /// Parts found.
        found: u32,
        /// Number of parts of the save; 0 if none was found.
        expected: u32,
        /// The first part that is missing.
        first_missing: u32,
    },
    /// Parts of one save disagree.
    #[error(
        "part {part} of the save does not belong to the others: {reason}; save again with the same options in every process"
    )]
    #[non_exhaustive]
    OtherSave {
        /// The number of the part.
        part: u32,
        /// The difference.
        reason: String,
    },
    /// An invalid argument.
    #[error("{reason}")]
    #[non_exhaustive]
    Invalid {
        /// Message with the found and the expected value.
        reason: String,
    },
    /// The array spec of a tensor cannot be written at the requested version.
    #[error("the array spec of {name:?} cannot be written: {source}")]
    #[non_exhaustive]
    Encode {
        /// The tensor.
        name: String,
        /// Error of encoding at the version.
        source: Box<EncodeError>,
    },
    /// Two tensors of one state have the same name.
    #[error("two tensors are called {name:?}; names in a state are unique: rename one")]
    #[non_exhaustive]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The state has no such tensor.
    #[error("the state has no tensor {name:?} among its {count}; use one of its names")]
    #[non_exhaustive]
    NoSuchTensor {
        /// The name asked for.
        name: String,
        /// Number of tensors in the state.
        count: usize,
    },
    /// Data and spec of a tensor disagree.
    #[error("{name:?} has {found} bytes of data, its spec needs {expected}")]
    #[non_exhaustive]
    SizeMismatch {
        /// The tensor.
        name: String,
        /// Number of bytes that were given.
        found: u64,
        /// Number of bytes for the dtype and the shape.
        expected: u64,
    },
    /// A device holds another array than the spec describes.
    #[error(
        "{name:?} is {found} on its device, and its spec says {expected}; give the spec of the array"
    )]
    #[non_exhaustive]
    OtherArray {
        /// The tensor.
        name: String,
        /// Type and dimensions on the device.
        found: String,
        /// Type and dimensions of the spec, or of the device's part by its sharding.
        expected: String,
    },
    /// Tensors of this kind have no bytes that could be stored.
    #[error("{name:?} cannot be stored: {reason}")]
    #[non_exhaustive]
    Unsupported {
        /// The tensor.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A part of the state exceeds the format's limits.
    #[error("the {what} of the state is too large: {found}; split the state into several files")]
    #[non_exhaustive]
    TooLarge {
        /// The part.
        what: &'static str,
        /// Its length or count.
        found: u64,
    },
    /// The work was cancelled.
    #[error("cancelled; no file was written")]
    Cancelled,

    // Errors of the plug-in.
    /// The device or its plug-in failed.
    #[error("the device failed while {action} {name:?}: {source}")]
    #[non_exhaustive]
    Device {
        /// The operation.
        action: &'static str,
        /// The tensor.
        name: String,
        /// Error of the plug-in.
        source: Box<serdes_stream_executor::Error>,
    },

    /// A PJRT client or its plug-in failed.
    #[error("the device failed while {action} {name:?}: {source}")]
    #[non_exhaustive]
    Pjrt {
        /// The operation.
        action: &'static str,
        /// The tensor.
        name: String,
        /// Error of the plug-in.
        source: Box<PjrtError>,
    },

    /// The device returned other bytes than were written to it.
    #[error(
        "the device does not give back what was put into {name:?}: its bytes fail the checksums of the state, which held when they were read; check the device and its plug-in"
    )]
    #[non_exhaustive]
    ReadBack {
        /// The tensor.
        name: String,
    },

    /// The device returned other bytes than the source had.
    #[error(
        "the device does not give back what was put into {name:?}: the checksums of what it gives are others than those of the source; check the device and its plug-in"
    )]
    #[non_exhaustive]
    OtherBytes {
        /// The tensor.
        name: String,
    },

    // Errors of the system.
    /// A salvage ended because the system could not read a part of the file, so that losses there
    /// are unknown.
    #[error(
        "cannot read {} to salvage it: {source}; that is a failure of the system and no damage of the state: try again, or copy what can be read to another disk and salvage the copy",
        path.display()
    )]
    #[non_exhaustive]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An operation on a file failed.
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

/// Returns the path of a file, prefixed for messages, if it is known.
fn named(path: &Option<PathBuf>) -> String {
    path.as_deref().map_or_else(String::new, |path| format!(" {}", path.display()))
}

/// Returns true if a state that is damaged in this place may have undamaged parts: without its
/// header nothing can be found.
fn leaves_something(place: &str) -> bool {
    place != "header"
}

/// Returns the alternative remedy for damage.
fn or_salvage(place: &str) -> &'static str {
    if leaves_something(place) { ", or salvage what is whole" } else { "" }
}

/// Returns a file as the subject of a message.
fn subject(path: &Option<PathBuf>) -> String {
    path.as_deref().map_or_else(|| "this".to_owned(), |path| path.display().to_string())
}

/// Returns the message about a save with missing parts.
fn words_of_incomplete(save: &str, found: u32, expected: u32, first_missing: u32) -> String {
    if found == 0 {
        return format!(
            "there is no part of the save {save} beside the path; check the path and the id, and let every process finish its part first"
        );
    }
    format!(
        "the save {save} is not complete: found {found} of {expected} parts, {first_missing} is missing; let every process finish its part first, or save again"
    )
}

impl Error {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotDeviceState { .. }
            | Self::Corrupt { .. }
            | Self::NothingSalvaged { .. }
            | Self::Shards { .. } => ErrorKind::Corrupt,
            // The writer requires newer builds as readers.
            Self::TooNew { .. } | Self::TooNewFeature { .. } | Self::BadConsumer { .. } => {
                ErrorKind::TooNew
            }
            Self::TooOld { .. } | Self::ProducerTooOld { .. } => ErrorKind::TooOld,
            Self::Spec { source, .. } => source.kind(),
            Self::Encode { source, .. } => source.kind(),
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::MissingPart { .. }
            | Self::LostPart { .. }
            | Self::IncompleteSave { .. }
            | Self::NoSuchTensor { .. } => ErrorKind::NotFound,
            Self::OtherSave { .. }
            | Self::Invalid { .. }
            | Self::DuplicateName { .. }
            | Self::SizeMismatch { .. }
            | Self::OtherArray { .. } => ErrorKind::InvalidInput,
            Self::TooLarge { .. } => ErrorKind::Limit,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Device { source, .. } => source.kind(),
            Self::Pjrt { source, .. } => source.kind(),
            Self::ReadBack { .. } | Self::OtherBytes { .. } => ErrorKind::Faulty,
            Self::Unreadable { source, .. } | Self::Io { source, .. } => ErrorKind::of_io(source),
        }
    }

    pub(crate) fn corrupt(place: &str, found: String, expected: String) -> Self {
        Self::Corrupt { path: None, place: place.to_owned(), found, expected }
    }

    pub(crate) fn invalid(reason: String) -> Self {
        Self::Invalid { reason }
    }

    pub(crate) fn shards(name: &str, reason: String) -> Self {
        Self::Shards { name: name.to_owned(), reason }
    }

    pub(crate) fn checksum(place: &str, stored: u32, computed: u32) -> Self {
        Self::corrupt(place, format!("checksum {computed:08x}"), format!("{stored:08x}"))
    }

    /// Returns true if the state is damaged and a salvage may recover a part of it.
    #[must_use]
    pub fn is_salvageable(&self) -> bool {
        matches!(self, Self::Corrupt { place, .. } if leaves_something(place))
    }

    /// Creates the error for two tensors of the same name in a state.
    pub fn duplicate_name(name: impl Into<String>) -> Self {
        Self::DuplicateName { name: name.into() }
    }

    /// Creates the error for a name that a state of `count` tensors does not have.
    pub fn no_such_tensor(name: impl Into<String>, count: usize) -> Self {
        Self::NoSuchTensor { name: name.into(), count }
    }

    pub(crate) fn device(
        action: &'static str,
        name: &str,
        source: serdes_stream_executor::Error,
    ) -> Self {
        Self::Device { action, name: name.to_owned(), source: Box::new(source) }
    }

    pub(crate) fn pjrt(action: &'static str, name: &str, source: PjrtError) -> Self {
        Self::Pjrt { action, name: name.to_owned(), source: Box::new(source) }
    }

    /// Creates the error for a failed operation on a path; [`Error::Cancelled`] if a wait for a
    /// store was cancelled.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        // A cancelled wait for a store is not an error of the store.
        if source.get_ref().is_some_and(|error| error.is::<Cancelled>()) {
            return Self::Cancelled;
        }
        Self::Io { action, path: path.to_path_buf(), source }
    }
}

impl From<serdes_files::Error> for Error {
    fn from(error: serdes_files::Error) -> Self {
        let serdes_files::Error { action, path, source } = error;
        Self::Io { action, path, source }
    }
}

impl From<Cancelled> for Error {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salvage_is_advised_where_something_may_be_whole() {
        for (place, is_advised) in [("header", false), ("index", true), ("trailer", true)] {
            let (found, expected) = ("7".to_owned(), "9".to_owned());
            let error = Error::Corrupt { path: None, place: place.to_owned(), found, expected };
            assert_eq!(error.is_salvageable(), is_advised, "{place}");
            assert_eq!(error.to_string().contains("salvage"), is_advised, "{place}");
        }
        assert!(!Error::Cancelled.is_salvageable());
    }
}
