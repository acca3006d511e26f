//! The input and the output of rules.

use std::collections::HashSet;

use pep440_rs::{Version, VersionSpecifiers};

use crate::{
    data::Releases,
    diagnosis::{Change, Problem, Target},
    environment::Environment,
    libraries::Libraries,
    package::Package,
    rule::{Rule, WarningRule},
    warning::{Unknown, Warning},
};

/// The findings of the rules.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) unknown: Vec<Unknown>,
    /// Pairs of packages that a rule has reported, so that their declared requirements are not
    /// checked as well.
    pub(super) explained: HashSet<(String, String)>,
}

impl Findings {
    pub(super) fn problem(&mut self, problem: Problem) {
        if !self.problems.iter().any(|known| known.key() == problem.key()) {
            self.problems.push(problem);
        }
    }

    pub(super) fn warn(&mut self, rule: WarningRule, packages: &[&str], message: String) {
        let packages = packages.iter().map(|&name| name.to_owned()).collect();
        self.warnings.push(Warning { rule, message, packages });
    }

    pub(super) fn explain(&mut self, requirer: &str, required: &str) {
        self.explained.insert((requirer.to_owned(), required.to_owned()));
    }
}

/// The input of rules.
pub(crate) struct View<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) known: &'static Releases,
    pub(crate) libraries: &'a dyn Libraries,
}

impl<'a> View<'a> {
    pub(super) fn package(&self, name: &str) -> Option<&'a Package> {
        self.environment.package(name)
    }
}

/// Creates a problem without remedies.
pub(super) fn problem(
    rule: Rule,
    packages: &[&str],
    found: String,
    expected: String,
    message: String,
) -> Problem {
    Problem {
        rule,
        packages: packages.iter().map(|&name| name.to_owned()).collect(),
        found,
        expected,
        message,
        symptom: None,
        location: None,
        remedies: Vec::new(),
        candidates: Vec::new(),
        words: None,
    }
}

/// Creates a change of a package to a version.
pub(super) fn to_version(environment: &Environment, package: &str, version: &Version) -> Change {
    let from = environment.package(package).map(|package| package.version.clone());
    Change {
        package: package.to_owned(),
        from,
        to: Target::Version(version.clone().without_local()),
    }
}

/// Creates a change of a package to any version that satisfies a specifier.
pub(super) fn to_specifiers(
    environment: &Environment,
    package: &str,
    specifiers: VersionSpecifiers,
) -> Change {
    let from = environment.package(package).map(|package| package.version.clone());
    Change { package: package.to_owned(), from, to: Target::Specifiers(specifiers) }
}

/// Creates a change that removes a package.
pub(super) fn removal(environment: &Environment, package: &str) -> Change {
    let from = environment.package(package).map(|package| package.version.clone());
    Change { package: package.to_owned(), from, to: Target::Removed }
}

/// Returns the specifier for one MAJOR.MINOR: `>=2.21,<2.22`.
pub(super) fn of_minor((major, minor): (u64, u64)) -> Option<VersionSpecifiers> {
    format!(">={major}.{minor},<{major}.{}", minor.saturating_add(1)).parse().ok()
}

/// Formats a package with its version: `jax 0.9.2`.
pub(super) fn told(package: &Package) -> String {
    format!("{} {}", package.name, package.version)
}

/// Maximum number of packages named in a sentence; the problem lists all of them.
const NAMED: usize = 4;

/// Formats several packages with their versions: `jax 0.10.2, jaxlib 0.10.2 and 3 more`.
pub(super) fn listed<'a>(packages: impl ExactSizeIterator<Item = &'a Package>) -> String {
    let more = packages.len().saturating_sub(NAMED);
    let names: Vec<String> = packages.take(NAMED).map(told).collect();
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}
