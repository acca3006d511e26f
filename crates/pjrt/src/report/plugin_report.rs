//! The report on a plug-in.

use crate::{PluginVersion, Value};

/// Answers of a loaded plug-in; those that it was not asked for yet are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PluginReport {
    /// Its version, and what decides whether a framework fits.
    pub version: Option<PluginVersion>,
    /// Size that it declares for its table, in bytes.
    pub struct_size: Option<usize>,
    /// Its extensions, in the order of its chain: their names, or numbers where they have none.
    pub extensions: Vec<String>,
    /// Attributes of the plug-in.
    pub attributes: Vec<(String, Value)>,
    /// Name of the platform as the plug-in gives it.
    pub platform: Option<String>,
    /// The platform's version, in its words.
    pub platform_version: Option<String>,
    /// Number of devices of its client; 0 if it created no client.
    pub devices: Option<usize>,
    /// Number of devices that this process can use.
    pub addressable_devices: Option<usize>,
    /// The kinds of memory of its first device.
    pub memories: Vec<String>,
    /// Functions that no host can do without and that it does not have.
    pub missing_required: Vec<&'static str>,
    /// Other functions that tables of its version have and its own has not.
    pub missing_optional: Vec<&'static str>,
    /// Functions that are there and not implemented, of those that it was asked.
    pub unimplemented: Vec<&'static str>,
    /// Why it is refused.
    pub reasons: Vec<String>,
    /// Oddities, and steps that failed.
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

    /// A function that is not implemented, and what that means.
    pub(super) fn lacks(&mut self, function: &'static str, meaning: &str) {
        self.unimplemented.push(function);
        self.warn(format_args!("{function} is not implemented: it {meaning}"));
        self.version = self.version.take().map(|version| version.without([function]));
    }

    /// It gave no client.
    pub(super) fn without_client(&mut self, warning: impl ToString) {
        self.devices = Some(0);
        self.addressable_devices = Some(0);
        self.warn(warning);
    }
}
