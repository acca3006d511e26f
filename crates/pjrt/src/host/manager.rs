//! Transfer managers, which receive the pieces of arrays that are sent to a device.

use std::{ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::client::ClientHandle;
use crate::PjrtError;

/// A plug-in's transfer manager. Every transfer in progress holds it.
#[derive(Debug)]
pub(super) struct ManagerHandle {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_AsyncHostToDeviceTransferManager>,
}

// SAFETY: the C API lets any thread use any object, several at once except for destroying it, which
// happens once no handle is left.
unsafe impl Send for ManagerHandle {}
// SAFETY: as above.
unsafe impl Sync for ManagerHandle {}

impl ManagerHandle {
    /// Takes ownership of a manager that a plug-in returned.
    pub(super) fn new(
        client: &Arc<ClientHandle>,
        raw: NonNull<PJRT_AsyncHostToDeviceTransferManager>,
    ) -> Self {
        Self { client: Arc::clone(client), raw }
    }

    pub(super) fn client(&self) -> &Arc<ClientHandle> {
        &self.client
    }

    pub(super) fn raw(&self) -> *mut PJRT_AsyncHostToDeviceTransferManager {
        self.raw.as_ptr()
    }

    /// Fails if the plug-in reports another number of arrays. A plug-in without this function is
    /// trusted.
    pub(super) fn check_count(&self, expected: usize) -> Result<(), PjrtError> {
        let raw = self.raw();
        // SAFETY: the manager is alive.
        let count = unsafe {
            self.client.table().ask(
                |call: &mut PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args| {
                    call.transfer_manager = raw;
                },
            )
        };
        match count {
            Ok(found) if found.buffer_count != expected => Err(PjrtError::BadAnswer {
                call: "PJRT_AsyncHostToDeviceTransferManager_BufferCount",
                what: "the number of arrays",
                found: found.buffer_count.to_string(),
                expected: "as many as were asked for",
            }),
            Err(error) if !error.is_unsupported() => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for ManagerHandle {
    fn drop(&mut self) {
        let raw = self.raw();
        // SAFETY: it is alive, and no handle is left. An error has no consequence.
        let _ = unsafe {
            self.client.table().ask(
                |call: &mut PJRT_AsyncHostToDeviceTransferManager_Destroy_Args| {
                    call.transfer_manager = raw;
                },
            )
        };
    }
}
