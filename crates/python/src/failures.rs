//! Converts errors of the library to exceptions of the package.
//!
//! The exception depends on the rule of the verdict; errors of the caller are a `ValueError` or a
//! `KeyError`, errors of the system an `OSError`.

use std::{ffi::OsString, io, path::Path, sync::Arc};

use pyo3::{
    exceptions::{PyKeyError, PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError},
    prelude::*,
};
use serdes_check::{self as check, CheckError, Kind, Reason, Rule};
use serdes_device_state::files::Tree;
use serdes_tensors::{self as tensor_io, storage::Storage};

use crate::remedies;

/// The system's error numbers for errors that Rust detects itself.
mod errno {
    pub(super) const NOT_FOUND: i32 = 2;
    pub(super) const FAILED: i32 = 5;
    pub(super) const PERMISSION: i32 = 13;
    pub(super) const EXISTS: i32 = 17;
    pub(super) const NO_DIRECTORY: i32 = 20;
    pub(super) const IS_DIRECTORY: i32 = 21;
    pub(super) const INVALID: i32 = 22;
    pub(super) const FULL: i32 = 28;
}

/// Name of a state in memory, which messages omit.
pub(crate) const BYTES: &str = "the bytes";

/// Converts an error of a state; `path` is the state's path, if it has one.
pub(crate) fn of_state(
    py: Python<'_>,
    error: serdes_device_state::Error,
    path: Option<&Path>,
) -> PyErr {
    use serdes_device_state::Error;
    // The message begins with the path.
    let error = match path {
        Some(path) => error.without_path(Path::new(&named(path))),
        None => error.without_path(Path::new(BYTES)),
    };
    match &error {
        Error::NoSuchTensor { name, .. } => {
            PyKeyError::new_err(format!("the state has no tensor {name:?}"))
        }
        Error::DuplicateName { .. }
        | Error::Invalid { .. }
        | Error::SizeMismatch { .. }
        | Error::Shards { .. }
        | Error::TooLarge { .. } => PyValueError::new_err(error.to_string()),
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        Error::Io { source, path, .. } | Error::Unreadable { source, path, .. } => {
            of_system(py, source, error.to_string(), path)
        }
        Error::NotDeviceState { .. } if is_of_another_kind(path) => {
            let mut message = of_file(path, &error.to_string());
            if path.is_some_and(holds_tensors) {
                message.push_str("; serdes_ml.convert makes a state of its tensors");
            }
            of_reason(py, &Reason::new(Rule::OtherKind, message), path)
        }
        error => {
            let is_salvageable = error.is_salvageable();
            let mut reason = Reason::from(error);
            reason.message = of_file(path, &reason.message);
            if is_salvageable {
                reason.message.push_str(" with the command (`serdes restore --salvage`)");
            }
            of_reason(py, &reason, path)
        }
    }
}

/// Formats a message about a file, with its path if there is one.
fn of_file(path: Option<&Path>, words: &str) -> String {
    path.map_or_else(|| words.to_owned(), |path| format!("{}: {words}", named(path).display()))
}

/// Returns true if the file belongs to another format with readable tensors.
fn holds_tensors(path: &Path) -> bool {
    tensor_io::open_in(&Storage::anywhere(), path).is_ok()
}

/// Returns true if the file is intact and of another format, not a damaged state.
fn is_of_another_kind(path: Option<&Path>) -> bool {
    let kind = path
        .and_then(|path| check::path_in(Arc::new(Storage::anywhere()), path, None).ok())
        .map(|artifact| artifact.kind());
    kind.is_some_and(|kind| kind != Kind::DeviceState)
}

