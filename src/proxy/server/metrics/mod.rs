//! What a server counts, and how it tells it.
//!
//! `gauges` are what it holds and what has happened since its start; `series` are the requests of
//! each kind; `page` writes both for Prometheus. This part must never know a session, a request or
//! a connection: whoever has something to count brings it here.

mod gauges;
mod page;
mod process;
mod series;

pub use self::gauges::Metrics;
pub(crate) use self::{
    gauges::{Counted, Gauges},
    page::{CONTENT_TYPE, Server, page},
};
