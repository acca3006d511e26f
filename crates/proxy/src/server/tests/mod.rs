//! The server as a whole: without a network, and over one.

mod access;
mod error_kinds;
mod keeping;
mod model;
mod network;
mod one_call;
mod operation;
pub(super) mod session;
mod small_transfers;
mod untrusted_clients;
mod untrusted_keeping;
