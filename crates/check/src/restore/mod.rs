//! Checks that the checkpoint beside a SavedModel has what a loader restores from it.
//!
//! A saver reads tensors by name and part, as RestoreV2 does: the entry must be there with the type,
//! and its bytes within its files; where a variable is assigned with its shape, that counts as well.
//! `tf.saved_model.load` brings the objects of the model together with those that the checkpoint
//! tells of, from the outermost one on, and restores those that it has brought together; a variable
//! that is left over is an error. Nothing of the data is read but the description of these objects.
//!
//! Knows the two formats of checkpoints and what a loader asks of them. It must never know which
//! loader asks, nor what a verdict is.

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
