//! Paths of arguments: files, and objects that addresses name.

use std::path::{Path, PathBuf};

use serdes_device_state::files::ProgressMonitor;
use serdes_proxy::StateHolder;
use serdes_tensors::storage::Storage;

use crate::{failure::Failure, terminal::shown_path};

/// Returns the file system, object storage and the web, for one command. The waits for them end
/// when the monitor is cancelled.
pub(crate) fn storage(monitor: &ProgressMonitor) -> Storage {
    Storage::anywhere().with_monitor(monitor)
}

/// Returns an error if a file is to be used past the page cache and is at an address.
pub(crate) fn refuse_direct(path: &Path) -> Result<(), Failure> {
    match Storage::anywhere().system_path(path) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Failure::new("--direct: what is at an address is no file")),
        Err(error) => Err(Failure::new(format_args!("--direct: {error}"))),
    }
}

/// Returns the path in the file system; `None` for an address of something else, and for an invalid
/// one.
pub(crate) fn in_file_system(path: &Path) -> Option<PathBuf> {
    Storage::anywhere().system_path(path).ok().flatten().map(std::borrow::Cow::into_owned)
}

/// Returns an error if a server that runs has its state where a file is to be written: its next
/// save would replace the file.
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
