//! Write a StreamExecutor plug-in in Rust, and load it in TensorFlow or in any other host of that C
//! API; or a PJRT plug-in, and load it in JAX.
//!
//! A device that only holds memory implements [`MemoryDevice`], which is safe, and gets streams,
//! events and timers from [`Queued`]; [`SingleDevice`] makes a platform of one device. For several
//! devices, or devices that come and go, implement [`Platform`]. Hardware with its own streams
//! implements [`Device`], which has the whole C API as Rust methods. [`export!`] defines the
//! `SE_InitPlugin` of a cdylib.
//!
//! ```
//! use serdes_plugin::{
//!     Allocation, AllocationRequest, DeviceMemory, HostSource, HostTarget, MemoryDevice, MemoryUsage, Result, SingleDevice,
//! };
//!
//! /// A device of a few bytes, to show the shape; `examples/template-plugin` is a whole one.
//! struct Tiny(std::sync::Mutex<[u8; 64]>);
//!
//! impl MemoryDevice for Tiny {
//!     fn allocate(&self, request: AllocationRequest) -> Option<Allocation> {
//!         (request.size <= 64).then(|| Allocation::at(0x1000, request.size))
//!     }
//!     fn deallocate(&self, _memory: DeviceMemory) {}
//!     fn read(&self, source: &DeviceMemory, target: &mut HostTarget) -> Result<()> {
//!         let start = (source.address() - 0x1000) as usize;
//!         let bytes = self.0.lock().unwrap();
//!         target.write(&bytes[start..start + target.len()])
//!     }
//!     fn write(&self, target: &DeviceMemory, source: &HostSource) -> Result<()> {
//!         let start = (target.address() - 0x1000) as usize;
//!         let mut bytes = self.0.lock().unwrap();
//!         source.read(&mut bytes[start..start + source.len()])
//!     }
//!     fn memory_usage(&self) -> Option<MemoryUsage> {
//!         Some(MemoryUsage { free: 64, total: 64 })
//!     }
//! }
//!
//! # // A test has no TF_* functions to link with, and so exports nothing.
//! # macro_rules! export { ($make:expr) => { const _: fn() -> Result<SingleDevice<Tiny>> = $make; } }
//! # /*
//! serdes_plugin::export!(|| Ok(SingleDevice::new("TINY", || Tiny(std::sync::Mutex::new([0; 64])))));
//! # */
//! # export!(|| Ok(SingleDevice::new("TINY", || Tiny(std::sync::Mutex::new([0; 64])))));
//! ```
//!
//! # What the SDK does for an author
//!
//! * A panic becomes a status of the call, or of the stream that ran the code; none crosses into
//!   the host. (With `panic = "abort"` there is nothing to catch.)
//! * A host whose MAJOR number differs is refused at registration, with a status that explains it.
//! * Structs are filled as far as the host's `struct_size` allows, in the layout that its sizes
//!   indicate: that of a host since TensorFlow 2.4, or of RFC #257. See [`Settings::layout`].
//! * The status functions of the host come in a table at registration. This crate neither defines
//!   nor imports a `TF_*` symbol; only [`export!`] does, in the cdylib that uses it.
//!
//! # PJRT
//!
//! With the feature `pjrt`, a plug-in for frameworks of that C API, such as JAX, is written in the
//! same way: see the module of that name.
//!
//! This crate does not depend on the internals of a host, or on serialization.

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
#![allow(
    unsafe_code,
    reason = "the C API hands out raw pointers; every other file would need them"
)]

mod border;
mod callback;
mod counters;
mod device;
mod memory;
mod memory_device;
mod panic;
#[cfg(feature = "pjrt")]
pub mod pjrt;
mod queue;
mod queued;
mod status;
mod sync;
#[cfg(test)]
mod testing;

pub use serdes_abi as abi;

pub use border::register;
pub use callback::HostCallback;
pub use counters::{Counter, Counters};
pub use device::{Allocator, Description, Device, EventState, Platform, Settings};
pub use memory::{
    Allocation, AllocationRequest, AllocatorStats, DeviceMemory, HostSource, HostTarget,
    MemoryUsage,
};
pub use memory_device::MemoryDevice;
pub use queued::{Queued, QueuedEvent, QueuedStream, QueuedTimer, SingleDevice};
pub use status::{Result, Status};

/// Turns the current crate, a cdylib, into a plug-in: defines `SE_InitPlugin` and imports the
/// status functions of the host.
///
/// The argument creates the platform: a closure or function without arguments that returns a
/// [`Result`] of a [`Platform`]. It is called once, when a host registers the plug-in.
///
/// Nothing is exported or imported when the crate is built for its own unit tests, which have no
/// host to link with.
#[macro_export]
macro_rules! export {
    ($make:expr $(,)?) => {
        #[cfg(not(test))]
        #[allow(unsafe_code, reason = "a plug-in's entry is a C function")]
        const _: () = {
            use $crate::abi::{SE_PlatformRegistrationParams, StatusFunctions, TF_Code, TF_Status};

            unsafe extern "C" {
                fn TF_NewStatus() -> *mut TF_Status;
                fn TF_DeleteStatus(status: *mut TF_Status);
                fn TF_SetStatus(
                    status: *mut TF_Status,
                    code: TF_Code,
                    message: *const ::core::ffi::c_char,
                );
                fn TF_GetCode(status: *const TF_Status) -> TF_Code;
                fn TF_Message(status: *const TF_Status) -> *const ::core::ffi::c_char;
            }

            /// # Safety
            /// Called by a host of the StreamExecutor C API, with its parameters and a status.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn SE_InitPlugin(
                params: *mut SE_PlatformRegistrationParams,
                status: *mut TF_Status,
            ) {
                let functions = StatusFunctions {
                    new_status: TF_NewStatus,
                    delete_status: TF_DeleteStatus,
                    set_status: TF_SetStatus,
                    get_code: TF_GetCode,
                    message: TF_Message,
                };
                // SAFETY: the host follows the C API, and its functions are those that this library
                // was linked with.
                unsafe { $crate::register(params, status, functions, $make) }
            }
        };

        #[cfg(test)]
        const _: () = {
            // Uses the platform, although there is no host.
            #[allow(dead_code, reason = "only compiled")]
            fn make() {
                let _ = ($make)();
            }
        };
    };
}
