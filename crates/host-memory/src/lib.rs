//! The reference StreamExecutor plug-in: devices whose memory is host memory.
//!
//! It exists so that code for devices runs everywhere, and so that a host of the C API has one
//! plug-in with every function implemented correctly. Its streams run on their own threads, so
//! operations that are asynchronous on hardware are asynchronous here.
//!
//! The crate exports no symbol. A shared library makes a plug-in of it with
//! `serdes_plugin::export!`; a program that embeds it calls [`init_plugin`] with its own status
//! functions, and uses the same table of C functions.
//!
//! This crate does not depend on its host.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]
#![allow(unsafe_code, reason = "device memory is raw memory")]

mod blocks;
mod device;
mod machine;
mod options;
#[cfg(feature = "pjrt")]
pub mod pjrt;
mod pool;

use std::sync::Arc;

use serdes_plugin::{
    Counters, Platform, Queued, Result, Settings, Status,
    abi::{SE_PlatformRegistrationParams, StatusFunctions, TF_Status},
};

pub use device::{DEVICE_KIND, HostDevice};
pub use machine::available_memory;
pub use options::{ENVIRONMENT_VARIABLE, OptionError, Options};
use pool::{Ledger, Pool};

/// The name of the platform when a shared library registers it, and always the type of its devices.
pub const NAME: &str = "SERDES_HOST";
/// The name of the platform when it is embedded, so that a process can have both.
pub const EMBEDDED_NAME: &str = "SERDES_HOST_EMBEDDED";

/// Devices over host memory.
pub struct HostMemory {
    name: &'static str,
    options: Options,
    counters: Arc<Counters>,
    /// The memory of each device, which outlives its handles, like that of hardware.
    pools: Vec<Arc<Pool>>,
}

impl HostMemory {
    /// Creates a platform with this name (see [`NAME`]).
    #[must_use]
    pub fn new(name: &'static str, options: Options) -> Self {
        // Devices without a configured size, and the pinned memory of all devices, share the memory
        // that the machine has left.
        let machine = Arc::new(Ledger::of_machine());
        let pools = (0..options.devices)
            .map(|_| Arc::new(Pool::new(options.memory, Arc::clone(&machine))))
            .collect();
        Self { name, options, counters: Arc::default(), pools }
    }

    /// Returns a platform with the options of the environment variable `SERDES_HOST_PLUGIN`, for a
    /// shared library.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they are invalid.
    pub fn from_environment() -> Result<Self> {
        let options = Options::from_environment()
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Self::new(NAME, options))
    }

    /// Returns the counters of the objects that the host creates and destroys.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }
}

impl Platform for HostMemory {
    type Device = Queued<HostDevice>;

    fn name(&self) -> &str {
        self.name
    }

    fn device_type(&self) -> &str {
        NAME
    }

    fn device_count(&self) -> Result<u32> {
        Ok(self.options.devices)
    }

    fn create_device(&self, ordinal: u32) -> Result<Self::Device> {
        let pool = usize::try_from(ordinal).ok().and_then(|index| self.pools.get(index));
        let pool =
            pool.ok_or_else(|| Status::not_found(format!("there is no device {ordinal}")))?;
        Ok(Queued::new(HostDevice::new(Arc::clone(pool))))
    }

    fn settings(&self) -> Settings {
        Settings {
            unified_memory: true,
            allocator: self.options.allocator,
            layout: self.options.layout,
            counters: Arc::clone(&self.counters),
        }
    }
}

/// Registers the plug-in with a host that embeds it: like `SE_InitPlugin`, with the host's status
/// functions, the options, and a place for the counters if the host wants to read them.
///
/// # Safety
/// As for `serdes_plugin::register`: `params` is NULL or valid parameters of the C API, `status` is
/// NULL or a live status on which `functions` act, and the host calls what it gets as the C API
/// says.
pub unsafe fn init_plugin(
    params: *mut SE_PlatformRegistrationParams,
    status: *mut TF_Status,
    functions: StatusFunctions,
    options: Options,
    counters: Option<&mut Arc<Counters>>,
) {
    let make = || {
        let platform = HostMemory::new(EMBEDDED_NAME, options);
        if let Some(counters) = counters {
            *counters = platform.counters();
        }
        Ok(platform)
    };
    // SAFETY: the caller's promise.
    unsafe { serdes_plugin::register(params, status, functions, make) };
}

#[cfg(test)]
mod tests;
