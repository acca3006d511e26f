//! Programs on devices, to be run.

use std::{ptr::NonNull, sync::Arc};

use prost::Message;
use serdes_abi::pjrt::args::*;

use super::{device_assignment::DeviceAssignmentProto, executable::Executable};
use crate::{
    Device, PjrtError,
    host::{
        border::{handles, owned_bytes, pointer, text},
        client::{Client, ClientHandle},
        origin::Origin,
    },
};

/// Calls that are given the executable alone.
macro_rules! of_loaded {
    ($handle:expr, $arguments:ident) => {{
        let raw = $handle.raw();
        // SAFETY: the executable is alive until it is dropped.
        unsafe { $handle.client.table().ask(|call: &mut $arguments| call.executable = raw) }
    }};
}
/// An executable's handle. Destroyed when it is dropped.
#[derive(Debug)]
pub(super) struct LoadedHandle {
    pub(super) client: Arc<ClientHandle>,
    raw: NonNull<PJRT_LoadedExecutable>,
}

// SAFETY: the C API lets any thread use any object, several at once but for destroying it; that is
// done by the owner alone.
unsafe impl Send for LoadedHandle {}
// SAFETY: as above.
unsafe impl Sync for LoadedHandle {}

impl LoadedHandle {
    pub(super) fn raw(&self) -> *mut PJRT_LoadedExecutable {
        self.raw.as_ptr()
    }
}

impl Drop for LoadedHandle {
    fn drop(&mut self) {
        // An error changes nothing.
        let _ = of_loaded!(self, PJRT_LoadedExecutable_Destroy_Args);
    }
}

/// A program on devices, to be run ([`Self::execute`]).
#[derive(Debug)]
pub struct LoadedExecutable {
    pub(super) handle: LoadedHandle,
    executable: Executable,
    devices: Vec<Device>,
}

impl LoadedExecutable {
    /// Takes an executable that a plug-in handed over, and asks what is needed to run it.
    ///
    /// # Safety
    /// It is NULL or alive, of that client, and owned by no other handle.
    pub(super) unsafe fn taken(
        call: &'static str,
        client: &Arc<ClientHandle>,
        raw: *mut PJRT_LoadedExecutable,
    ) -> Result<Self, PjrtError> {
        const GET: &str = "PJRT_LoadedExecutable_GetExecutable";
        const DEVICES: &str = "PJRT_LoadedExecutable_AddressableDevices";
        let raw = pointer(call, "an executable", raw)?;
        let handle = LoadedHandle { client: Arc::clone(client), raw };
        let loaded = handle.raw();
        // SAFETY: the executable is alive.
        let found = unsafe {
            client.table().ask(|call: &mut PJRT_LoadedExecutable_GetExecutable_Args| {
                call.loaded_executable = loaded;
            })
        }?;
        let origin = Origin::Client(Arc::clone(client));
        // SAFETY: a call that succeeds hands over this executable.
        let executable = unsafe { Executable::taken(GET, origin, found.executable) }?;
        let found = of_loaded!(handle, PJRT_LoadedExecutable_AddressableDevices_Args)?;
        let (start, count) = (found.addressable_devices, found.num_addressable_devices);
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let devices = unsafe { handles(DEVICES, start, count) }?;
        let devices = devices.into_iter().map(|raw| Device::of(client, raw)).collect();
        Ok(Self { handle, executable, devices })
    }

    /// Returns the client that it is of.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::of(&self.handle.client)
    }

    /// Returns the compiled program.
    #[must_use]
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Returns the devices of this process that it runs on, in the order of its arguments and
    /// outputs; none for a portable one.
    #[must_use]
    pub fn addressable_devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the numbers of the devices that it runs on, also those of other processes: for each
    /// partition, by replica.
    ///
    /// # Errors
    /// As the plug-in's; [`PjrtError::Missing`] before 0.79; [`PjrtError::BadAnswer`] for what is
    /// no assignment.
    pub fn device_assignment(&self) -> Result<Vec<Vec<i64>>, PjrtError> {
        const CALL: &str = "PJRT_LoadedExecutable_GetDeviceAssignment";
        let found = of_loaded!(self.handle, PJRT_LoadedExecutable_GetDeviceAssignment_Args)?;
        let bytes = (found.serialized_bytes, found.serialized_bytes_size);
        let owner = found.serialized_device_assignment;
        let deleter = found.serialized_device_assignment_deleter;
        // SAFETY: a successful call returns this number of bytes and their owner.
        let bytes = unsafe { owned_bytes(CALL, "an assignment", bytes, owner, deleter) }?;
        let message = DeviceAssignmentProto::decode(&*bytes);
        let message = message.map_err(|error| PjrtError::BadAnswer {
            call: CALL,
            what: "an assignment of devices",
            found: error.to_string(),
            expected: "a message xla.DeviceAssignmentProto",
        })?;
        Ok(message.computation_devices.into_iter().map(|ids| ids.replica_device_ids).collect())
    }

    /// Returns a text that is the same for programs that are, if the plug-in says it; newer
    /// plug-ins say it of the [`Executable`].
    ///
    /// # Errors
    /// As the plug-in's, or [`PjrtError::BadAnswer`].
    pub fn fingerprint(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_LoadedExecutable_Fingerprint";
        let found = of_loaded!(self.handle, PJRT_LoadedExecutable_Fingerprint_Args)?;
        let (start, length) = (found.executable_fingerprint, found.executable_fingerprint_size);
        // SAFETY: the plug-in declares this length in bytes; they are the executable's.
        unsafe { text(CALL, "its text", start, length) }
    }

    /// Frees what it holds of the devices; it cannot be run any more. May be done again.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn delete(&self) -> Result<(), PjrtError> {
        of_loaded!(self.handle, PJRT_LoadedExecutable_Delete_Args).map(drop)
    }

    /// Returns true if it was deleted.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn is_deleted(&self) -> Result<bool, PjrtError> {
        Ok(of_loaded!(self.handle, PJRT_LoadedExecutable_IsDeleted_Args)?.is_deleted != 0)
    }
}
