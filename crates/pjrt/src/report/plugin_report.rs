//! The report on a plug-in.

use crate::{PluginVersion, Value};

/// The facts about a loaded plug-in; those that have not been queried yet are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PluginReport {
    /// The version, and the other facts that decide if a framework fits.
    pub version: Option<PluginVersion>,
    /// The size that the plug-in declares for its table, in bytes.
    pub struct_size: Option<usize>,
    /// The extensions, in the order of the chain: their names, or numbers without a name.
    pub extensions: Vec<String>,
    /// The attributes of the plug-in.
    pub attributes: Vec<(String, Value)>,
    /// The platform's name from the plug-in.
    pub platform: Option<String>,
    /// The platform's version, as text from the plug-in.
    pub platform_version: Option<String>,
    /// The number of devices of its client; 0 if it created no client.
    pub devices: Option<usize>,
    /// The number of devices that this process can use.
    pub addressable_devices: Option<usize>,
    /// The kinds of memory of its first device.
    pub memories: Vec<String>,
    /// Missing functions that every host needs.
    pub missing_required: Vec<&'static str>,
    /// Other missing functions that tables of this version have.
    pub missing_optional: Vec<&'static str>,
    /// Queried functions that exist but are not implemented.
    pub unimplemented: Vec<&'static str>,
    /// The reasons for which the plug-in is refused.
    pub reasons: Vec<String>,
    /// Irregularities, and steps that failed.
    pub warnings: Vec<String>,
}

impl PluginReport {
    /// Returns true if there is no reason against the plug-in.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(super) fn refuse(&mut self, reason: impl ToString) {
        self.reasons.push(reason.to_string());
    }

    pub(super) fn warn(&mut self, warning: impl ToString) {
        self.warnings.push(warning.to_string());
    }

    /// Records a function that is not implemented, and the consequence.
    pub(super) fn lacks(&mut self, function: &'static str, meaning: &str) {
        self.unimplemented.push(function);
        self.warn(format_args!("{function} is not implemented: it {meaning}"));
        self.version = self.version.take().map(|version| version.without([function]));
    }

    /// Records that the plug-in created no client.
    pub(super) fn without_client(&mut self, warning: impl ToString) {
        self.devices = Some(0);
        self.addressable_devices = Some(0);
        self.warn(warning);
    }
}
