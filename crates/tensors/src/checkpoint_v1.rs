//! TensorFlow V1 checkpoints as sources of tensors.
//!
//! The format stores the values of a slice in one protobuf message, so that a tensor is read into
//! memory as a whole.

use std::{
    io::{self, Cursor, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes::ifrt::Shape;
use serdes_checkpoints::{
    checkpoint_v1::{CheckpointV1, CheckpointV1Error, TensorV1, default_consumer},
    tensor_bundle::Files,
};
use serdes_files::{ReadAt, Tree as _};
use serdes_graph_format::data_type::describe;

use super::{Error, Listing, Refused, Source, TensorInfo};
use crate::{ifrt_types, storage::Storage};

const KIND: &str = "checkpoint_v1";

/// An open checkpoint of a single file.
#[derive(Debug)]
struct OneFile(Arc<dyn ReadAt>);

impl Files for OneFile {
    fn open(&self, _: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::clone(&self.0))
    }
}

/// A V1 checkpoint as a [`Source`] of tensors.
pub(super) struct V1Source {
    checkpoint: CheckpointV1,
    path: PathBuf,
    listing: Listing,
    /// For each tensor of the listing, its index in [`CheckpointV1::tensors`]; refused tensors are
    /// not listed.
    positions: Vec<usize>,
}

impl V1Source {
    /// Opens the files that match a path or pattern.
    pub(super) fn open(storage: &Storage, pattern: &Path) -> Result<Self, Error> {
        let checkpoint = CheckpointV1::open_in(storage, pattern, Some(&default_consumer()))?;
        Ok(Self::of(checkpoint, PathBuf::from(storage.name(pattern))))
    }

    /// Opens a checkpoint of one file.
    pub(super) fn of_file(source: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        let (file, paths) = (OneFile(source), [path.to_owned()]);
        let checkpoint = CheckpointV1::open_files(&file, &paths, Some(&default_consumer()))?;
        Ok(Self::of(checkpoint, path.to_owned()))
    }

    fn of(checkpoint: CheckpointV1, path: PathBuf) -> Self {
        let (mut listing, mut positions) = (Listing::default(), Vec::new());
        for (position, tensor) in checkpoint.tensors().iter().enumerate() {
            match info(tensor) {
                Ok(info) => {
                    listing.tensors.push(info);
                    positions.push(position);
                }
                Err(reason) => {
                    listing.refused.push(Refused { name: tensor.name().to_owned(), reason });
                }
            }
        }
        Self { checkpoint, path, listing, positions }
    }

    fn tensor(&self, position: usize) -> Result<&TensorV1, Error> {
        let position = self.positions.get(position);
        let tensor = position.and_then(|position| self.checkpoint.tensors().get(*position));
        tensor.ok_or_else(|| Error::io("read", &self.path, io::ErrorKind::NotFound.into()))
    }
}

fn info(tensor: &TensorV1) -> Result<TensorInfo, String> {
    let Some(dtype) = tensor.data_type().and_then(ifrt_types::to_ifrt) else {
        let name = describe(tensor.data_type_number());
        return Err(format!("the element type {name} has no counterpart in IFRT"));
    };
    let shape = Shape::new(tensor.shape()).map_err(|error| error.to_string())?;
    TensorInfo::new(tensor.name(), dtype, shape).map_err(|error| error.to_string())
}

impl Source for V1Source {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        Ok(Box::new(Cursor::new(self.checkpoint.read(self.tensor(position)?)?)))
    }

    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.checkpoint.strings(self.tensor(position)?)?)
    }
}

impl From<CheckpointV1Error> for Error {
    fn from(error: CheckpointV1Error) -> Self {
        Self::CheckpointV1(Box::new(error))
    }
}
