//! Where the paths of arguments lead: to files, and to what addresses name.

use std::path::Path;

use serdes::{files::Watch, storage::Storage};

use crate::failure::Failure;

/// The file system, object storage and the web, for one command. The waits for them end when the
/// watch is cancelled.
pub(crate) fn storage(watch: &Watch) -> Storage {
    Storage::anywhere().with_watch(watch)
}

/// An error if a file is to be used past the page cache and is at an address.
pub(crate) fn refuse_direct(path: &Path) -> Result<(), Failure> {
    match Storage::anywhere().system_path(path) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Failure::new("--direct: what is at an address is no file")),
        Err(error) => Err(Failure::new(format_args!("--direct: {error}"))),
    }
}
