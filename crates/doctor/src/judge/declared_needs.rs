//! Checks declared requirements: `Requires-Dist` of one judged package on another.

use pep440_rs::{Operator, VersionSpecifiers};
use pep508_rs::Requirement;

use super::{
    declared::{extras, requires, rule_of, specifiers},
    findings::{Findings, View},
    unmet::Unmet,
};
use crate::{names::is_judged, package::Package, rule::Rule};

/// Returns the unmet declared requirements, except for pairs that another rule has reported.
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
            // Old releases of jaxlib name CUDA's libraries in an extra; the plug-in loads them, and
            // is checked for them.
            if package.name == "jaxlib" && name.starts_with("nvidia-") {
                continue;
            }
            // If several extras require the package, one that accepts it suffices: others are for
            // developers, and pin the versions that were tested.
            let is_of_extra = |one: &Requirement| !one.evaluate_markers(&markers, &[]);
            let takes = |one: &Requirement| {
                one.name == requirement.name
                    && is_of_extra(one)
                    && one.evaluate_markers(&markers, &extras)
                    && specifiers(one).is_none_or(|wanted| wanted.contains(&other.public()))
            };
            if is_of_extra(requirement) && requires.iter().any(takes) {
                continue;
            }
            // A pre-release counts as its release unless the specifier says otherwise.
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

/// Returns true if a specifier accepts some version of the installed major.
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
