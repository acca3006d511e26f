//! Checks the requirements that packages declare: `Requires-Dist` of one judged package on another.

use std::borrow::Cow;

use pep440_rs::{Operator, Version, VersionSpecifiers};
use pep508_rs::{ExtraName, MarkerExpression, MarkerValueExtra, Requirement, VersionOrUrl};

use super::{
    findings::{Findings, View},
    unmet::Unmet,
};
use crate::{data::Releases, names::is_judged, package::Package, rule::Rule};

/// The requirements of a package: by its metadata, else by the table.
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

/// The specifiers of a requirement; `None` for an address, or for none.
pub(crate) fn specifiers(requirement: &Requirement) -> Option<&VersionSpecifiers> {
    match &requirement.version_or_url {
        Some(VersionOrUrl::VersionSpecifier(specifiers)) => Some(specifiers),
        _ => None,
    }
}

/// The version that a requirement pins.
pub(super) fn pinned(requirement: &Requirement) -> Option<Version> {
    let mut specifiers = specifiers(requirement)?.iter();
    let exact = specifiers.find(|one| *one.operator() == Operator::Equal)?;
    Some(exact.version().clone())
}

/// The rule about a package that others were built for.
pub(super) fn rule_of(required: &str) -> Rule {
    match required {
        "numpy" => Rule::Numpy,
        "ml-dtypes" => Rule::MlDtypes,
        "protobuf" => Rule::Protobuf,
        "keras" => Rule::Keras,
        _ => Rule::UndeclaredNeed,
    }
}

/// The declared requirements that are not met, but for those of pairs of which a rule has spoken.
pub(super) fn unmet<'a>(view: &View<'a>, findings: &Findings) -> Vec<Unmet<'a>> {
    let mut unmet = Vec::new();
    let Some(markers) = view.environment.markers() else { return unmet };
    for package in view.environment.packages.values() {
        let requires = requires(view.known, package);
        let extras = extras(package, &requires);
        for requirement in requires.iter() {
            let name = requirement.name.as_ref();
            if !is_judged(name) || !requirement.evaluate_markers(&markers, &extras) {
                continue;
            }
            let Some(other) = view.environment.provider(name) else { continue };
            let Some(wanted) = specifiers(requirement) else { continue };
            let known = (package.name.clone(), other.name.clone());
            if wanted.contains(&other.public()) || findings.explained.contains(&known) {
                continue;
            }
            // A pre-release is as good as its release where nothing says more.
            if !other.version.is_stable() && wanted.contains(&other.version.only_release()) {
                continue;
            }
            let rule = match rule_of(&other.name) {
                Rule::UndeclaredNeed => Rule::Requirement,
                // Bounds within one major are only declared.
                Rule::Numpy | Rule::Keras if takes_major(wanted, other) => Rule::Requirement,
                rule => rule,
            };
            unmet.push(Unmet { package, other, wanted: wanted.clone(), rule, need: None });
        }
    }
    unmet
}

/// Every extra of a package: one counts if the package that it brings is there.
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

/// Tells whether a specifier takes some version of the major that is installed.
fn takes_major(wanted: &VersionSpecifiers, other: &Package) -> bool {
    let (major, _) = other.minor();
    let mut bounds = wanted.iter();
    bounds.all(|one| {
        let bound = one.version().release();
        let (of, rest) = bound.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        match one.operator() {
            Operator::LessThan => of > major || (of == major && rest.iter().any(|part| *part > 0)),
            Operator::LessThanEqual => of >= major,
            Operator::GreaterThan | Operator::GreaterThanEqual => of <= major,
            Operator::NotEqual | Operator::NotEqualStar => true,
            _ => of == major,
        }
    })
}