/// Converts an error of tensor files.
pub(crate) fn of_tensors(py: Python<'_>, error: tensor_io::Error) -> PyErr {
    use tensor_io::Error;
    let error = match error {
        Error::DeviceState(error) => return of_state(py, *error, None),
        error => error,
    };
    match &error {
        Error::Io { source, path, .. } => of_system(py, source, error.to_string(), path),
        Error::Corrupt { found, expected, path, .. } => {
            let reason = Reason::new(Rule::Corrupt, error.to_string());
            of_reason(py, &reason.with_numbers(found, expected), Some(path))
        }
        Error::Data { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            of_reason(py, &Reason::new(Rule::Corrupt, error.to_string()), None)
        }
        Error::NoMatch { .. } => PyKeyError::new_err(error.to_string()),
        Error::UnknownForm { path, .. } | Error::Unsupported { path, .. } => {
            of_reason(py, &Reason::new(Rule::Unsupported, error.to_string()), Some(path))
        }
        Error::Bundle(_) | Error::CheckpointV1(_) => {
            of_reason(py, &Reason::new(Rule::Corrupt, error.to_string()), None)
        }
        _ => of_reason(py, &Reason::new(Rule::Unsupported, error.to_string()), None),
    }
}

/// Converts an error of checking a path.
pub(crate) fn of_path(py: Python<'_>, error: &CheckError, path: &Path) -> PyErr {
    match error {
        CheckError::Io { source, .. } => of_system(py, source, error.to_string(), path),
        CheckError::NotFound { .. } => {
            of_reason(py, &Reason::new(Rule::NotFound, error.to_string()), Some(path))
        }
        _ => of_reason(py, &Reason::new(Rule::Unsupported, error.to_string()), Some(path)),
    }
}

/// Converts a reason to an exception.
pub(crate) fn of_reason(py: Python<'_>, reason: &Reason, path: Option<&Path>) -> PyErr {
    let class = match reason.rule {
        Rule::TooNew | Rule::BadConsumer => "TooNew",
        Rule::TooOld | Rule::ProducerTooOld => "TooOld",
        Rule::Corrupt => "Corrupt",
        Rule::NotFound => "NotFound",
        Rule::Unsupported | Rule::OtherKind | Rule::MissingType => "Unsupported",
        _ => "SerdesError",
    };
    let message = match &reason.place {
        Some(place) => format!("{} (at {place})", reason.message),
        None => reason.message.clone(),
    };
    let remedy = remedies::words(&reason.remedy);
    let found = (reason.found.as_deref(), reason.expected.as_deref());
    let rule = reason.rule.id();
    let made = py.import("serdes_ml._errors").and_then(|errors| {
        let class = errors.getattr(class)?;
        match path.filter(|_| reason.rule == Rule::NotFound) {
            Some(path) => class.call1((message, rule, found.0, found.1, remedy, named(path))),
            None => class.call1((message, rule, found.0, found.1, remedy)),
        }
    });
    // If the package cannot be imported, raise that error.
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Creates an `OSError` from the system's error number, or from Rust's kind of error.
pub(crate) fn of_system(py: Python<'_>, error: &io::Error, message: String, path: &Path) -> PyErr {
    let number = error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            return of_reason(py, &Reason::new(Rule::Corrupt, message), Some(path));
        }
        io::ErrorKind::Unsupported => {
            return of_reason(py, &Reason::new(Rule::Unsupported, message), Some(path));
        }
        io::ErrorKind::NotFound => errno::NOT_FOUND,
        io::ErrorKind::PermissionDenied => errno::PERMISSION,
        io::ErrorKind::AlreadyExists => errno::EXISTS,
        io::ErrorKind::NotADirectory => errno::NO_DIRECTORY,
        io::ErrorKind::IsADirectory => errno::IS_DIRECTORY,
        io::ErrorKind::InvalidInput => errno::INVALID,
        io::ErrorKind::StorageFull => errno::FULL,
        _ => errno::FAILED,
    });
    if number == errno::NOT_FOUND {
        return of_reason(py, &Reason::new(Rule::NotFound, message), Some(path));
    }
    PyOSError::new_err((number, message, named(path)))
}

/// Returns the file's name for an exception: a path unchanged, an address without secrets.
pub(crate) fn named(path: &Path) -> OsString {
    let storage = Storage::anywhere();
    match storage.is_of_system(path) {
        true => path.as_os_str().to_owned(),
        false => storage.name(path).into(),
    }
}

/// Returns the error for a value that cannot be represented in JSON.
pub(crate) fn of_json(error: &serde_json::Error) -> PyErr {
    PyRuntimeError::new_err(format!("the answer has no form in JSON: {error}"))
}
