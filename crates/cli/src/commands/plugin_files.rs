//! The files of plug-ins, read for `serdes doctor`; nothing is loaded.

use std::path::Path;

use pep440_rs::Version;
use serdes::{
    pjrt::{self, Framework},
    stream_executor::{TensorFlowRelease, elf},
};
use serdes_doctor::{Libraries, Misfit, Rule};

use crate::terminal::harmless;

/// Reads the files of plug-ins.
pub(crate) struct PluginFiles;

impl Libraries for PluginFiles {
    fn pjrt_minor(&self, library: &Path) -> Option<u32> {
        Some(pjrt::inspect(library).ok()?.version?.minor.number())
    }

    fn misfits(&self, library: &Path, jaxlib: &Version) -> Option<Vec<Misfit>> {
        let framework = Framework::named(&format!("jaxlib-{}", jaxlib.only_release()))?;
        let plugin = pjrt::inspect(library).ok()?.plugin_version()?;
        let misfit = |found: &pjrt::Mismatch| {
            Some(Misfit {
                rule: Rule::named(found.rule().as_str())?,
                found: format!("0.{}", plugin.minor().number()),
                expected: format!("what {} takes", framework.name()),
                message: harmless(found.message()),
            })
        };
        Some(framework.fit(&plugin).reasons().iter().filter_map(misfit).collect())
    }

    fn missing_symbols(&self, library: &Path, tensorflow: &Version) -> Option<Vec<String>> {
        let release = TensorFlowRelease::named(&tensorflow.only_release().to_string()).ok()?;
        let fit = release.fit(&elf::inspect(library).ok()?);
        Some(fit.not_exported)
    }
}
