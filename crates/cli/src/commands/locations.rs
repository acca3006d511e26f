//! Paths of arguments: files, and addresses of objects.

use std::path::{Path, PathBuf};

use serdes_device_state::files::ProgressMonitor;
use serdes_proxy::StateHolder;
use serdes_tensors::storage::Storage;

use crate::{failure::Failure, terminal::shown_path};

/// Returns the storage for one command: file system, object storage and the web. Waits end when the
/// monitor is cancelled.
pub(crate) fn storage(monitor: &ProgressMonitor) -> Storage {
    Storage::anywhere().with_monitor(monitor)
}

/// Returns an error for direct I/O at an address.
pub(crate) fn refuse_direct(path: &Path) -> Result<(), Failure> {
    match Storage::anywhere().system_path(path) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Failure::new("--direct: what is at an address is no file")),
        Err(error) => Err(Failure::new(format_args!("--direct: {error}"))),
    }
}

/// Returns the path in the file system; `None` for other addresses and for invalid ones.
pub(crate) fn in_file_system(path: &Path) -> Option<PathBuf> {
    Storage::anywhere().system_path(path).ok().flatten().map(std::borrow::Cow::into_owned)
}

/// Returns an error if a running server has its state at the output's path: its next save would
/// replace the file.
pub(crate) fn refuse_served(path: &Path) -> Result<(), Failure> {
    let Some(holder) = in_file_system(path).as_deref().and_then(StateHolder::of) else {
        return Ok(());
    };
    let process = holder.process().map(|process| format!(" (process {process})"));
    let failure = Failure::new(format_args!(
        "{} is the state of a server that runs{}, or one of its older states: its next save would replace what is written there",
        shown_path(path),
        process.unwrap_or_default()
    ));
    Err(failure.with_hint("stop the server first, or name another file"))
}
