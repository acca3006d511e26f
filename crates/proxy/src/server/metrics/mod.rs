//! Metrics of a server, and their page.
//!
//! `gauges` has the resources that it holds and its events since its start; `series` are the
//! requests of each kind; `page` writes both for Prometheus. This part must never know a session, a
//! request or a connection: other parts report their counts here.

mod gauges;
mod page;
mod process;
mod series;

pub use self::gauges::Metrics;
pub(crate) use self::{
    gauges::{Counted, Gauges},
    page::{CONTENT_TYPE, Server, page},
};
