//! `environment.yml` and the output of `conda env export`.
//!
//! Of YAML only the two lists are read that such files have: packages as `name=version=build`, and
//! below `pip:` requirements.

use std::str::FromStr as _;

use pep440_rs::Version;

use super::{locked::Locked, requirements};
use crate::environment::Tool;

/// Names that conda gives to packages which pip calls otherwise.
const NAMES: [(&str, &str); 3] =
    [("pytorch", "torch"), ("pytorch-cpu", "torch"), ("pytorch-gpu", "torch")];

/// Tells whether a text has the list of packages of an environment.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "dependencies:")
}

/// Reads the packages.
pub(super) fn read(text: &str) -> Locked {
    let mut locked = Locked { tool: Some(Tool::Conda), ..Locked::default() };
    let mut of_pip = String::new();
    let mut inside = false;
    let mut pip_indent = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if !line.starts_with([' ', '-']) {
            inside = trimmed == "dependencies:";
            pip_indent = None;
            continue;
        }
        let Some(item) =
            trimmed.strip_prefix("- ").map(|item| item.trim().trim_matches(['"', '\'']))
        else {
            continue;
        };
        if !inside {
            continue;
        }
        if item == "pip:" {
            pip_indent = Some(indent);
        } else if pip_indent.is_some_and(|pip| indent > pip) {
            of_pip.push_str(item);
            of_pip.push('\n');
        } else {
            pip_indent = None;
            package(item, &mut locked);
        }
    }
    if let Some(pip) = requirements::read(&of_pip) {
        for (name, versions) in pip.versions {
            locked.versions.insert(name, versions);
        }
    }
    locked
}

fn package(item: &str, locked: &mut Locked) {
    // A channel may stand before the name.
    let item = item.rsplit("::").next().unwrap_or(item);
    let mut parts = item.split('=').filter(|part| !part.is_empty());
    let (Some(name), Some(version)) = (parts.next(), parts.next()) else { return };
    let name = name.trim();
    if name == "python" {
        locked.python = Version::from_str(version).ok();
    }
    let name = NAMES.iter().find(|(conda, _)| *conda == name).map_or(name, |(_, pip)| pip);
    locked.add(name, version);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_takes_packages_of_conda_and_of_pip() {
        let text = "name: ml\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.12.11=h9e\n  - conda-forge::jax=0.9.2=py\n  - pip:\n      - orbax-checkpoint==0.11.40\nprefix: /opt\n";
        assert!(is_one(text));
        let locked = read(text);
        assert_eq!(locked.python, Some("3.12.11".parse().unwrap()));
        assert!(locked.versions.contains_key("jax"));
        assert!(locked.versions.contains_key("orbax-checkpoint"));
        assert!(!locked.versions.contains_key("conda-forge"));
    }
}
