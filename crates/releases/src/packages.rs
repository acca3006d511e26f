//! Releases of packages, with the declarations of each.

use serde::{Deserialize, Serialize};

use crate::rows::{TableError, list, row};

/// The releases of packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// The day of the table, `YYYY-MM-DD`.
    pub as_of: String,
    /// The packages, by their normalized names.
    pub packages: Vec<Package>,
}

/// A package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The name, normalized by PEP 503.
    pub name: String,
    /// The known releases, oldest first.
    pub releases: Vec<PackageRelease>,
}

/// A release of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageRelease {
    /// The version.
    pub version: String,
    /// The Python versions that it declares, such as `>=3.12`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The tag of its wheel for Linux on x86-64, if it has binaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The requirements that it declares on packages in the table, by PEP 508.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The oldest jaxlib that a jax accepts, by its version file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_jaxlib: Option<String>,
    /// The libtpu that the extra `tpu` of a jax pins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libtpu: Option<String>,
}

impl Packages {
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
        let package = |package: &Package| -> Result<String, TableError> {
            let releases = list(&package.releases)?;
            Ok(format!("{{\"name\": {}, \"releases\": {releases}}}", row(&package.name)?))
        };
        let packages = self.packages.iter().map(package).collect::<Result<Vec<_>, _>>()?;
        let as_of = row(&self.as_of)?;
        Ok(format!("{{\n\"as_of\": {as_of},\n\"packages\": [\n{}\n]\n}}\n", packages.join(",\n")))
    }

    /// Returns the package with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_packages_is_written_as_it_is_read() {
        let text = include_str!("../data/packages.json");
        assert_eq!(Packages::parse(text).unwrap().text().unwrap(), text);
    }
}
