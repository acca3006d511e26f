//! Reads files of plug-ins for `serdes doctor`, without loading them.

use std::path::Path;

use pep440_rs::Version;
use serdes_doctor::{Comparison, Libraries, Misfit, Rule};
use serdes_pjrt::{Framework, SkewRule};
use serdes_stream_executor::{TensorFlowRelease, elf};

use crate::terminal::harmless;

/// Reader of plug-in files.
pub(crate) struct PluginFiles;

impl Libraries for PluginFiles {
    fn pjrt_minor(&self, library: &Path) -> Option<u32> {
        Some(serdes_pjrt::inspect(library).ok()?.version?.minor.number())
    }

    fn compare(&self, library: &Path, jaxlib: &Version) -> Option<Comparison> {
        let framework = Framework::named(&format!("jaxlib-{}", jaxlib.only_release()))?;
        let plugin = serdes_pjrt::inspect(library).ok()?.plugin_version()?;
        let fit = framework.fit(&plugin);
        let misfit = |found: &serdes_pjrt::Mismatch| {
            let rule = Rule::named(found.rule().as_str())?;
            let minor = format!("0.{}", plugin.minor().number());
            let taken = format!("what {} takes", framework.name());
            Some(Misfit::new(rule, harmless(found.message())).with_values(minor, taken))
        };
        let newer = fit.warnings().iter().find(|found| found.rule() == SkewRule::UnknownMinor);
        let comparison = Comparison::new(fit.reasons().iter().filter_map(misfit));
        Some(comparison.with_unknown_minor(newer.map(|found| harmless(found.message()))))
    }

    fn missing_symbols(&self, library: &Path, tensorflow: &Version) -> Option<Vec<String>> {
        let release = TensorFlowRelease::named(&tensorflow.only_release().to_string()).ok()?;
        let fit = release.fit(&elf::inspect(library).ok()?);
        Some(fit.not_exported)
    }
}
