//! Reports on plug-ins that are loaded and queried: table, attributes, devices.
//!
//! A plug-in may end the process at any step, so the results are passed on step by step. The module
//! does not depend on arrays or on the fit of frameworks.

mod examination;
mod plugin_report;
mod size_rule;
mod slots;

pub use examination::Examination;
pub use plugin_report::PluginReport;
#[cfg(feature = "conformance")]
pub(super) use {
    size_rule::LONGER,
    slots::{CallRecord, Slots},
};
