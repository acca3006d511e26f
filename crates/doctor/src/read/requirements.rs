//! `requirements*.txt` and the output of `pip freeze`.

use std::str::FromStr as _;

use pep440_rs::Operator;
use pep508_rs::{Requirement, VersionOrUrl};

use super::locked::Locked;

/// A line that is longer is not read.
const LINE_LIMIT: usize = 16 << 10;
/// As for requirements in metadata.
const REQUIREMENT_LIMIT: usize = 600;

/// Reads names with pinned versions. `None` where no line is a requirement.
pub(super) fn read(text: &str) -> Option<Locked> {
    let mut locked = Locked::default();
    let mut found = false;
    let mut whole = String::new();
    for line in text.lines() {
        if let Some(part) = line.strip_suffix('\\') {
            if whole.len() + part.len() < LINE_LIMIT {
                whole.push_str(part);
            }
            continue;
        }
        whole.push_str(line.get(..LINE_LIMIT.min(line.len())).unwrap_or_default());
        found |= requirement(&std::mem::take(&mut whole), &mut locked);
    }
    found.then_some(locked)
}

/// Reads one line; tells whether it is a requirement.
fn requirement(line: &str, locked: &mut Locked) -> bool {
    let line = line.split(" #").next().unwrap_or_default();
    let line = line.split(" --hash").next().unwrap_or_default().trim();
    if line.is_empty()
        || line.starts_with('#')
        || line.starts_with('-')
        || line.len() > REQUIREMENT_LIMIT
    {
        return false;
    }
    let Ok(requirement) = Requirement::<pep508_rs::VerbatimUrl>::from_str(line) else {
        return false;
    };
    if let Some(VersionOrUrl::VersionSpecifier(specifiers)) = &requirement.version_or_url {
        let pinned = specifiers
            .iter()
            .find(|one| matches!(one.operator(), Operator::Equal | Operator::ExactEqual));
        if let Some(pinned) = pinned {
            locked.add(requirement.name.as_ref(), &pinned.version().to_string());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_count_where_they_are_pinned() {
        let text = "# a comment\n-r other.txt\njax==0.9.2\nnumpy>=2\nscipy==1.16.3 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nflax @ https://x/y.whl\n";
        let locked = read(text).unwrap();
        let names: Vec<&String> = locked.versions.keys().collect();
        assert_eq!(names, ["jax", "scipy"]);
    }

    #[test]
    fn text_without_requirements_is_none() {
        assert!(read("hello world, this is a letter\n").is_none());
        assert!(read("").is_none());
    }
}
