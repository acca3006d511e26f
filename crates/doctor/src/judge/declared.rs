//! Reads declared requirements: `Requires-Dist` of one judged package on another.

use std::borrow::Cow;

use pep440_rs::{Operator, Version, VersionSpecifiers};
use pep508_rs::{ExtraName, MarkerExpression, MarkerValueExtra, Requirement, VersionOrUrl};

use crate::{data::Releases, package::Package, rule::Rule};

/// Returns the requirements of a package: from its metadata, or else from the table.
pub(crate) fn requires<'a>(
    known: &'static Releases,
    package: &'a Package,
) -> Cow<'a, [Requirement]> {
    match &package.requires {
        Some(requires) => Cow::Borrowed(requires),
        None => Cow::Borrowed(
            known.release(&package.name, &package.version).map_or(&[], |release| &release.requires),
        ),
    }
}

/// Returns the specifiers of a requirement; `None` for a URL or no specifier.
pub(crate) fn specifiers(requirement: &Requirement) -> Option<&VersionSpecifiers> {
    match &requirement.version_or_url {
        Some(VersionOrUrl::VersionSpecifier(specifiers)) => Some(specifiers),
        _ => None,
    }
}

/// Returns the version that a requirement pins.
pub(super) fn pinned(requirement: &Requirement) -> Option<Version> {
    let mut specifiers = specifiers(requirement)?.iter();
    let exact = specifiers.find(|one| *one.operator() == Operator::Equal)?;
    Some(exact.version().clone())
}

/// Returns the rule for a required package.
pub(super) fn rule_of(required: &str) -> Rule {
    match required {
        "numpy" => Rule::Numpy,
        "ml-dtypes" => Rule::MlDtypes,
        "protobuf" => Rule::Protobuf,
        "keras" => Rule::Keras,
        _ => Rule::UndeclaredNeed,
    }
}

/// Returns every extra of a package: an extra is evaluated if its package is installed.
pub(crate) fn extras(package: &Package, requires: &[Requirement]) -> Vec<ExtraName> {
    if !package.extras.is_empty() || package.requires.is_some() {
        return package.extras.clone();
    }
    let named = requires.iter().filter_map(|one| match one.marker.top_level_extra()? {
        MarkerExpression::Extra { name: MarkerValueExtra::Extra(name), .. } => Some(name),
        _ => None,
    });
    named.collect()
}
