//! Paths of files and addresses from Python.

use std::{ffi::OsString, path::PathBuf};

use pyo3::{exceptions::PyValueError, prelude::*};
use serdes_device_state::{files::ProgressMonitor, matches_any};
use serdes_tensors::storage::Storage;

use crate::{failures, work::interruptible};

/// Returns the storage for one piece of work, which this monitor can cancel: file system, object
/// storage and the web. The environment is read each time, since a Python program may change it.
pub(crate) fn storage(monitor: &ProgressMonitor) -> Storage {
    Storage::anywhere().with_monitor(monitor)
}

/// Returns the path of the file system that a path is, or leads to; None for other places.
#[pyfunction]
pub(crate) fn system_path(path: PathBuf) -> PyResult<Option<PathBuf>> {
    let found = Storage::anywhere().system_path(&path).map(|found| found.map(Into::into));
    found.map_err(|error| {
        PyValueError::new_err(format!("{}: {error}", failures::named(&path).display()))
    })
}

/// Returns the name of a path in messages: an address without secrets.
#[pyfunction]
pub(crate) fn shown(path: PathBuf) -> OsString {
    failures::named(&path)
}

/// Names in a folder, or under an address, that one of the patterns matches.
#[pyfunction]
pub(crate) fn names(
    py: Python<'_>,
    folder: PathBuf,
    patterns: Vec<String>,
) -> PyResult<Vec<String>> {
    let mut names = Vec::new();
    let listed = interruptible(py, None, 0, |monitor| {
        storage(monitor).visit(&folder, &mut |name| {
            if matches_any(&patterns, name) {
                names.push(name.to_owned());
            }
        })
    })?;
    listed.map_err(|error| {
        let message = format!("cannot list {}: {error}", failures::named(&folder).display());
        failures::of_system(py, &error, message, &folder)
    })?;
    Ok(names)
}
