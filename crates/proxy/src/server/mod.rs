//! The server: sessions of clients over the devices of a plug-in.
//!
//! From the ground up: `limits`, `budget`, `turns`, `launches` and `runs` say who may have how much,
//! and when; `access` checks tokens and certificates, and `peers` has the identities that they
//! prove; `arrays` has the devices and what lies on them; `context` is all of these together, and
//! knows no session; `programs` compiles programs and runs them. `state` keeps arrays by their
//! names. `sessions` have the handles of clients, `requests` say what each request does to them,
//! `registry` knows which sessions are open, `net` brings requests and host buffers. Nothing uses
//! what stands after it.

mod access;
mod arrays;
mod budget;
mod builder;
mod context;
mod deadline;
mod digest;
mod handles;
mod latency;
mod launches;
mod limits;
mod local;
mod metrics;
mod net;
mod peers;
mod priority;
mod programs;
mod promise;
mod registry;
mod requests;
mod runs;
mod scheduler;
mod serve;
mod sessions;
mod state;

#[cfg(test)]
mod tests;

pub use self::{
    access::Tokens,
    arrays::ServedDevices,
    builder::ServerBuilder,
    limits::Limits,
    local::LocalSession,
    metrics::Metrics,
    programs::{TrialCompiler, TrialFailure},
    serve::Server,
    state::StateHolder,
};
