//! The server on the network: connections, calls, and the messages of their bodies.
//!
//! This part must never know what a request does.

mod call;
mod calls;
mod connection;
mod connections;
mod directory;
mod frames;
mod stream;
mod transfer;
mod transport;

pub(crate) use self::connections::Connections;
#[cfg(test)]
pub(crate) use self::connections::{Accept, is_final, is_of_peer};
