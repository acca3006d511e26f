//! Queries a plug-in, step by step.

use std::path::Path;

use serdes_abi::pjrt::Minor;

use super::{plugin_report::PluginReport, size_rule::size_rule, slots::Slots};
use crate::{Client, Extension, PjrtError, PjrtPlugin, PluginVersion, SizeRule, Value};

/// A plug-in that is queried for a report: first its table, then its client. Each step may end the
/// process, so the caller should keep the results so far before the next.
#[derive(Debug)]
pub struct Examination {
    /// `None` if the plug-in was refused.
    plugin: Option<PjrtPlugin>,
    report: PluginReport,
}

impl Examination {
    /// Loads the plug-in at `path` into this process, and reads its table and its attributes.
    ///
    /// # Errors
    /// [`PjrtError::NotLoadable`], [`PjrtError::NotAPlugin`] and [`PjrtError::UnsupportedTarget`]
    /// for a file that cannot be loaded here. All other problems are in the report.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PjrtError> {
        // A plug-in may change the working directory.
        let path = std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_owned());
        let mut report = PluginReport::default();
        match PjrtPlugin::load(&path) {
            Ok(plugin) => {
                read_table(&path, &plugin, &mut report);
                Ok(Self { plugin: Some(plugin), report })
            }
            Err(
                error @ (PjrtError::NotLoadable { .. }
                | PjrtError::NotAPlugin { .. }
                | PjrtError::UnsupportedTarget { .. }),
            ) => Err(error),
            Err(error) => {
                report.version = version_of(&error).map(PluginVersion::new);
                report.refuse(error);
                Ok(Self { plugin: None, report })
            }
        }
    }

    /// Returns the report so far.
    #[must_use]
    pub fn report(&self) -> &PluginReport {
        &self.report
    }

    /// Creates a client with these options and queries its devices. If the plug-in creates no
    /// client, this is a warning with the plug-in's first error, since there may be no device here.
    /// Does nothing with a plug-in that was refused.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for options on which plug-ins end the process.
    pub fn ask_client(&mut self, options: &[(String, Value)]) -> Result<(), PjrtError> {
        let Some(plugin) = self.plugin.as_ref().filter(|_| self.report.accepted()) else {
            return Ok(());
        };
        let report = &mut self.report;
        match plugin.create_client(options) {
            Ok(client) => {
                if let Err(error) = describe(&client, report) {
                    report.refuse(error);
                }
            }
            Err(error @ PjrtError::InvalidArgument { .. }) => return Err(error),
            Err(error @ PjrtError::Status { .. }) => {
                report.without_client(format_args!("it gives no client: {error}"));
            }
            Err(error) => report.refuse(error),
        }
        Ok(())
    }

    /// Returns the final report after the examination timed out or its process ended; `why` is the
    /// reason.
    #[must_use]
    pub fn given_up(report: &PluginReport, why: impl ToString) -> PluginReport {
        let mut report = report.clone();
        report.without_client(format_args!("it gives no client: {}", why.to_string()));
        report
    }
}

/// Returns the version of a plug-in that was refused because of it.
fn version_of(error: &PjrtError) -> Option<Minor> {
    match error {
        PjrtError::TooOld { minor } => Some(*minor),
        _ => None,
    }
}

/// Adds the plug-in's table and its attributes to the report.
fn read_table(path: &Path, plugin: &PjrtPlugin, report: &mut PluginReport) {
    report.struct_size = Some(plugin.struct_size());
    report.extensions = plugin.extensions().iter().map(name).collect();
    report.attributes = plugin.attributes().to_vec();
    report.warnings = plugin.warnings().to_vec();
    let mut version = plugin.version();
    match Slots::of(path, plugin) {
        Ok(slots) => {
            report.missing_required = slots.missing_required();
            report.missing_optional = slots.missing_optional();
            // The plug-in's declaration about older sizes counts, unless it accepts only its own.
            if size_rule(&slots) == SizeRule::Equal {
                version = version.with_size_rule(SizeRule::Equal);
            }
            version = version.without(report.missing_required.iter().copied());
            version = version.without(report.missing_optional.iter().copied());
        }
        Err(error) => report.refuse(error),
    }
    report.version = Some(version);
    let attributes = "PJRT_Plugin_Attributes";
    if !plugin.answers_attributes() && !report.missing_optional.contains(&attributes) {
        report.lacks(attributes, "says nothing of itself");
    } else if report.attributes.is_empty() {
        report.warn("it says nothing of itself: its list of attributes is empty");
    }
    for function in report.missing_required.clone() {
        report.refuse(format_args!(
            "it does not have {function}, without which no host can use it; use a newer plug-in"
        ));
    }
}

fn name(extension: &Extension) -> String {
    extension.name.map_or_else(|| extension.number.to_string(), str::to_owned)
}

/// Adds the client and its devices to the report.
fn describe(client: &Client, report: &mut PluginReport) -> Result<(), PjrtError> {
    report.platform = Some(client.platform_name().to_owned());
    report.platform_version = Some(client.platform_version().to_owned());
    report.devices = Some(client.devices()?.len());
    let devices = client.addressable_devices()?;
    report.addressable_devices = Some(devices.len());
    let Some(device) = devices.first() else {
        report.warn("its client has no device that this process can use");
        return Ok(());
    };
    let memories = device.memories()?;
    if memories.is_empty() {
        report.lacks("PJRT_Device_AddressableMemories", "does not tell memories apart");
    }
    if device.default_memory()?.is_none() {
        report.lacks("PJRT_Device_DefaultMemory", "has no memory in which arrays are by default");
    }
    for memory in memories {
        report.memories.push(memory.kind()?);
    }
    Ok(())
}
