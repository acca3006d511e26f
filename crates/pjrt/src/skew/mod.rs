//! Compatibility of a framework and a plug-in of different days, from facts about both that are
//! known before anything is loaded.
//!
//! This folder must never know of a plug-in that runs: it compares versions.

mod fit;
mod framework;
mod gate;
mod generated;
mod plugin_version;
mod releases;
mod steps;
#[cfg(test)]
mod tests;

pub use fit::{Fit, Mismatch, SkewRule};
pub use framework::Framework;
pub use gate::Gate;
pub use plugin_version::{PluginVersion, SizeRule};
pub use steps::Step;
