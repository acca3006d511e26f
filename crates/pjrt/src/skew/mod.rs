//! The compatibility of a framework and a plug-in of different days, from facts that are known
//! before anything is loaded.
//!
//! The module compares versions. It does not depend on running plug-ins.

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
