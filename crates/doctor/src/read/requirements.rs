//! Parser of `requirements*.txt` and the output of `pip freeze`.

use std::str::FromStr as _;

use pep440_rs::Operator;
use pep508_rs::{Requirement, VerbatimUrl, VersionOrUrl};

use super::{forks, locked::Locked};

/// Maximum length of a line; longer ones are skipped.
const LINE_LIMIT: usize = 16 << 10;
/// Maximum length of a requirement, as in metadata.
const REQUIREMENT_LIMIT: usize = 600;
/// Maximum number of files that one file may include.
const INCLUDED: usize = 32;

/// The contents of a requirements file.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) locked: Locked,
    /// The files that it includes by `-r`.
    pub(super) included: Vec<String>,
}

/// Parses names with pinned versions; `None` if no line is a requirement.
pub(super) fn read(text: &str) -> Option<Read> {
    let mut read = Read::default();
    let mut found = false;
    for line in lines(text) {
        if let Some(requirement) = requirement(&line) {
            found = true;
            add(&requirement, &mut read.locked);
        } else if let Some(file) = included(&line)
            && read.included.len() < INCLUDED
        {
            found = true;
            read.included.push(file.to_owned());
        }
    }
    found.then_some(read)
}

/// Returns true if every line is a requirement or an option, and one of them is pinned.
pub(super) fn is_pinned(text: &str) -> bool {
    let mut pinned = false;
    for line in lines(text).filter(|line| !line.is_empty() && !line.starts_with(['#', '-'])) {
        let Some(requirement) = requirement(&line) else { return false };
        pinned |= pin(&requirement).is_some();
    }
    pinned
}

/// Returns the lines without comments, hashes and continuations.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let mut whole = String::new();
        loop {
            let Some(line) = lines.next() else {
                return (!whole.is_empty()).then_some(whole);
            };
            let part = line.strip_suffix('\\');
            let text = part.unwrap_or(line);
            if whole.len() + text.len() < LINE_LIMIT {
                whole.push_str(text);
            }
            if part.is_none() {
                break;
            }
        }
        let line = whole.split(" #").next().unwrap_or_default();
        Some(line.split(" --hash").next().unwrap_or_default().trim().to_owned())
    })
}

/// Returns the file that a line includes.
fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("--requirement").or_else(|| line.strip_prefix("-r"))?;
    let file = rest.trim_start_matches('=').trim();
    (!file.is_empty() && !file.contains("://")).then_some(file)
}

/// Parses the requirement in a line.
fn requirement(line: &str) -> Option<Requirement<VerbatimUrl>> {
    let is_other = line.is_empty()
        || line.starts_with('#')
        || line.starts_with('-')
        || line.len() > REQUIREMENT_LIMIT;
    if is_other { None } else { Requirement::from_str(line).ok() }
}

/// Returns the version that a requirement pins.
fn pin(requirement: &Requirement<VerbatimUrl>) -> Option<String> {
    match requirement.version_or_url.as_ref()? {
        VersionOrUrl::VersionSpecifier(specifiers) => specifiers
            .iter()
            .find(|one| matches!(one.operator(), Operator::Equal | Operator::ExactEqual))
            .map(|one| one.version().to_string()),
        VersionOrUrl::Url(url) => {
            forks::version_in_address(url.as_str()).map(|version| version.to_string())
        }
    }
}

fn add(requirement: &Requirement<VerbatimUrl>, locked: &mut Locked) {
    let name = requirement.name.as_ref();
    let marker = &requirement.marker;
    match pin(requirement) {
        Some(version) => {
            let markers = if marker.is_true() { Vec::new() } else { vec![marker.clone()] };
            locked.add(name, &version, markers);
        }
        None => locked.add_open(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_count_where_they_are_pinned() {
        let text = "# a comment\n-r other.txt\njax==0.9.2\nnumpy>=2\nscipy==1.16.3 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nflax @ https://x/y.whl\ntorch @ https://x/torch-2.8.0%2Bcpu-cp312-cp312-linux_x86_64.whl\n";
        let read = read(text).unwrap();
        let names: Vec<&String> = read.locked.versions.keys().collect();
        assert_eq!(names, ["jax", "scipy", "torch"]);
        assert_eq!(read.locked.open.iter().collect::<Vec<_>>(), ["flax", "numpy"]);
        assert_eq!(read.included, ["other.txt"]);
    }

    #[test]
    fn text_without_requirements_is_none() {
        assert!(read("hello world, this is a letter\n").is_none());
        assert!(read("").is_none());
    }
}
