//! Transfers of tensors from files to a device and into a state, and back, or to another file.
//!
//! This module combines files of tensors and devices. It does not depend on file formats, on the
//! layout of a state, or on the command that starts a transfer.

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
