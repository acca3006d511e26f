//! Sessions: one client's handles, host buffers, permits and negotiated versions.
//!
//! Does not depend on requests or how they arrive.

mod host_buffer;
mod host_buffers;
mod live_names;
mod quotas;
mod session;
mod table;

pub(crate) use self::{
    host_buffer::{Held, HostBuffer, HostBufferBuilder, HostBufferReader, wrong_size},
    host_buffers::{Arrival, Filling, HostBuffers, Incoming, Piece},
    session::{Direction, Session},
    table::{Entry, Table, short},
};
