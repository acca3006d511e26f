//! Tests of the whole server, without and with a network.

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
