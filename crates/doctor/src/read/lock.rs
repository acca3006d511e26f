//! Lock files, told apart by their content.

use std::{fs::File, io::Read as _, path::Path, str::FromStr as _};

use pep440_rs::{Operator, Version, VersionSpecifiers};
use serde::Deserialize;

use super::{conda_export, error::ReadError, locked::Locked, requirements};
use crate::{
    environment::{Environment, Kind, Tool},
    names::is_judged,
    package::Package,
};

/// Bytes of a lock file.
const LIMIT: u64 = 64 << 20;
/// Forks of one lock that are judged.
const FORKS: usize = 16;

/// A lock file as tables.
#[derive(Debug, Deserialize)]
struct Tables {
    #[serde(default, alias = "packages")]
    package: Vec<Entry>,
    #[serde(rename = "requires-python")]
    requires_python: Option<String>,
    #[serde(rename = "lock-version")]
    lock_version: Option<String>,
    metadata: Option<PoetryMetadata>,
}

#[derive(Debug, Deserialize)]
struct PoetryMetadata {
    #[serde(rename = "python-versions")]
    python_versions: Option<String>,
    #[serde(rename = "lock-version")]
    lock_version: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    version: Option<String>,
}

/// Tells whether a file is a lock file, by its name or its content.
pub(super) fn is_lock(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let by_name =
        matches!(&*name, "uv.lock" | "poetry.lock" | "environment.yml" | "environment.yaml")
            || (name.starts_with("requirements") && name.ends_with(".txt"))
            || (name.starts_with("pylock.") && name.ends_with(".toml"));
    by_name && path.is_file()
}

/// Reads a lock file.
pub(super) fn read(path: &Path) -> Result<Vec<Environment>, ReadError> {
    let system = |source| ReadError::System { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(system)?.take(LIMIT + 1).read_to_end(&mut bytes).map_err(system)?;
    let damaged = |reason: String| ReadError::Damaged { path: path.to_owned(), reason };
    if bytes.len() as u64 > LIMIT {
        return Err(damaged(format!("it is longer than {LIMIT} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
    let locked = if is_toml(&text) {
        tables(&text).map_err(damaged)?
    } else if conda_export::is_one(&text) {
        conda_export::read(&text)
    } else {
        requirements::read(&text)
            .ok_or_else(|| ReadError::NoEnvironment { path: path.to_owned() })?
    };
    Ok(environments(path, &locked))
}

fn is_toml(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| matches!(line, "[[package]]" | "[[packages]]"))
}

fn tables(text: &str) -> Result<Locked, String> {
    let tables: Tables = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let poetry = tables.metadata.as_ref().is_some_and(|metadata| metadata.lock_version.is_some());
    let tool = match (&tables.lock_version, poetry) {
        (_, true) => Tool::Poetry,
        (Some(_), _) => Tool::Pip,
        (None, _) => Tool::Uv,
    };
    let python = tables.requires_python.or_else(|| tables.metadata?.python_versions);
    let mut locked = Locked {
        tool: Some(tool),
        python: python.and_then(|text| pinned_python(&text)),
        ..Locked::default()
    };
    for entry in tables.package {
        if let Some(version) = &entry.version {
            locked.add(&entry.name, version);
        }
    }
    Ok(locked)
}

/// The Python of a lock that is for one alone.
fn pinned_python(text: &str) -> Option<Version> {
    let specifiers = VersionSpecifiers::from_str(text).ok()?;
    let exact = specifiers
        .iter()
        .find(|one| matches!(one.operator(), Operator::Equal | Operator::EqualStar))?;
    Some(exact.version().clone())
}

/// One environment, or one a fork: the n-th has the n-th version of what is there several times.
fn environments(path: &Path, locked: &Locked) -> Vec<Environment> {
    let forks = locked.versions.values().map(Vec::len).max().unwrap_or(1).clamp(1, FORKS);
    let label = path.display().to_string();
    let of_fork = |fork: usize| {
        let label = if forks == 1 { label.clone() } else { format!("{label} (fork {})", fork + 1) };
        let mut environment =
            Environment::empty(label, Kind::Lock, locked.tool.unwrap_or(Tool::Pip));
        environment.python.clone_from(&locked.python);
        environment.count = locked.versions.len();
        for (name, versions) in &locked.versions {
            let version = versions.get(fork).or_else(|| versions.last());
            if let Some(version) = version.filter(|_| is_judged(name)) {
                environment
                    .packages
                    .insert(name.clone(), Package::named(name.clone(), version.clone()));
            }
        }
        // A package for macOS alone tells the system.
        if environment.packages.contains_key("tensorflow-metal")
            || environment.packages.contains_key("jax-metal")
        {
            environment.system = "darwin";
            environment.machine = Some("arm64".to_owned());
        }
        environment
    };
    (0..forks).map(of_fork).collect()
}
