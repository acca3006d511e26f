//! Entry points of the format: opens and creates archives.

use std::{path::Path, sync::Arc};

use serdes_files::{Durability, ReadAt};

use super::{
    super::{Error, Source, Target},
    read::NpzSource,
    write::NpzTarget,
};

/// Opens an archive of arrays.
pub(in super::super) fn open(
    source: Arc<dyn ReadAt>,
    path: &Path,
) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(NpzSource::new(source, path)?))
}

/// Creates an archive of arrays.
pub(in super::super) fn create(
    path: &Path,
    durability: Durability,
) -> Result<Box<dyn Target>, Error> {
    Ok(Box::new(NpzTarget::create(path, durability)?))
}
