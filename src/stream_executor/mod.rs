//! Hosting StreamExecutor plug-ins: loading one or using the embedded one, and its devices, memory, streams, events and timers.
//!
//! ```
//! use serdes::stream_executor::Plugin;
//!
//! let plugin = Plugin::host(); // or Plugin::load("libmy_device.so")?
//! let device = plugin.device(0)?;
//! let memory = device.upload(b"some bytes")?;
//! let stream = device.create_stream()?;
//! let host = device.allocate_host(5)?;
//! let transfer = stream.copy_to_host(&memory, 5, 5, host)?;
//! // The host goes on meanwhile.
//! assert_eq!(&transfer.wait()?[..], b"bytes");
//! # Ok::<(), serdes::stream_executor::Error>(())
//! ```
//!
//! # Layers
//!
//! * `serdes-abi` says where every field of every published layout is.
//! * `registration` has the plug-in fill in its structs, in blocks of memory that the host owns, and checks them as TensorFlow does;
//!   `detect` tells the layout; `table` moves the functions of any layout into the places of the newest one.
//! * `raw` has one function a callback: is it there, which call is in progress, what does the status say.
//! * [`Plugin`], [`Device`], [`Stream`], [`Event`], [`Timer`], [`DeviceMemory`] and [`HostMemory`] own what they are made of, so that nothing
//!   can be used after it was destroyed, or destroyed while a device is using it.
//!
//! The embedded plug-in goes through the same tables as a library: there is one path.
//!
//! # What is trusted
//!
//! A plug-in is native code in this process. What it says is checked, and what it leaves out is an error instead of a crash; but no check can
//! hold back code that writes where it should not. Open only plug-ins that you would run. [`elf::inspect`] looks at one without running it.
//!
//! What a plug-in gets is good for the length of the call, the status included: one that keeps the pointer and writes through it later writes
//! into memory that is something else by then.
//!
//! A plug-in that does not return is waited for; [`with_time_limit`] stops waiting and says which call it was.
//!
//! This room must never know of serialization.

#![allow(unsafe_code, reason = "plug-ins are C: calls, pointers and memory of theirs")]

pub mod abi_diff;
mod allocation;
mod bfc;
mod block;
mod call;
pub mod conformance;
mod detect;
mod device;
#[doc(hidden)]
pub mod direct;
pub mod elf;
mod error;
mod event;
mod host_callback;
mod library;
mod live;
mod memory;
mod plugin;
mod raw;
mod registration;
mod registry;
mod report;
mod requirements;
mod status;
mod status_shim;
mod stream;
mod table;
mod timer;
mod transfer;

pub use bfc::{BfcAllocator, BfcOptions};
pub use call::with_time_limit;
pub use detect::LayoutChoice;
pub use device::{AllocatorStats, Device, DeviceDescription, MemoryUsage};
pub use error::{Error, StatusError};
pub use event::{Event, EventStatus};
pub use host_callback::HostCallback;
pub use memory::{DeviceMemory, HostMemory, UnifiedMemory};
pub use plugin::{Platform, Plugin, PluginOptions};
pub use registry::{PluginRegistry, SkippedLibrary};
pub use report::{Reason, Report};
pub use stream::Stream;
pub use timer::Timer;
pub use transfer::Transfer;
