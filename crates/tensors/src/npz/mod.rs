//! NumPy's npz: a zip archive of npy files.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::{path::Path, sync::Arc};

use serdes_files::{Durability, ReadAt};

use self::{read::NpzSource, write::NpzTarget};
use super::{Error, Source, Target};

const KIND: &str = "npz";

/// Opens the arrays of an archive.
pub(super) fn open(source: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(NpzSource::new(source, path)?))
}

/// Begins an archive of arrays.
pub(super) fn create(path: &Path, durability: Durability) -> Result<Box<dyn Target>, Error> {
    Ok(Box::new(NpzTarget::create(path, durability)?))
}
