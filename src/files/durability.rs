//! How far bytes and names are taken to the disk.

use std::{fs::File, path::Path};

use super::Error;

/// How far a file is taken to the disk before it gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// The data, the file's length and its new name are on the disk before the save is done.
    #[default]
    Data,
    /// The system writes when it likes; a crash of the machine may lose the new file or leave it
    /// damaged. A crash of the process may not.
    None,
}

/// Makes new names in a directory last.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| Error::new("sync", path, error))?;
    }
    Ok(())
}
