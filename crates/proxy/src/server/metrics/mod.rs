//! Metrics of a server, and their page.
//!
//! `gauges` has the resources in use and counts events since the start; `series` has the requests
//! of each kind; `page` writes both for Prometheus. Does not depend on sessions, requests or
//! connections, which report their counts here.

mod gauges;
mod page;
mod process;
mod series;

pub use self::gauges::Metrics;
pub(crate) use self::{
    gauges::{Counted, Gauges},
    page::{CONTENT_TYPE, Server, page},
};
