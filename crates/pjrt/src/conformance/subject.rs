//! The plug-in under test, and the set-up of a trial.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use serdes_library_file::conformance::{Failure, Verdict};

use crate::{
    Buffer, Client, Device, HostArray, PjrtError, PjrtPlugin, Target, Value, report::Slots,
};

impl From<PjrtError> for Failure {
    fn from(error: PjrtError) -> Self {
        if error.is_unsupported() {
            Self::Unsupported(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

/// Returns the failure for an error which says that the feature is not available.
pub(super) fn unsupported(error: PjrtError) -> Failure {
    Failure::Unsupported(error.to_string())
}

/// One behaviour.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    /// The requirement on the plug-in, in one sentence.
    pub(super) demand: &'static str,
    pub(super) run: fn(&Subject) -> Verdict,
}

/// The plug-in under test.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) path: PathBuf,
    pub(super) plugin: PjrtPlugin,
    pub(super) slots: Slots,
    pub(super) options: Vec<(String, Value)>,
    /// The client that all trials share, created by the first one that needs it.
    client: Arc<Mutex<Option<Client>>>,
}

impl Subject {
    pub(super) fn new(
        path: PathBuf,
        plugin: PjrtPlugin,
        slots: Slots,
        options: Vec<(String, Value)>,
    ) -> Self {
        Self { path, plugin, slots, options, client: Arc::default() }
    }

    /// Returns the client; its creation is a behaviour of its own. A plug-in that returns an error
    /// has no hardware here; any other result is a failure of the plug-in.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let mut shared = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*shared {
            return Ok(client.clone());
        }
        let client = self.plugin.create_client(&self.options).map_err(|error| {
            let said = format!("it gives no client: {error}");
            match error {
                PjrtError::Status { .. } => Failure::NoHardware(said),
                _ => Failure::Failed(said),
            }
        })?;
        *shared = Some(client.clone());
        Ok(client)
    }

    /// Returns the client and the devices of this process.
    pub(super) fn devices(&self) -> Result<(Client, Vec<Device>), Failure> {
        let client = self.client()?;
        let devices = client.addressable_devices()?;
        if devices.is_empty() {
            return Err(Failure::Failed("there is no device to try anything on".to_owned()));
        }
        Ok((client, devices))
    }

    /// Returns an array on the first device.
    pub(super) fn put(&self, array: &HostArray<'_>, data: &[u8]) -> Result<Buffer, Failure> {
        let (client, devices) = self.devices()?;
        Ok(client.put(array, data, Target::Device(&devices[0]))?)
    }
}
