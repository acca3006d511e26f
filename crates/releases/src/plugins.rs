//! Facts about plug-ins that no metadata declares: the versions that they were built with, and
//! their needs.

use serde::{Deserialize, Serialize};

use crate::{
    jaxlib::Takes,
    rows::{TableError, list},
};

/// Measured and reported facts about plug-ins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plugins {
    /// The oldest driver of NVIDIA for each major of CUDA.
    pub driver: Vec<Driver>,
    /// The PJRT versions of plug-ins whose numbers differ from jaxlib's, or were measured.
    pub pjrt: Vec<PjrtVersion>,
    /// Frameworks besides jaxlib that load plug-ins.
    pub frameworks: Vec<FrameworkRelease>,
    /// The libraries of NVIDIA that CUDA plug-ins were built with.
    pub built_with: Vec<BuiltWith>,
    /// Needs that metadata does not declare, or declares differently.
    pub needs: Vec<Need>,
}

/// The oldest driver for a major of CUDA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// The major of CUDA.
    pub cuda: u64,
    /// The driver, such as `525.60.13`.
    pub driver: String,
}

/// The PJRT version of a release of a plug-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PjrtVersion {
    /// The package.
    pub package: String,
    /// The version of the package.
    pub version: String,
    /// The minor of the PJRT C API.
    pub minor: u32,
}

/// A release of a framework that loads plug-ins of PJRT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameworkRelease {
    /// The package.
    pub package: String,
    /// The version of the package.
    pub version: String,
    /// The minor of the PJRT C API that it was built with.
    pub pjrt: u32,
    /// The plug-ins that it accepts.
    pub takes: Takes,
}

/// The libraries that a plug-in was built with, for a range of its releases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltWith {
    /// The package.
    pub package: String,
    /// The oldest release of the range.
    pub from: String,
    /// The newest release of the range.
    pub to: String,
    /// CUDA's runtime, MAJOR.MINOR.
    pub cuda_runtime: String,
    /// cuDNN.
    pub cudnn: String,
    /// cuBLAS.
    pub cublas: String,
    /// cuFFT.
    pub cufft: String,
    /// The version number that cuPTI reports.
    pub cupti: u32,
    /// cuSOLVER.
    pub cusolver: String,
    /// cuSPARSE.
    pub cusparse: String,
}

/// A need of a package that its metadata does not declare, or declares differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The package that has the need.
    pub package: String,
    /// The versions of the package that have the need, by PEP 440.
    pub versions: String,
    /// The need, by PEP 508.
    pub needs: String,
    /// True if the need was measured, and not only reported.
    pub measured: bool,
    /// The error that a user sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symptom: Option<String>,
    /// The report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Plugins {
    /// Parses the table.
    ///
    /// # Errors
    /// [`TableError`] for a text that is not in the form of `data/schema.json`.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Returns the text of the table, one row per line.
    ///
    /// # Errors
    /// [`TableError`] if a row cannot be written as JSON.
    pub fn text(&self) -> Result<String, TableError> {
        Ok(format!(
            "{{\n\"driver\": {},\n\"pjrt\": {},\n\"frameworks\": {},\n\"built_with\": {},\n\"needs\": {}\n}}\n",
            list(&self.driver)?,
            list(&self.pjrt)?,
            list(&self.frameworks)?,
            list(&self.built_with)?,
            list(&self.needs)?
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_plugins_is_written_as_it_is_read() {
        let text = include_str!("../data/plugins.json");
        assert_eq!(Plugins::parse(text).unwrap().text().unwrap(), text);
    }
}
