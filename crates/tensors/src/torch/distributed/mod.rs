//! Checkpoints of torch.distributed: a folder of `.metadata`, a pickle that says which tensors there
//! are and of which chunks, and files that many archives of `torch.save` follow each other in, one a
//! chunk.

mod chunks;
mod description;
mod joined;
mod source;
#[cfg(test)]
mod tests;

pub(in super::super) use source::DistributedSource;

/// The file that describes the others.
const DESCRIPTION: &str = ".metadata";

const KIND: &str = "torch_distributed";
