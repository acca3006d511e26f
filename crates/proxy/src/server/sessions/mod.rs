//! Sessions: one client's handles and host buffers, what it holds, and what was agreed with it.
//!
//! This part must never know what a request is, nor how it comes here.

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
