//! `environment.yml` and the output of `conda env export`.
//!
//! Only the two lists of such files are parsed, not all of YAML: packages as `name=version=build`,
//! and requirements below `pip:`.

use std::str::FromStr as _;

use pep440_rs::Version;

use super::{locked::Locked, requirements};
use crate::environment::Tool;

/// conda's names of packages, with pip's.
const NAMES: [(&str, &str); 3] =
    [("pytorch", "torch"), ("pytorch-cpu", "torch"), ("pytorch-gpu", "torch")];

/// Returns pip's name of a conda package.
pub(super) fn pip_name(conda: &str) -> &str {
    NAMES.iter().find(|(known, _)| *known == conda).map_or(conda, |(_, pip)| pip)
}

/// Returns true if the build of a package is for CUDA: `cuda129py312h2fb0b64_200`.
pub(super) fn is_for_cuda(build: &str) -> bool {
    build.starts_with("cuda")
}

/// Returns true if a text has an environment's list of packages.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "dependencies:")
}

/// Parses the packages.
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
        // pip's packages replace those of conda.
        locked.versions.extend(pip.locked.versions);
        locked.open.extend(pip.locked.open);
    }
    locked
}

fn package(item: &str, locked: &mut Locked) {
    // A channel may precede the name.
    let item = item.rsplit("::").next().unwrap_or(item);
    let mut parts = item.split('=').filter(|part| !part.is_empty());
    let Some(name) =
        parts.next().and_then(|name| name.split(['<', '>', '!', '~', ' ', '[']).next())
    else {
        return;
    };
    let (version, build) = (parts.next(), parts.next());
    let is_exact = item.contains("==") || build.is_some();
    let pip = pip_name(name);
    locked.jaxlib_holds_plugin |= name == "jaxlib" && build.is_some_and(is_for_cuda);
    match version.and_then(|version| Version::from_str(version).ok()) {
        Some(version) if name == "python" => locked.python = Some(version),
        // `=0.4` alone matches every release with that prefix.
        Some(version) if is_exact || version.release().len() > 2 => {
            locked.add(pip, &version.to_string(), Vec::new());
        }
        _ => locked.add_open(pip),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_versions_are_no_versions() {
        let locked = read("dependencies:\n  - jaxlib=0.4\n  - numpy>=1.26\n  - jax=0.4.35\n");
        assert_eq!(locked.versions.keys().collect::<Vec<_>>(), ["jax"]);
        assert_eq!(locked.open.iter().collect::<Vec<_>>(), ["jaxlib", "numpy"]);
    }

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
