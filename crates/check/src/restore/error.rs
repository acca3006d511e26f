//! Reasons why a loader cannot restore a model from its checkpoint.

use serdes_checkpoints::{checkpoint_v1::CheckpointV1Error, tensor_bundle::BundleError};

/// The reason why a loader cannot restore.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The checkpoint cannot be opened, or one of its tensors cannot be read.
    #[error("{0}")]
    Bundle(#[from] BundleError),
    /// Likewise for a checkpoint in the V1 format.
    #[error("{0}")]
    V1(#[from] CheckpointV1Error),
    /// The checkpoint does not have the tensor.
    #[error("the model restores the tensor {name:?}, which its checkpoint does not have")]
    Missing { name: String },
    /// The tensor has another type.
    #[error(
        "the model restores the tensor {name:?} as {expected}, and in its checkpoint it is {found}"
    )]
    Type { name: String, found: String, expected: String },
    /// The tensor has another shape.
    #[error(
        "the model restores the tensor {name:?} with the shape {expected}, and in its checkpoint it has {found}"
    )]
    Shape { name: String, found: String, expected: String },
    /// An object of the model has no counterpart in the checkpoint.
    #[error("the model has the variable {path}, which its checkpoint does not tell of")]
    Unbound { path: String },
    /// The description of the objects in the checkpoint is malformed.
    #[error("the objects of the checkpoint are not described as they should be: {found}")]
    Objects { found: String },
}

impl RestoreError {
    /// Returns true if the checkpoint is intact, but belongs to another model.
    pub(crate) fn is_mismatch(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::Type { .. }
            | Self::Shape { .. }
            | Self::Unbound { .. } => true,
            Self::Bundle(_) | Self::V1(_) | Self::Objects { .. } => false,
        }
    }

    /// Returns the value found and the value expected, if both are known.
    pub(crate) fn numbers(&self) -> Option<(&str, &str)> {
        match self {
            Self::Type { found, expected, .. } | Self::Shape { found, expected, .. } => {
                Some((found, expected))
            }
            _ => None,
        }
    }

    /// Returns the tensor or object that the error concerns.
    pub(crate) fn place(&self) -> Option<&str> {
        match self {
            Self::Missing { name } | Self::Type { name, .. } | Self::Shape { name, .. } => {
                Some(name)
            }
            Self::Unbound { path } => Some(path),
            Self::Bundle(_) | Self::V1(_) | Self::Objects { .. } => None,
        }
    }
}

/// Formats a shape for messages.
pub(super) fn shown(shape: &[i64]) -> String {
    format!("{shape:?}")
}
