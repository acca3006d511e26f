//! Reports on registrations, as data.

use std::fmt;

use serdes_abi::Layout;

/// One reason for which a plug-in is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The struct of the C API, or the function that was called.
    pub structure: &'static str,
    /// The field; empty if the reason is about a call.
    pub field: String,
    /// The value or state that was found.
    pub found: String,
    /// The expected value or state.
    pub expected: String,
    /// Remedy for the user.
    pub remedy: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.field.is_empty() { "" } else { "." };
        write!(
            formatter,
            "{}{dot}{}: found {}, expected {}; {}",
            self.structure, self.field, self.found, self.expected, self.remedy
        )
    }
}

/// The facts about a plug-in's registration, and the reasons against it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The layout that the plug-in was built with, if it could be detected.
    pub layout: Option<&'static str>,
    /// The version that the plug-in wrote into the registration parameters: MAJOR, MINOR, PATCH.
    pub version: Option<[i32; 3]>,
    /// Name of the platform.
    pub platform: Option<String>,
    /// Type of its devices.
    pub device_type: Option<String>,
    /// Number of devices.
    pub devices: Option<usize>,
    /// The size that each struct declares, in bytes, in the order in which the plug-in filled them.
    pub struct_sizes: Vec<(&'static str, usize)>,
    /// Missing functions that are required.
    pub missing_required: Vec<&'static str>,
    /// Missing functions without which a feature is not supported.
    pub missing_optional: Vec<&'static str>,
    /// The reasons for which the plug-in is refused; empty if it is accepted.
    pub reasons: Vec<Reason>,
    /// True if it is refused because its layout cannot be detected, so that it may be accepted
    /// under an explicit layout.
    pub layout_may_be_named: bool,
    /// Irregularities that are accepted.
    pub warnings: Vec<String>,
}

impl Report {
    /// Returns true if the plug-in was accepted.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns all reasons in one line.
    pub(crate) fn reasons_line(&self) -> String {
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    }

    pub(crate) fn refuse(
        &mut self,
        structure: &'static str,
        field: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.reasons.push(Reason {
            structure,
            field: field.into(),
            found: found.into(),
            expected: expected.into(),
            remedy: remedy.into(),
        });
    }

    pub(crate) fn set_layout(&mut self, layout: &'static Layout) {
        self.layout = Some(layout.name);
    }
}
