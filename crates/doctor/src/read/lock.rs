//! Lock files, detected by their contents.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    str::FromStr as _,
};

use pep440_rs::{Operator, Version, VersionSpecifiers};
use serde::Deserialize;

use super::{
    choices::{Relations, choices},
    conda_export,
    error::ReadError,
    forks,
    locked::{Locked, markers},
    requirements,
};
use crate::environment::{Environment, Tool};

/// Maximum size in bytes of a lock file with its included files.
const LIMIT: u64 = 64 << 20;
/// Number of bytes for detecting the format.
const BEGINNING: u64 = 256 << 10;
/// Maximum number of files that a requirements file may include.
const INCLUDED: usize = 32;

/// A lock file in TOML.
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
    /// The forks that have the entry, in uv's format.
    #[serde(default, rename = "resolution-markers")]
    resolution_markers: Vec<String>,
    /// Environment marker in `pylock.toml` or `poetry.lock`; only text is used.
    #[serde(alias = "markers")]
    marker: Option<toml::Value>,
    #[serde(flatten)]
    relations: Relations,
}

/// Returns true if a file is a lock file, by its contents or its name.
pub(super) fn is_lock(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    matches!(&*name, "uv.lock" | "poetry.lock" | "environment.yml" | "environment.yaml")
        || (name.starts_with("requirements") && name.ends_with(".txt"))
        || (name.starts_with("pylock.") && name.ends_with(".toml"))
        || beginning(path).is_some_and(|text| has_content_of_lock(&text))
}

/// Returns the complete lines at the beginning of a file; `None` if it is not text.
fn beginning(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(BEGINNING).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 == BEGINNING {
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n')?);
    }
    decoded(bytes).ok()
}

fn has_content_of_lock(text: &str) -> bool {
    if is_toml(text) {
        // Other languages have such tables as well.
        return ["requires-python", "python-versions", "lock-version", "resolution-markers"]
            .iter()
            .any(|word| text.contains(word));
    }
    conda_export::is_one(text) || requirements::is_pinned(text)
}

/// Decodes the text of a file, which on Windows may be UTF-16.
fn decoded(bytes: Vec<u8>) -> Result<String, String> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        let units: Vec<u16> =
            rest.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        return String::from_utf16(&units).map_err(|error| error.to_string());
    }
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Reads a lock file.
pub(super) fn read(path: &Path) -> Result<Vec<Environment>, ReadError> {
    let damaged = |reason: String| ReadError::Damaged { path: path.to_owned(), reason };
    let text = text(path)?;
    let locked = if is_toml(&text) {
        tables(&text).map_err(damaged)?
    } else if conda_export::is_one(&text) {
        conda_export::read(&text)
    } else {
        let read = requirements::read(&text);
        let mut read = read.ok_or_else(|| ReadError::NoEnvironment { path: path.to_owned() })?;
        include(path, std::mem::take(&mut read.included), &mut read.locked);
        read.locked.may_be_partial = true;
        read.locked
    };
    Ok(forks::environments(path, &locked))
}

fn text(path: &Path) -> Result<String, ReadError> {
    let system = |source| ReadError::System { path: path.to_owned(), source };
    let damaged = |reason: String| ReadError::Damaged { path: path.to_owned(), reason };
    // Opening a pipe blocks, and a device may be endless.
    if !fs::metadata(path).map_err(system)?.is_file() {
        return Err(ReadError::NoFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(system)?.take(LIMIT + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > LIMIT {
        return Err(damaged(format!("it is longer than {LIMIT} bytes")));
    }
    decoded(bytes).map_err(damaged)
}

/// Reads the files that a requirements file includes, relative to the including file. Unreadable
/// files are skipped.
fn include(path: &Path, included: Vec<String>, locked: &mut Locked) {
    let beside = |path: &Path, names: Vec<String>| -> Vec<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        names.into_iter().map(|name| folder.join(name)).collect()
    };
    let mut seen: BTreeSet<PathBuf> = fs::canonicalize(path).into_iter().collect();
    let mut waiting = beside(path, included);
    let mut bytes = 0;
    while let Some(next) = waiting.pop() {
        let Ok(file) = fs::canonicalize(&next) else { continue };
        let length = fs::metadata(&file).map_or(0, |metadata| metadata.len());
        bytes += length;
        if !file.is_file() || bytes > LIMIT || seen.len() > INCLUDED || !seen.insert(file) {
            continue;
        }
        let read = text(&next).ok().and_then(|text| requirements::read(&text));
        if let Some(read) = read {
            waiting.extend(beside(&next, read.included));
            locked.extend(read.locked);
        }
    }
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
        python: python.as_deref().and_then(pinned_python),
        requires_python: python.as_deref().and_then(|text| VersionSpecifiers::from_str(text).ok()),
        ..Locked::default()
    };
    if tool == Tool::Uv {
        let entries = tables.package.iter();
        locked.choices =
            choices(entries.filter_map(|entry| {
                Some((&*entry.name, entry.version.as_deref()?, &entry.relations))
            }));
    }
    for entry in tables.package {
        let of_fork = entry.resolution_markers.iter().map(String::as_str);
        let own = entry.marker.as_ref().and_then(toml::Value::as_str);
        match &entry.version {
            Some(version) => locked.add(&entry.name, version, markers(of_fork.chain(own))),
            None => locked.add_open(&entry.name),
        }
    }
    Ok(locked)
}

/// Returns the Python of a lock that is for one only.
fn pinned_python(text: &str) -> Option<Version> {
    let specifiers = VersionSpecifiers::from_str(text).ok()?;
    let exact = specifiers
        .iter()
        .find(|one| matches!(one.operator(), Operator::Equal | Operator::EqualStar))?;
    Some(exact.version().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_told_by_content_and_not_by_the_end_of_the_name() {
        assert!(has_content_of_lock("jax==0.9.2\njaxlib==0.9.2\n"));
        assert!(has_content_of_lock("requires-python = '>=3.12'\n[[package]]\nname = 'x'\n"));
        assert!(!has_content_of_lock("[[package]]\nname = 'serde'\nchecksum = 'aa'\n"));
        assert!(!has_content_of_lock("jax and jaxlib are packages.\n"));
        assert!(!has_content_of_lock("jax\n"));
    }

    #[test]
    fn text_of_windows_is_decoded() {
        let bytes: Vec<u8> = "\u{feff}jax==1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded(bytes).unwrap(), "jax==1");
        assert_eq!(decoded("\u{feff}jax".into()).unwrap(), "jax");
    }
}
