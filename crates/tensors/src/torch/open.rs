//! The functions of the format: a file, or a folder of files, as a source.

use std::{path::Path, sync::Arc};

use serdes_files::{ReadAt, Tree};

use super::{
    super::{Error, Source},
    distributed::DistributedSource,
    read::TorchSource,
};

/// Opens a file of `torch.save`.
pub(in super::super) fn open(
    source: Arc<dyn ReadAt>,
    path: &Path,
) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(TorchSource::new(source, path)?))
}

/// Opens a checkpoint of torch.distributed.
pub(in super::super) fn open_folder(
    tree: Arc<dyn Tree>,
    folder: &Path,
) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(DistributedSource::open(tree, folder)?))
}
