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
