//! Programs that are loaded onto devices, ready to run.

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

/// Makes a call whose only input is the executable.
macro_rules! of_loaded {
    ($handle:expr, $arguments:ident) => {{
        let raw = $handle.raw();
        // SAFETY: the executable is alive until it is dropped.
        unsafe { $handle.client.table().ask(|call: &mut $arguments| call.executable = raw) }
    }};
}
/// The handle of a loaded executable. Destroyed on drop.
#[derive(Debug)]
pub(super) struct LoadedHandle {
    pub(super) client: Arc<ClientHandle>,
    raw: NonNull<PJRT_LoadedExecutable>,
}

// SAFETY: the C API lets any thread use any object, several at once except for destroying it, which
// only the owner does.
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
        // An error has no consequence.
        let _ = of_loaded!(self, PJRT_LoadedExecutable_Destroy_Args);
    }
}

/// A program that is loaded onto devices, ready to run ([`Self::execute`]).
#[derive(Debug)]
pub struct LoadedExecutable {
    pub(super) handle: LoadedHandle,
    executable: Executable,
    devices: Vec<Device>,
}

impl LoadedExecutable {
    /// Takes ownership of an executable that a plug-in returned, and queries the facts for running
    /// it.
    ///
    /// # Safety
    /// It is NULL or alive, belongs to this client, and is owned by no other handle.
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
        // SAFETY: a successful call returns ownership of this executable.
        let executable = unsafe { Executable::taken(GET, origin, found.executable) }?;
        let found = of_loaded!(handle, PJRT_LoadedExecutable_AddressableDevices_Args)?;
        let (start, count) = (found.addressable_devices, found.num_addressable_devices);
        // SAFETY: the plug-in declares this number of entries; they belong to the client.
        let devices = unsafe { handles(DEVICES, start, count) }?;
        let devices = devices.into_iter().map(|raw| Device::of(client, raw)).collect();
        Ok(Self { handle, executable, devices })
    }

    /// Returns the client that owns the program.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::of(&self.handle.client)
    }

    /// Returns the compiled program.
    #[must_use]
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Returns the devices of this process that the program runs on, in the order of its arguments
    /// and outputs; none for a portable program.
    #[must_use]
    pub fn addressable_devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the ids of the devices that the program runs on, including those of other processes:
    /// for each partition, by replica.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.79; [`PjrtError::BadAnswer`] for an
    /// invalid assignment.
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

    /// Returns a text that is equal for equal programs, if the plug-in has it here; newer plug-ins
    /// have it for the [`Executable`].
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn fingerprint(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_LoadedExecutable_Fingerprint";
        let found = of_loaded!(self.handle, PJRT_LoadedExecutable_Fingerprint_Args)?;
        let (start, length) = (found.executable_fingerprint, found.executable_fingerprint_size);
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the executable.
        unsafe { text(CALL, "its text", start, length) }
    }

    /// Frees the program's resources on the devices; it cannot be run any more. May be called
    /// repeatedly.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn delete(&self) -> Result<(), PjrtError> {
        of_loaded!(self.handle, PJRT_LoadedExecutable_Delete_Args).map(drop)
    }

    /// Returns true if it was deleted.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn is_deleted(&self) -> Result<bool, PjrtError> {
        Ok(of_loaded!(self.handle, PJRT_LoadedExecutable_IsDeleted_Args)?.is_deleted != 0)
    }
}
