//! A host of StreamExecutor plug-ins: loads one or uses the embedded one, and gives access to its
//! devices, memory, streams, events and timers.
//!
//! ```
//! use serdes_stream_executor::Plugin;
//!
//! let plugin = Plugin::host(); // or Plugin::load("libmy_device.so")?
//! let device = plugin.device(0)?;
//! let memory = device.upload(b"some bytes")?;
//! let stream = device.create_stream()?;
//! let host = device.allocate_host(5)?;
//! let transfer = stream.copy_to_host(&memory, 5, 5, host)?;
//! // The host goes on meanwhile.
//! assert_eq!(&transfer.wait()?[..], b"bytes");
//! # Ok::<(), serdes_stream_executor::Error>(())
//! ```
//!
//! # Layers
//!
//! * `serdes-abi` has the position of every field of every published layout.
//! * `border` makes the calls of the C API: it has the structs that a plug-in fills, in memory that
//!   the host owns; the functions of any layout, in the fields of the newest one; and the calls on
//!   a device, each with a status.
//! * `load` opens a library and lets its plug-in register: the filled structs are checked like in
//!   TensorFlow, and their layout is detected.
//! * `device` owns the created objects: [`Device`], [`Stream`], [`Event`], [`Timer`],
//!   [`DeviceMemory`] and [`HostMemory`] hold the objects that they depend on, so that nothing can
//!   be used after it was destroyed, or destroyed while a device is using it.
//! * `best_fit` is an allocator over a device, for platforms that ask for one.
//! * With the feature `conformance`, a suite that checks the requirements of the C API; with
//!   `abi-diff`, the version bump that a change of a layout requires.
//!
//! The embedded plug-in uses the same tables as a library, so there is only one code path.
//!
//! # What is trusted
//!
//! A plug-in is native code in this process. Its results are checked, and a missing function is an
//! error instead of a crash; but no check can prevent native code from writing to the wrong memory.
//! Open only plug-ins that you would run. [`elf::inspect`] inspects one without running it.
//!
//! Pointers that a plug-in gets are valid during the call, including the status: a plug-in that
//! keeps a pointer and writes through it later corrupts other memory.
//!
//! A plug-in that does not return is waited for; [`with_time_limit`] stops waiting and reports the
//! call in progress.
//!
//! This crate does not depend on serialization, or on other plug-in interfaces.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Plug-ins must not make the crate panic; each exception states its reason.
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
#![allow(unsafe_code, reason = "plug-ins are C: calls, pointers and memory of theirs")]

mod best_fit;
mod border;
#[cfg(feature = "conformance")]
pub mod conformance;
mod device;
mod error;
mod load;
mod plugin;
mod plugin_inner;
mod plugin_registry;
mod report;
#[cfg(feature = "unstable-bench")]
#[doc(hidden)]
pub mod unguarded;

#[cfg(feature = "abi-diff")]
pub use serdes_abi::diff as abi_diff;

pub use best_fit::{BfcAllocator, BfcOptions};
pub use border::with_time_limit;
pub use device::{
    AllocatorStats, Device, DeviceDescription, DeviceMemory, Event, EventStatus, HostCallback,
    HostMemory, MemoryUsage, Stream, Timer, Transfer, UnifiedMemory,
};
pub use error::{Error, StatusError};
pub use load::{LayoutChoice, TensorFlowFit, TensorFlowRelease, UnknownTensorFlowRelease, elf};
pub use plugin::{Platform, Plugin, PluginOptions};
pub use plugin_registry::{PluginRegistry, SkippedLibrary};
pub use report::{Reason, Report};
