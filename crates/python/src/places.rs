//! Where paths lead: to files, and to what addresses name.

use serdes::{files::Watch, storage::Storage};

/// The file system, object storage and the web, for one piece of work that this watch stops. The
/// environment is asked anew each time: a program of Python may change it.
pub(crate) fn storage(watch: &Watch) -> Storage {
    Storage::anywhere().with_watch(watch)
}
