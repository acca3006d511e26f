//! Write a PJRT plug-in in Rust, and load it in JAX or in any other framework of that C API.
//!
//! A plug-in implements five traits, all of them safe: [`Plugin`] creates a [`Client`], which has
//! [`Device`]s, which have [`Memory`], which holds [`Buffer`]s of bytes.
//! [`export_pjrt!`](crate::export_pjrt) defines the `GetPjrtApi` of a cdylib.
//!
//! ```
//! use std::sync::Mutex;
//!
//! use serdes_plugin::{HostSource, HostTarget, Result, pjrt};
//!
//! /// A plug-in with one device, whose memory is vectors; `examples/template-pjrt-plugin` is a
//! /// whole one.
//! struct Tiny;
//! struct TinyClient;
//! struct TinyDevice;
//! struct TinyMemory;
//! struct TinyBuffer(Mutex<Vec<u8>>);
//!
//! impl pjrt::Plugin for Tiny {
//!     type Client = TinyClient;
//!     fn create_client(options: &pjrt::Options) -> Result<TinyClient> {
//!         options.only(&[])?;
//!         Ok(TinyClient)
//!     }
//! }
//!
//! impl pjrt::Client for TinyClient {
//!     type Device = TinyDevice;
//!     fn platform_name(&self) -> &str { "tiny" }
//!     fn platform_version(&self) -> &str { "1" }
//!     fn devices(&self) -> Result<Vec<TinyDevice>> { Ok(vec![TinyDevice]) }
//! }
//!
//! impl pjrt::Device for TinyDevice {
//!     type Memory = TinyMemory;
//!     fn kind(&self) -> &str { "tiny" }
//!     fn memories(&self) -> Result<Vec<TinyMemory>> { Ok(vec![TinyMemory]) }
//! }
//!
//! impl pjrt::Memory for TinyMemory {
//!     type Buffer = TinyBuffer;
//!     fn kind(&self) -> &str { "device" }
//!     fn allocate(&self, size: u64) -> Result<TinyBuffer> {
//!         Ok(TinyBuffer(Mutex::new(vec![0; size as usize])))
//!     }
//! }
//!
//! impl pjrt::Buffer for TinyBuffer {
//!     fn write(&self, offset: u64, source: &HostSource) -> Result<()> {
//!         let start = offset as usize;
//!         source.read(&mut self.0.lock().unwrap()[start..start + source.len()])
//!     }
//!     fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()> {
//!         let start = offset as usize;
//!         target.write(&self.0.lock().unwrap()[start..start + target.len()])
//!     }
//! }
//!
//! serdes_plugin::export_pjrt!(Tiny);
//! # fn main() {}
//! ```
//!
//! # What the SDK does for an author
//!
//! * Copies are asynchronous: each device has two threads of the SDK, one for copies to it and one
//!   for copies from it, and events that framework and plug-in wait for.
//! * Element types, strides and layouts: a buffer is bytes, in the order of the dimensions, with
//!   elements below eight bits packed. The SDK converts host memory to this order and back.
//! * Transfers in pieces, copies of raw bytes in parts, copies between devices and memories, and
//!   deletion of arrays while their work is in progress.
//! * Frameworks of other days: arguments as short as those of frameworks since 0.29 are accepted;
//!   nothing is read or written beyond the arguments of a framework.
//! * Programs: [`Client::compile`] compiles a framework's program into an [`Executable`]; the SDK
//!   checks arguments, allocates results, and runs it when the arguments are written.
//! * Every function of the table exists. Those that a plug-in does not support, such as programs
//!   with the default [`Client::compile`], return `UNIMPLEMENTED` with an explanation.
//! * A panic becomes an error of the call, or of the event of the work; none crosses into the
//!   framework. (With `panic = "abort"` there is nothing to catch.)
//!
//! The module does not depend on the internals of a framework, or on serialization.

mod array;
mod border;
mod chunks;
mod client;
mod compile_options;
mod device;
mod event;
mod export;
mod host_array;
mod loaded;
mod program;
mod shape;
mod transfers;
mod user_data;
mod value;

pub use border::ApiTable;
pub use compile_options::CompileOptions;
pub use device::{
    BoxedExecutable, Buffer, BufferOf, Client, DEFAULT_MINOR, Device, Memory, NEWEST_MINOR, Plugin,
};
pub use program::{Executable, ExecutableStats, Launch, Program};
pub use serdes_abi::pjrt::{ElementType, Minor};
pub use shape::Shape;
pub use value::{Options, Value};

use event::Event;
