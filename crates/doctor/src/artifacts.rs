//! Artifacts with types that an installed package cannot read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read as _,
    path::Path,
};

use pep440_rs::Version;
use serde::Deserialize;

use crate::{
    diagnosis::{Change, Problem, Remedy, Target},
    environment::Environment,
    libraries::Libraries,
    remedy,
    rule::Rule,
};

/// Maximum size of a safetensors header in bytes.
const HEADER_LIMIT: u64 = 100_000_000;

/// First release of safetensors that reads an element type, for types added after 0.4.
const SINCE: [(&str, [u64; 2]); 7] = [
    ("F8_E8M0", [0, 6]),
    ("F4", [0, 6]),
    ("F6_E2M3", [0, 6]),
    ("F6_E3M2", [0, 6]),
    ("C64", [0, 7]),
    ("F8_E4M3FNUZ", [0, 8]),
    ("F8_E5M2FNUZ", [0, 8]),
];

/// A problem of an artifact with an installed package.
pub type ArtifactProblem = Problem;

/// An entry of a header, reduced to its type; `__metadata__` has none.
#[derive(Deserialize)]
struct Entry {
    dtype: Option<String>,
}

/// Compares the element types of a safetensors file with those that the installed safetensors
/// reads.
///
/// Returns `None` if the package or the file is missing, or all types can be read. The file is not
/// checked for completeness.
#[must_use]
pub fn judge_safetensors(
    environment: &Environment,
    path: &Path,
    libraries: &dyn Libraries,
) -> Option<ArtifactProblem> {
    let package = environment.package("safetensors")?;
    let types = types(path)?;
    let newest =
        SINCE.iter().filter(|(name, _)| types.contains(*name)).max_by_key(|(_, since)| since)?;
    let (name, since) = newest;
    let since = Version::new(*since);
    if package.version.only_release() >= since {
        return None;
    }
    let shown = path.display();
    let change = Change {
        package: package.name.clone(),
        from: Some(package.version.clone()),
        to: Target::Specifiers(format!(">={since}.0").parse().ok()?),
    };
    // The change satisfies the bound by construction; its other effects are checked like any
    // remedy's.
    let mut remedies = Vec::new();
    if remedy::breaks_nothing(environment, std::slice::from_ref(&change), libraries) {
        let changes = vec![change];
        let command = remedy::command(environment.tool, &changes);
        remedies.push(Remedy { changes, command: Some(command.clone()), text: command });
    }
    Some(Problem {
        rule: Rule::ArtifactType,
        packages: vec![package.name.clone()],
        found: package.version.to_string(),
        expected: format!(">={since}.0"),
        message: format!(
            "{shown} has tensors of the type {name}, which safetensors reads from {since} on, and it is {}",
            package.version
        ),
        symptom: Some("Error while deserializing: InvalidHeaderDeserialization".to_owned()),
        location: Some(shown.to_string()),
        remedies,
        candidates: Vec::new(),
        words: None,
    })
}

/// Returns the element types of a safetensors file.
fn types(path: &Path) -> Option<BTreeSet<String>> {
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_LIMIT || length > file.metadata().ok()?.len() {
        return None;
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).ok()?;
    let entries: BTreeMap<String, Entry> = serde_json::from_slice(&header).ok()?;
    Some(entries.into_values().filter_map(|entry| entry.dtype).collect())
}
