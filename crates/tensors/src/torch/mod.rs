//! Files of PyTorch's `torch.save`: a pickle of containers, and the bytes of the storages that hold
//! its tensors. Current files are zip archives; before 1.6 both follow each other in one stream.
//!
//! The pickle is read by our own machine (`machine.rs`), which runs nothing: it supports the
//! containers, and the few functions that describe tensors (`rebuild.rs`); everything else is only
//! a name. Memory comes from a budget (`budget.rs`) that depends on the file's length.
//!
//! This module does not run, import or look up anything that a pickle names.

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
mod open;
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

pub(super) use legacy::is_legacy;
pub(super) use open::{open, open_folder};
pub(super) use zipped::is_archive;

const KIND: &str = "torch";
