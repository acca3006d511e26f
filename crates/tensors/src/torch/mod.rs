//! Files of PyTorch's `torch.save`: a pickle of containers, and the bytes of the storages that its
//! tensors lie in. Today's are zip archives; those of before 1.6 follow each other in one stream.
//!
//! The pickle is read by a machine of our own (`machine.rs`) that runs nothing: it knows the
//! containers, and the few functions by which tensors are described (`rebuild.rs`); everything else
//! is a name. Memory comes from a budget (`budget.rs`) that the length of the file decides.
//!
//! This module must never run, import or look up what a pickle names.

mod accounted;
mod budget;
mod distributed;
mod error;
mod found;
mod globals;
mod id;
mod input;
mod items;
mod json;
mod legacy;
mod machine;
mod made;
mod names;
mod numpy;
mod parsed;
mod pool;
mod read;
mod rebuild;
mod strided;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod words;
mod zipped;

use std::{path::Path, sync::Arc};

use serdes_files::{ReadAt, Tree};

use self::{distributed::DistributedSource, read::TorchSource};
use super::{Error, Source};

pub(super) use legacy::is_legacy;
pub(super) use zipped::is_archive;

const KIND: &str = "torch";

/// Opens a file of `torch.save`.
pub(super) fn open(source: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(TorchSource::new(source, path)?))
}

/// Opens a checkpoint of torch.distributed.
pub(super) fn open_folder(tree: Arc<dyn Tree>, folder: &Path) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(DistributedSource::open(tree, folder)?))
}
