//! Reports on plug-ins that are loaded and queried: table, attributes, devices.
//!
//! A plug-in may end the process at any step, so that what is known is handed over step by step.
//! This folder must never know of arrays, nor whether a framework fits.

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
