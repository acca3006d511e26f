//! Checkpoints of torch.distributed: a folder of `.metadata`, a pickle that lists the tensors and
//! their chunks, and files of concatenated `torch.save` archives, one per chunk.

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
