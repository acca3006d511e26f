//! The server: sessions of clients over the devices of a plug-in.
//!
//! From the bottom up: `limits`, `budget`, `turns`, `launches` and `runs` define how much each
//! client may use, and when; `access` checks tokens and certificates, and `peers` has the
//! identities that they prove; `arrays` has the devices and the arrays on them; `context` combines
//! all of these and does not depend on sessions; `programs` compiles programs and runs them.
//! `state` stores arrays by name. `sessions` have the handles of clients, `requests` implement each
//! request, `registry` has the open sessions, `net` receives requests and host buffers. No module
//! depends on a later one.

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
