//! A client: what has the devices of a plug-in.

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    border::{Table, pointer, text},
    options::{self, Value},
    plugin::PjrtPlugin,
};
use crate::PjrtError;

/// A client as the plug-in handed it over.
#[derive(Debug)]
struct RawClient {
    plugin: PjrtPlugin,
    raw: NonNull<PJRT_Client>,
}

impl Drop for RawClient {
    fn drop(&mut self) {
        let (table, raw) = (self.plugin.table(), self.raw.as_ptr());
        // SAFETY: it is alive, and everything that lived in it held it and is gone. An error
        // changes nothing.
        let _ = unsafe { table.ask(|call: &mut PJRT_Client_Destroy_Args| call.client = raw) };
    }
}

/// Cached answer of a client to the question if it maps host memory: asked once, because the answer
/// of a plug-in that cannot does not change.
#[derive(Debug, Default)]
pub(super) struct Mapping(AtomicU8);

const REFUSED: u8 = 1;

impl Mapping {
    pub(super) fn is_refused(&self) -> bool {
        self.0.load(Ordering::Relaxed) == REFUSED
    }

    pub(super) fn refuse(&self) {
        self.0.store(REFUSED, Ordering::Relaxed);
    }
}

/// A client's handle, and the plug-in that it is of. Whatever lives in the client holds it.
#[derive(Debug)]
pub(super) struct ClientHandle {
    client: RawClient,
    platform_name: String,
    platform_version: String,
    process_index: i32,
    /// Options that it was created with.
    options: Vec<(String, Value)>,
    /// Cached support for mapping host memory.
    pub(super) mapping: Mapping,
}

// SAFETY: the C API lets any thread use a client, several at once; it is destroyed once no handle
// to it is left.
unsafe impl Send for ClientHandle {}
// SAFETY: as above.
unsafe impl Sync for ClientHandle {}

impl ClientHandle {
    pub(super) fn plugin(&self) -> &PjrtPlugin {
        &self.client.plugin
    }

    #[inline]
    pub(super) fn table(&self) -> &Table {
        self.client.plugin.table()
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut PJRT_Client {
        self.client.raw.as_ptr()
    }
}

/// A client of a plug-in: its devices, and what lives on them. Destroyed when everything is dropped
/// that is of it.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<ClientHandle>,
}

/// Calls that are given the client alone.
macro_rules! of_client {
    ($table:expr, $raw:expr, $arguments:ident) => {{
        let raw = $raw;
        // SAFETY: the client is alive as long as somebody holds it.
        unsafe { $table.ask(|call: &mut $arguments| call.client = raw) }
    }};
    ($client:expr, $arguments:ident) => {
        of_client!($client.handle().table(), $client.handle().raw(), $arguments)
    };
}
pub(super) use of_client;

impl Client {
    fn create(plugin: &PjrtPlugin, options: &[(String, Value)]) -> Result<Self, PjrtError> {
        // Without these nothing that is begun could be waited for, or its failure seen.
        plugin.table().require::<PJRT_Event_Await_Args>()?;
        plugin.table().require::<PJRT_Error_GetCode_Args>()?;
        let named = options::named_values(options, plugin.minor())?;
        // SAFETY: the number of options is that of `options`, which also holds their pointees.
        let made = unsafe {
            plugin.table().ask(|call: &mut PJRT_Client_Create_Args| {
                call.create_options = named.as_ptr();
                call.num_options = named.len();
            })
        }?;
        let raw = pointer("PJRT_Client_Create", "a client", made.client)?;
        let client = RawClient { plugin: plugin.clone(), raw };
        let (table, raw) = (plugin.table(), raw.as_ptr());
        let name = of_client!(table, raw, PJRT_Client_PlatformName_Args)?;
        let (start, length) = (name.platform_name, name.platform_name_size);
        // SAFETY: the plug-in declares this length in bytes; they are the client's.
        let platform_name = unsafe { text("PJRT_Client_PlatformName", "its text", start, length) }?;
        let version = of_client!(table, raw, PJRT_Client_PlatformVersion_Args)?;
        let (start, length) = (version.platform_version, version.platform_version_size);
        let call = "PJRT_Client_PlatformVersion";
        // SAFETY: as above.
        let platform_version = unsafe { text(call, "its text", start, length) }?;
        let process_index = of_client!(table, raw, PJRT_Client_ProcessIndex_Args)?.process_index;
        let mapping = Mapping::default();
        let options = options.to_vec();
        let handle = ClientHandle {
            client,
            platform_name,
            platform_version,
            process_index,
            options,
            mapping,
        };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// Creates another client of the same plug-in with the same options: its devices have the same
    /// ids, and their work is done beside that of this client, where the plug-in allows several in
    /// a process.
    ///
    /// # Errors
    /// As [`PjrtPlugin::create_client`].
    pub fn create_another(&self) -> Result<Self, PjrtError> {
        Self::create(self.plugin(), &self.handle.options)
    }

    /// Returns the client that a device or an array is of.
    pub(super) fn of(handle: &Arc<ClientHandle>) -> Self {
        Self { handle: Arc::clone(handle) }
    }

    #[inline]
    pub(super) fn handle(&self) -> &Arc<ClientHandle> {
        &self.handle
    }

    /// Returns the plug-in that it is of.
    #[must_use]
    pub fn plugin(&self) -> &PjrtPlugin {
        self.handle.plugin()
    }

    /// Returns the version of the interface that its plug-in was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.handle.table().minor()
    }

    /// Returns the name of the platform as the plug-in gives it, such as `cpu`.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.handle.platform_name
    }

    /// Returns the platform's version, in the plug-in's words.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.handle.platform_version
    }

    /// Returns the index of this process among those of a distributed client.
    #[must_use]
    pub fn process_index(&self) -> i32 {
        self.handle.process_index
    }
}

impl PjrtPlugin {
    /// Creates a client: takes possession of devices.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for an option of a type that plug-ins end the process on;
    /// [`PjrtError::Status`] with the plug-in's words, such as that there is no device.
    pub fn create_client(&self, options: &[(String, Value)]) -> Result<Client, PjrtError> {
        Client::create(self, options)
    }
}

/// Two handles are the same client.
impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }
}

impl Eq for Client {}
