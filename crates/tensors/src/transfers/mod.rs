//! Transfers: files of tensors onto a device and into a state, and back; or into another file.
//!
//! This module is where files of tensors and devices meet. It must never know what kinds of files
//! there are, nor how a state is laid out, nor the command that asks for a transfer.

mod convert;
mod fit;
mod names;
mod needs;
mod plan;
mod report;
mod restore;
mod save;
#[cfg(test)]
mod tests;

pub use convert::{ConvertOptions, ConvertReport, convert};
pub use fit::{Fit, Memory, Offer};
pub use names::select;
pub use needs::Needs;
pub use report::Moved;
pub use restore::{RestoreReport, restore};
pub use save::{SaveReport, save, save_into, save_stream};
