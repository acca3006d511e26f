//! What is known of a plug-in.

use crate::pjrt::{PluginVersion, Value};

/// What a plug-in says when it is loaded and asked; what it was not asked yet is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PluginReport {
    /// Its version, and what decides whether a framework fits.
    pub version: Option<PluginVersion>,
    /// How long it says that its table is, in bytes.
    pub struct_size: Option<usize>,
    /// Its extensions, in the order of its chain: their names, or numbers where they have none.
    pub extensions: Vec<String>,
    /// What it says of itself.
    pub attributes: Vec<(String, Value)>,
    /// What it calls its platform.
    pub platform: Option<String>,
    /// The platform's version, in its words.
    pub platform_version: Option<String>,
    /// How many devices its client has; 0 where it gave no client.
    pub devices: Option<usize>,
    /// How many of them this process can use.
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
    /// What is odd, or did not work.
    pub warnings: Vec<String>,
}

impl PluginReport {
    /// Whether nothing stands against it.
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
