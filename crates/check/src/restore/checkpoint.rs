//! The checkpoint of a model, in either format.
//!
//! Finds tensors in both formats. Does not depend on the tensors that a model restores.

use std::{cell::RefCell, path::Path, sync::Arc};

use serdes_checkpoints::{
    checkpoint_v1::CheckpointV1,
    slice::TensorSlice,
    table::Cursor,
    tensor_bundle::{Bundle, BundleError, Files},
};
use serdes_files::{ReadAt, Tree};
use serdes_graph_format::data_type::describe;

use super::RestoreError;

/// An open checkpoint.
#[derive(Debug)]
pub(crate) enum Checkpoint {
    V2(Box<Bundle>),
    V1(CheckpointV1),
}

/// The only file of a V1 checkpoint.
#[derive(Debug)]
struct OneFile(Arc<dyn ReadAt>);

impl Files for OneFile {
    fn open(&self, _path: &Path) -> std::io::Result<Arc<dyn ReadAt>> {
        Ok(self.0.clone())
    }
}

impl Checkpoint {
    /// Opens the V1 checkpoint in one file, without checking its versions.
    pub(crate) fn open_v1(tree: &dyn Tree, path: &Path) -> Result<Self, RestoreError> {
        let file =
            tree.open(path).map_err(|source| BundleError::Io { path: path.to_owned(), source })?;
        let opened = CheckpointV1::open_files(&OneFile(file), &[path.to_owned()], None)?;
        Ok(Self::V1(opened))
    }

    /// Creates a look-up for many tensors.
    pub(super) fn lookup(&self) -> Lookup<'_> {
        let cursor = match self {
            Self::V2(bundle) => Some(RefCell::new(bundle.table().cursor())),
            Self::V1(_) => None,
        };
        Lookup { checkpoint: self, cursor }
    }
}

/// Looks up tensors one after another; fast if their names are ascending.
pub(super) struct Lookup<'c> {
    pub(super) checkpoint: &'c Checkpoint,
    /// Keeps the last block of the index that was read.
    cursor: Option<RefCell<Cursor<'c, Arc<dyn ReadAt>>>>,
}

impl Lookup<'_> {
    /// Returns the shape that RestoreV2 gives for a tensor or a part of it, with this element type.
    /// Reads none of its data.
    pub(super) fn restorable(
        &self,
        name: &[u8],
        slice: &[u8],
        data_type: i32,
    ) -> Result<Vec<i64>, RestoreError> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let missing = || RestoreError::Missing { name: shown() };
        let expect = |found: i32| match found == data_type {
            true => Ok(()),
            false => Err(RestoreError::Type {
                name: shown(),
                found: describe(found),
                expected: describe(data_type),
            }),
        };
        match (self.checkpoint, &self.cursor) {
            (Checkpoint::V2(bundle), cursor) => {
                let found = match cursor {
                    Some(cursor) => bundle.find(&mut cursor.borrow_mut(), name),
                    None => bundle.tensor(name),
                };
                let entry = match found {
                    Err(BundleError::TensorNotFound { .. }) => return Err(missing()),
                    found => found?,
                };
                expect(entry.data_type_number())?;
                let part = part_of(name, slice, entry.shape())?;
                bundle.check_restorable(&entry, part.as_ref())?;
                shape_of_part(entry.shape(), part.as_ref(), &shown)
            }
            (Checkpoint::V1(checkpoint), _) => {
                let found =
                    std::str::from_utf8(name).ok().and_then(|name| checkpoint.tensor(name).ok());
                let tensor = found.ok_or_else(missing)?;
                expect(tensor.data_type_number())?;
                let part = part_of(name, slice, tensor.shape())?;
                shape_of_part(tensor.shape(), part.as_ref(), &shown)
            }
        }
    }

    /// Returns true if some tensor has a name that begins with `prefix`.
    pub(super) fn has_prefix(&self, prefix: &[u8]) -> bool {
        match self.checkpoint {
            Checkpoint::V2(bundle) => bundle.has_prefix(prefix),
            Checkpoint::V1(checkpoint) => checkpoint
                .tensors()
                .iter()
                .any(|tensor| tensor.name().as_bytes().starts_with(prefix)),
        }
    }
}

/// Returns the part of a tensor that a specification describes; the specification has the shape of
/// the whole as well.
fn part_of(name: &[u8], slice: &[u8], shape: &[i64]) -> Result<Option<TensorSlice>, RestoreError> {
    if slice.is_empty() {
        return Ok(None);
    }
    let name = || String::from_utf8_lossy(name).into_owned();
    let specification = String::from_utf8_lossy(slice);
    let parsed = TensorSlice::parse_specification(&specification);
    let (whole, part) = parsed.map_err(|source| BundleError::Slice { name: name(), source })?;
    if whole != shape {
        let (found, expected) = (super::error::shown(shape), super::error::shown(&whole));
        return Err(RestoreError::Shape { name: name(), found, expected });
    }
    Ok(Some(part))
}

fn shape_of_part(
    shape: &[i64],
    part: Option<&TensorSlice>,
    name: &dyn Fn() -> String,
) -> Result<Vec<i64>, RestoreError> {
    let Some(part) = part else { return Ok(shape.to_vec()) };
    let bounds =
        part.bounds(shape).map_err(|source| BundleError::Slice { name: name(), source })?;
    Ok(bounds.into_iter().map(|(_, length)| length).collect())
}
