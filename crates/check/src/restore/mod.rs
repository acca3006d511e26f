//! Checks that the checkpoint of a SavedModel has everything that a loader restores from it.
//!
//! A saver reads tensors by name and part, as RestoreV2 does: the entry must exist with the type,
//! and its bytes must be within its files; if a variable is assigned with a shape, that must match
//! as well. `tf.saved_model.load` matches the objects of the model with those that the checkpoint
//! describes, starting at the root, and restores the matched ones; an unmatched variable is an
//! error. Of the data only the description of these objects is read.
//!
//! Depends on the two formats of checkpoints and on what loaders request from them, but not on the
//! individual loaders or on verdicts.

mod checkpoint;
mod error;
mod object_graph;
mod objects;
mod saver;

pub(crate) use self::{
    checkpoint::Checkpoint,
    error::RestoreError,
    objects::{by_graph_names, by_objects},
    saver::by_saver,
};
