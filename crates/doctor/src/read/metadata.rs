//! Parsers of the files in a `*.dist-info` folder: METADATA, WHEEL, RECORD, entry points; and of
//! version files.

use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{ExtraName, Requirement};

use crate::{
    environment::PluginFramework,
    names::normal,
    package::{Package, RecordedFile},
};

/// Maximum length of a requirement: the markers of real ones are far shorter, and those of a
/// hostile one cost more than their length.
const REQUIREMENT_LIMIT: usize = 600;
/// Maximum number of entries of one record: TensorFlow's has some ten thousand.
const RECORDED: usize = 200_000;
/// Maximum number of requirements of one package.
const REQUIREMENTS: usize = 2_000;

/// Parses METADATA or PKG-INFO; `None` if the name or version is missing or invalid.
pub(super) fn package(text: &str) -> Option<Package> {
    let (mut name, mut version) = (None, None);
    let (mut requires, mut extras, mut python) = (Vec::new(), Vec::new(), None);
    for line in text.lines().take_while(|line| !line.is_empty()) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key {
            "Name" => name = name.or_else(|| normal(value)),
            "Version" => version = version.or_else(|| Version::from_str(value).ok()),
            "Requires-Python" => python = VersionSpecifiers::from_str(value).ok(),
            "Provides-Extra" => extras.extend(ExtraName::new(value.to_owned()).ok()),
            "Requires-Dist"
                if value.len() <= REQUIREMENT_LIMIT && requires.len() < REQUIREMENTS =>
            {
                requires.extend(Requirement::from_str(value).ok());
            }
            _ => {}
        }
    }
    let version = version?;
    let mut package = Package::named(name?, version.clone());
    package.metadata_version = Some(version);
    package.requires = Some(requires);
    package.extras = extras;
    package.requires_python = python;
    Some(package)
}

/// Parses the tags of a WHEEL file.
pub(super) fn tags(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("Tag:"))
        .map(|tag| tag.trim().to_owned())
        .take(1_000)
        .collect()
}

/// Parses the entries of a RECORD file.
pub(super) fn record(text: &str) -> Vec<RecordedFile> {
    let entry = |line: &str| {
        let mut parts = line.rsplitn(3, ',');
        let (size, sum, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = match path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => path.to_owned(),
        };
        Some(RecordedFile {
            path,
            size: size.trim().parse().ok(),
            sha256: sum.strip_prefix("sha256=").map(str::to_owned),
        })
    };
    text.lines().take(RECORDED).filter_map(entry).collect()
}

/// Parses the name and version of a metadata folder: `jaxlib-0.9.2.dist-info`.
pub(super) fn of_folder(folder: &str) -> Option<(String, Version)> {
    let (name, version) = folder.strip_suffix(".dist-info")?.rsplit_once('-')?;
    Some((normal(name)?, Version::from_str(version).ok()?))
}

/// Returns the modules of entry points that are plug-ins of a framework.
pub(super) fn plugins(text: &str) -> Vec<(PluginFramework, String)> {
    let mut modules = Vec::new();
    let mut group = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            group = match name.trim() {
                "jax_plugins" => Some(PluginFramework::Jax),
                "torch_xla.plugins" => Some(PluginFramework::TorchXla),
                _ => None,
            };
        } else if let Some(framework) = group
            && let Some((_, value)) = line.split_once('=')
        {
            let module = value.split([':', '[']).next().unwrap_or_default().trim();
            let is_module = !module.is_empty()
                && module.len() < 256
                && module.split('.').all(|part| {
                    !part.is_empty()
                        && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
                });
            if is_module && modules.len() < 100 {
                modules.push((framework, module.to_owned()));
            }
        }
    }
    modules
}

/// Returns the version that a version file assigns to a name: `_minimum_jaxlib_version = '0.9.2'`.
pub(super) fn assigned(text: &str, name: &str) -> Option<Version> {
    let value = |line: &str| {
        let rest = line.trim_start().strip_prefix(name)?.trim_start();
        // An annotation may precede the value.
        let rest = rest
            .strip_prefix('=')
            .or_else(|| rest.strip_prefix(':')?.split_once('=').map(|(_, rest)| rest))?;
        let rest = rest.trim();
        let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let inside = rest.strip_prefix(quote)?.split(quote).next()?;
        Version::from_str(inside).ok()
    };
    text.lines().find_map(value)
}

/// Returns the version in a version file.
pub(crate) fn version(text: &str) -> Option<Version> {
    ["__version__", "_release_version", "_version", "full_version", "version"]
        .iter()
        .find_map(|name| assigned(text, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_reads_old_and_new_forms_of_requirements() {
        let text = "Metadata-Version: 2.1\nName: Torch\nVersion: 2.6.0+cpu\nRequires-Python: >=3.9\n\
                    Requires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == \"Linux\"\n\
                    Requires-Dist: sympy==1.13.1\nRequires-Dist: (\n\nRequires-Dist: after\n";
        let package = package(text).unwrap();
        assert_eq!(package.name, "torch");
        assert_eq!(package.public().to_string(), "2.6.0");
        assert_eq!(package.requires.unwrap().len(), 2);
    }

    #[test]
    fn package_without_a_version_is_none() {
        assert!(package("Name: x\n").is_none());
        assert!(package("Name: x\nVersion: not one\n").is_none());
        assert!(package("").is_none());
    }

    #[test]
    fn record_takes_quoted_paths_and_missing_sizes() {
        let entries = record("a/b.py,sha256=x,12\n\"a,\"\"c.py\",,\nno commas\n");
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.path.as_str(), entry.size, entry.sha256.as_deref()))
            .collect();
        assert_eq!(told, [("a/b.py", Some(12), Some("x")), ("a,\"c.py", None, None)]);
    }

    #[test]
    fn plugins_are_modules_of_the_groups_of_frameworks() {
        let text = "[console_scripts]\nx = y:z\n[jax_plugins]\nxla = jax_plugins.xla_cuda12\nbad = ../../x\n[torch_xla.plugins]\nacme = acme_xla:Plugin\n";
        assert_eq!(
            plugins(text),
            [
                (PluginFramework::Jax, "jax_plugins.xla_cuda12".to_owned()),
                (PluginFramework::TorchXla, "acme_xla".to_owned()),
            ]
        );
    }

    #[test]
    fn version_files_are_read_and_not_run() {
        let text = "_version = '0.9.0.1'\n_release_version: str = '0.9.0.1'\n__version__ = '0.9.1'\n_minimum_jaxlib_version = \"0.9.0\"";
        assert_eq!(version(text), Some("0.9.1".parse().unwrap()));
        assert_eq!(assigned(text, "_minimum_jaxlib_version"), Some("0.9.0".parse().unwrap()));
        assert_eq!(version("__version__ = f()"), None);
    }
}
