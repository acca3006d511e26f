//! The server on the network: connections, calls, and the messages of their bodies.
//!
//! Does not depend on what a request does.

mod accept;
mod call;
mod calls;
mod connection;
mod connections;
mod directory;
mod frames;
mod health;
mod keep;
mod page;
mod refusal;
mod small_transfers;
mod stream;
mod transfer;
mod transfer_request;
mod transport;

#[cfg(test)]
pub(crate) use self::accept::{Accept, is_final, is_of_peer};
pub(crate) use self::{connections::Connections, page::serve_page};
