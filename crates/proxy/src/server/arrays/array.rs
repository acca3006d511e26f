//! Arrays: their metadata and their shards.

use serdes::{
    codec::Status,
    ifrt::{ArraySpec, DType, IndexDomain, Shape, Sharding},
};

use super::{Buffer, MemorySpace};
use crate::status::status;

/// A part of an array on one device.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) space: MemorySpace,
    pub(crate) shape: Shape,
    pub(crate) buffer: Buffer,
}

/// An array: its metadata, and its shards in the order of the sharding's devices.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) spec: ArraySpec,
    pub(crate) shards: Vec<Shard>,
}

impl Array {
    pub(crate) fn dtype(&self) -> DType {
        self.spec.dtype()
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.spec.shape()
    }

    pub(crate) fn sharding(&self) -> &Sharding {
        self.spec.sharding()
    }

    /// Returns the part of the array that each shard holds.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding does not define the parts.
    pub(crate) fn domains(&self) -> Result<Vec<IndexDomain>, Status> {
        let whole = || self.shards.iter().all(|shard| shard.shape == *self.shape());
        match self.sharding().index_domains(self.shape()) {
            Ok(domains) if domains.len() == self.shards.len() => Ok(domains),
            Ok(_) => {
                Err(status!(Internal, "the sharding has not as many parts as the array has shards"))
            }
            Err(_) if whole() => {
                Ok(vec![IndexDomain::whole(self.shape().clone()); self.shards.len()])
            }
            Err(error) => Err(error.to_status()),
        }
    }

    /// Waits for all shards.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) async fn wait(&self) -> Result<(), Status> {
        for shard in &self.shards {
            shard.buffer.wait().await?;
        }
        Ok(())
    }
}
