//! The host of PJRT plug-ins: devices, memories, arrays, and the calls that move them.
//!
//! `border` is where C is spoken; the files beside it give each kind of object an owner, so that a
//! handle is destroyed once and never used after. Whatever lives in a client holds the client.
//!
//! This folder must never know which frameworks exist, nor what a saved state looks like.

mod border;
mod buffer;
mod client;
mod element_type;
mod event;
mod host_array;
mod options;
mod plugin;

pub use self::{
    border::Extension,
    buffer::{Buffer, HostBufferSemantics, Target},
    client::{Client, Device, Memory},
    element_type::ElementType,
    event::Event,
    host_array::HostArray,
    options::Value,
    plugin::PjrtPlugin,
};
