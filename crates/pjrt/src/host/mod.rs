//! The host of PJRT plug-ins: devices, memories, arrays, and the calls that move them.
//!
//! The module `border` makes the calls of the C API; the modules beside it give each kind of object
//! an owner, so that a handle is destroyed once and never used afterwards. Every object inside a
//! client holds the client.
//!
//! The module does not depend on frameworks or on the format of saved states.

pub(crate) mod border;
mod buffer;
mod client;
mod client_devices;
mod client_object;
mod custom_calls;
mod deferred_read;
mod device;
mod drop_thread;
mod element_type;
mod event;
mod host_array;
mod host_memory;
mod incoming;
mod layout;
mod layout_conversion;
mod manager;
mod options;
mod origin;
mod plugin;
mod program;
mod put;
#[cfg(feature = "conformance")]
mod raw;
mod read;
mod statistics;
mod target;
mod topology;
mod transfer;

pub use self::{
    border::{ErrorPayload, Extension},
    buffer::{Buffer, ExternalReference},
    client::Client,
    deferred_read::DeferredRead,
    device::{Device, DeviceDescription, Memory},
    event::Event,
    host_array::HostArray,
    host_memory::HostMemory,
    incoming::IncomingBuffer,
    layout::MemoryLayout,
    options::Value,
    plugin::PjrtPlugin,
    program::{
        Argument, CompileOptions, Executable, ExecuteOptions, Execution, HostStream, HostTransfers,
        LoadedExecutable, OptimizedProgram, Program, ProgramFormat, ProgramMemory, SentPiece,
    },
    put::HostBufferSemantics,
    statistics::MemoryStatistics,
    target::Target,
    topology::Topology,
    transfer::Transfer,
};
