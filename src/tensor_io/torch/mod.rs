//! Files of PyTorch's `torch.save`: a pickle of containers, and the bytes of the storages that its
//! tensors lie in. Today's are zip archives; those of before 1.6 follow each other in one stream.
//!
//! The pickle is read by a machine of our own (`machine.rs`) that runs nothing: it knows the
//! containers, and the few functions by which tensors are described (`rebuild.rs`); everything else
//! is a name. What a hostile pickle can make it keep is a small multiple of the pickle's own
//! length.
//!
//! This room must never run, import or look up what a pickle names.

mod error;
mod input;
mod legacy;
mod machine;
mod parsed;
mod read;
mod rebuild;
mod strided;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod zipped;

pub(super) use legacy::is_legacy;
pub(super) use read::TorchSource;
pub(super) use zipped::is_archive;

const KIND: &str = "torch";
