//! Destinations of arrays.

use std::sync::Arc;

use super::{
    client::ClientHandle,
    device::{Device, Memory},
};
use crate::PjrtError;

/// The destination of an array: a device or one of its memories.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// The default memory of a device.
    Device(&'a Device),
    /// A specific memory.
    Memory(&'a Memory),
}

impl Target<'_> {
    fn client(&self) -> &Arc<ClientHandle> {
        match self {
            Self::Device(device) => device.client_handle(),
            Self::Memory(memory) => memory.client_handle(),
        }
    }

    /// Fails unless the target belongs to this client.
    pub(super) fn check(&self, client: &Arc<ClientHandle>) -> Result<(), PjrtError> {
        let what = match self {
            Self::Device(_) => "device",
            Self::Memory(_) => "memory",
        };
        let is_same = Arc::ptr_eq(self.client(), client);
        if is_same { Ok(()) } else { Err(PjrtError::OtherClient { what }) }
    }
}
