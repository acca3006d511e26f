//! Hosting StreamExecutor plug-ins: loading one or using the embedded one, and its devices, memory,
//! streams, events and timers.
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
//! * `serdes-abi` says where every field of every published layout is.
//! * `border` is where the C API is spoken: the structs that a plug-in fills in, in memory that the
//!   host owns; its functions, those of any layout in the places of the newest one; its calls on a
//!   device, each with a status.
//! * `load` opens a library and has the plug-in in it register: what it filled in is checked as
//!   TensorFlow does, and its layout told.
//! * `device` owns what is made: [`Device`], [`Stream`], [`Event`], [`Timer`], [`DeviceMemory`] and
//!   [`HostMemory`] hold what they are made of, so that nothing can be used after it was destroyed,
//!   or destroyed while a device is using it.
//! * `best_fit` is an allocator over a device, for platforms that ask for one.
//! * With the feature `conformance`, a suite that tries what the C API demands; with `abi-diff`,
//!   what a change of a layout demands of its version.
//!
//! The embedded plug-in goes through the same tables as a library: there is one path.
//!
//! # What is trusted
//!
//! A plug-in is native code in this process. What it says is checked, and what it leaves out is an
//! error instead of a crash; but no check can hold back code that writes where it should not. Open
//! only plug-ins that you would run. [`elf::inspect`] looks at one without running it.
//!
//! What a plug-in gets is good for the length of the call, the status included: one that keeps the
//! pointer and writes through it later writes into memory that is something else by then.
//!
//! A plug-in that does not return is waited for; [`with_time_limit`] stops waiting and says which
//! call it was.
//!
//! This crate must never know of serialization, nor of another interface of plug-ins.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No plug-in makes the crate panic: what could is an exception with its reason.
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
