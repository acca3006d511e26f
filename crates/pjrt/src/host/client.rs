//! A client, which owns the devices of a plug-in.

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

/// A client that the plug-in returned.
#[derive(Debug)]
struct RawClient {
    plugin: PjrtPlugin,
    raw: NonNull<PJRT_Client>,
}

impl Drop for RawClient {
    fn drop(&mut self) {
        let (table, raw) = (self.plugin.table(), self.raw.as_ptr());
        // SAFETY: it is alive, and all objects inside it held it and are gone. An error has no
        // consequence.
        let _ = unsafe { table.ask(|call: &mut PJRT_Client_Destroy_Args| call.client = raw) };
    }
}

/// Caches if a client maps host memory. Queried once, because the result does not change for a
/// plug-in that cannot do it.
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

/// The handle of a client, with its plug-in. Every object inside the client holds it.
#[derive(Debug)]
pub(super) struct ClientHandle {
    client: RawClient,
    platform_name: String,
    platform_version: String,
    process_index: i32,
    /// The options that it was created with.
    options: Vec<(String, Value)>,
    /// The cached support for mapping host memory.
    pub(super) mapping: Mapping,
}

// SAFETY: the C API lets any thread use a client, several at once; it is destroyed once no handle
// is left.
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

/// A client of a plug-in: its devices and the objects on them. Destroyed when all handles to it and
/// to its objects are dropped.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<ClientHandle>,
}

/// Makes a call whose only input is the client.
macro_rules! of_client {
    ($table:expr, $raw:expr, $arguments:ident) => {{
        let raw = $raw;
        // SAFETY: the client is alive as long as a handle exists.
        unsafe { $table.ask(|call: &mut $arguments| call.client = raw) }
    }};
    ($client:expr, $arguments:ident) => {
        of_client!($client.handle().table(), $client.handle().raw(), $arguments)
    };
}
pub(super) use of_client;

impl Client {
    fn create(plugin: &PjrtPlugin, options: &[(String, Value)]) -> Result<Self, PjrtError> {
        // Without this function, no asynchronous work could be waited for, and no failure seen.
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
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the client.
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

    /// Creates another client of the same plug-in with the same options. Its devices have the same
    /// ids, and it works in parallel to this client, if the plug-in allows several in a process.
    ///
    /// # Errors
    /// As [`PjrtPlugin::create_client`].
    pub fn create_another(&self) -> Result<Self, PjrtError> {
        Self::create(self.plugin(), &self.handle.options)
    }

    /// Returns the client that owns a device or an array.
    pub(super) fn of(handle: &Arc<ClientHandle>) -> Self {
        Self { handle: Arc::clone(handle) }
    }

    #[inline]
    pub(super) fn handle(&self) -> &Arc<ClientHandle> {
        &self.handle
    }

    /// Returns the plug-in of the client.
    #[must_use]
    pub fn plugin(&self) -> &PjrtPlugin {
        self.handle.plugin()
    }

    /// Returns the version of the interface that the plug-in was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.handle.table().minor()
    }

    /// Returns the platform's name from the plug-in, such as `cpu`.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.handle.platform_name
    }

    /// Returns the platform's version, as text from the plug-in.
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
    /// Creates a client, which reserves the devices.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for an option of a type on which plug-ins end the process;
    /// [`PjrtError::Status`] from the plug-in, for example if there is no device.
    pub fn create_client(&self, options: &[(String, Value)]) -> Result<Client, PjrtError> {
        Client::create(self, options)
    }
}

/// Compares handles: two are equal if they refer to the same client.
impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }
}

impl Eq for Client {}
