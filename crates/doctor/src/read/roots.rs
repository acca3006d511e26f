//! Virtual environments, conda prefixes, folders of packages, and roots of images.

use std::{
    path::{Path, PathBuf},
    str::FromStr as _,
};

use pep440_rs::Version;

use super::{elf, error::ReadError, guard::Guard, installed};
use crate::environment::{Environment, Kind, Tool};

/// Folders below a root in which Pythons have theirs.
const PLACES: [&str; 6] =
    ["usr/local/lib", "usr/lib", "usr/lib64", "usr/local/lib64", "lib", "lib64"];
/// Folders below which every folder may be a prefix.
const PREFIXES: [&str; 3] = ["opt", "root", "home"];
/// Folders of the C library and of the driver.
const LIBRARIES: [&str; 8] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "usr/local/nvidia/lib64",
    "usr/local/cuda/compat",
];

/// Tells whether a folder has the form of an environment.
pub(super) fn is_environment(folder: &Path) -> bool {
    kind_of(folder).is_some()
}

fn kind_of(folder: &Path) -> Option<Kind> {
    if folder.join("pyvenv.cfg").is_file() {
        return Some(Kind::Venv);
    }
    if folder.join("conda-meta").is_dir() {
        return Some(Kind::Conda);
    }
    if folder.join("etc/os-release").exists() {
        return Some(Kind::Root);
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let has_metadata =
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".dist-info"));
    if has_metadata {
        return Some(Kind::SitePackages);
    }
    let is_prefix =
        folder.join("usr/lib").is_dir() || !pythons(folder, &["lib", "lib64"]).is_empty();
    is_prefix.then_some(Kind::Root)
}

/// Reads a folder.
pub(super) fn read(folder: &Path) -> Result<Vec<Environment>, ReadError> {
    let none = || ReadError::NoEnvironment { path: folder.to_owned() };
    let kind = kind_of(folder).ok_or_else(none)?;
    let guard = Guard::new(folder).ok_or_else(none)?;
    let label = folder.display().to_string();
    let found = match kind {
        Kind::SitePackages => vec![(version_in(folder), vec![folder.to_owned()])],
        Kind::Venv | Kind::Conda => pythons(folder, &["lib", "lib64"]),
        _ => {
            let mut found = pythons(folder, &PLACES);
            for place in PREFIXES {
                for name in guard.names(&folder.join(place)) {
                    let prefix = folder.join(place).join(name);
                    found.extend(pythons(&prefix, &["lib", "lib64"]));
                    found.extend(pythons(&prefix.join(".venv"), &["lib"]));
                }
            }
            found
        }
    };
    let mut environments = Vec::new();
    for (python, sites) in found {
        let mut environment = Environment::empty(label.clone(), kind, Tool::Pip);
        environment.python = python;
        for site in &sites {
            installed::read(&guard, site, &mut environment);
        }
        // A Python of the system without any of the packages is none that anybody asks about.
        if kind == Kind::Root && environment.packages.is_empty() {
            continue;
        }
        below(folder, kind, &guard, &mut environment);
        environments.push(environment);
    }
    if environments.is_empty() && kind == Kind::Root {
        return Err(none());
    }
    if environments.is_empty() {
        let mut environment = Environment::empty(label, kind, Tool::Pip);
        below(folder, kind, &guard, &mut environment);
        environments.push(environment);
    }
    if let [_, _, ..] = environments[..] {
        for environment in &mut environments {
            if let Some(python) = &environment.python {
                environment.label = format!("{} (Python {python})", environment.label);
            }
        }
    }
    Ok(environments)
}

type Sites = Vec<(Option<Version>, Vec<PathBuf>)>;

/// The Pythons below a prefix, with their folders of packages.
fn pythons(prefix: &Path, places: &[&str]) -> Sites {
    let mut found: Sites = Vec::new();
    for place in places {
        let Ok(entries) = std::fs::read_dir(prefix.join(place)) else { continue };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        for name in names {
            let Some(number) = name.strip_prefix("python") else { continue };
            let folder = prefix.join(place).join(&name);
            let sites = ["site-packages", "dist-packages"].map(|site| folder.join(site));
            let sites: Vec<PathBuf> = sites.into_iter().filter(|site| site.is_dir()).collect();
            if sites.is_empty() {
                continue;
            }
            // Debian shares `python3` between all of 3.
            let version =
                Version::from_str(number).ok().filter(|version| version.release().len() > 1);
            match found.iter_mut().find(|(known, _)| *known == version) {
                Some((_, known)) => {
                    for site in sites {
                        // `lib64` is a link to `lib` in most places.
                        let same = |known: &PathBuf| {
                            std::fs::canonicalize(known).ok() == std::fs::canonicalize(&site).ok()
                        };
                        if !known.iter().any(same) {
                            known.push(site);
                        }
                    }
                }
                None => found.push((version, sites)),
            }
        }
    }
    found
}

/// The Python of a folder of packages, by the folder above it.
fn version_in(site: &Path) -> Option<Version> {
    let absolute = std::fs::canonicalize(site).ok()?;
    let name = absolute.parent()?.file_name()?.to_str()?;
    Version::from_str(name.strip_prefix("python")?).ok()
}

/// The tool, Python's version in full, and the system below the packages.
fn below(folder: &Path, kind: Kind, guard: &Guard, environment: &mut Environment) {
    let by_uv =
        environment.packages.values().any(|package| package.installer.as_deref() == Some("uv"));
    environment.tool = match kind {
        Kind::Conda => Tool::Conda,
        _ if by_uv => Tool::UvPip,
        _ => Tool::Pip,
    };
    if let Some(config) = guard.text(&folder.join("pyvenv.cfg"), super::guard::METADATA_LIMIT) {
        let value = |key: &str| {
            config.lines().find_map(|line| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == key).then(|| value.trim().to_owned())
            })
        };
        let said = value("version").or_else(|| value("version_info"));
        let numbers = said.map(|text| text.split('.').take(3).collect::<Vec<_>>().join("."));
        let version = numbers.and_then(|text| Version::from_str(&text).ok());
        // Where the two disagree, packages are imported from the folder.
        if let Some(version) = version
            && environment.python.as_ref().is_none_or(|folder| {
                crate::package::minor(folder) == crate::package::minor(&version)
            })
        {
            environment.python = Some(version);
        }
    }
    // What is no root of its own stands on this machine.
    let (root, own) = match kind {
        Kind::Root => (folder.to_owned(), Some(guard.clone())),
        _ => (PathBuf::from("/"), Guard::new(Path::new("/"))),
    };
    let Some(own) = own else { return };
    for place in LIBRARIES {
        let place = root.join(place);
        if environment.glibc.is_none()
            && let Some(facts) = own.inside(&place.join("libc.so.6")).as_deref().and_then(elf::read)
        {
            environment.glibc = facts.defines;
            environment.machine = environment.machine.take().or(facts.machine);
        }
        for name in own.names(&place) {
            let number = name.strip_prefix("libcuda.so.").filter(|number| number.contains('.'));
            let Some(number) = number.filter(|number| Version::from_str(number).is_ok()) else {
                continue;
            };
            let newer =
                |known: &String| Version::from_str(known).ok() < Version::from_str(number).ok();
            if environment.driver.as_ref().is_none_or(newer) {
                environment.driver = Some(number.to_owned());
            }
        }
    }
}
