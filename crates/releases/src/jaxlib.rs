//! Releases of jaxlib: the versions that each was built with, reads and writes.

use serde::{Deserialize, Serialize};

use crate::rows::{TableError, list};

/// The releases of jaxlib.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jaxlib {
    /// Every known release, oldest first.
    pub releases: Vec<JaxlibRelease>,
}

/// A release of jaxlib, with the jax of the same version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JaxlibRelease {
    /// The version, such as `0.12.0.1`.
    pub version: String,
    /// The minor of the PJRT C API that it was built with.
    pub pjrt: u32,
    /// The plug-ins that it accepts.
    pub takes: Takes,
    /// The version of StableHLO in it, such as `1.22.0`.
    pub stablehlo: String,
    /// The files of `jax.export` that the release reads and writes; only for measured releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exports: Option<Exports>,
    /// Its client of an IFRT proxy; only for measured releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
}

/// The check of a plug-in's PJRT version before any other call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Takes {
    /// Only plug-ins of its own minor.
    #[serde(rename = "equal")]
    Equal,
    /// Plug-ins of minor 29 and above.
    #[serde(rename = "from 0.29")]
    From29,
}

/// The support of a release for files of `jax.export`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exports {
    /// The day of its first upload to PyPI, `YYYY-MM-DD`.
    pub day: String,
    /// The StableHLO version that `WEEK_4` stands for, which it writes.
    pub week_4: String,
    /// The StableHLO version that `WEEK_12` stands for.
    pub week_12: String,
    /// The newest version of the serialization that it knows.
    pub serialization: u16,
    /// The version of the serialization that it writes.
    pub writes_serialization: u16,
    /// The field into which it writes the number of devices: `short`, `both` or `wide`.
    pub writes_devices: String,
    /// The calling convention that it writes.
    pub calling_convention: u16,
    /// The newest feature of its deserializer, such as `expiring`.
    pub deserializer: String,
    /// The highest number of an element type that it knows.
    pub last_dtype: i8,
}

/// The client of an IFRT proxy in a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// The oldest and the newest version of the protocol that it supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<[i32; 2]>,
    /// The oldest and the newest version of IFRT SerDes that it supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serdes: Option<[i32; 2]>,
    /// The StableHLO version in which it sends programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<String>,
}

impl Jaxlib {
    /// Parses the table.
    ///
    /// # Errors
    /// [`TableError`] for a text that is not in the form of `data/schema.json`.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Returns the text of the table, one release per line.
    ///
    /// # Errors
    /// [`TableError`] if a row cannot be written as JSON.
    pub fn text(&self) -> Result<String, TableError> {
        Ok(format!("{{\n\"releases\": {}\n}}\n", list(&self.releases)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_jaxlib_is_written_as_it_is_read() {
        let text = include_str!("../data/jaxlib.json");
        assert_eq!(Jaxlib::parse(text).unwrap().text().unwrap(), text);
        assert!(Jaxlib::parse("{\"releases\": [{\"version\": \"1\", \"minor\": 2}]}").is_err());
    }
}
