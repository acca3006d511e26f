//! Needs that were measured or reported, and that the metadata does not declare, or declares
//! otherwise.

use std::collections::BTreeMap;

use pep440_rs::{Operator, Version, VersionSpecifier, VersionSpecifiers};

use super::{
    declared,
    findings::{Findings, View, problem, removal, to_specifiers, told},
};
use crate::{
    data::{Need, Release},
    diagnosis::{Change, Target},
    package::Package,
    rule::Rule,
};

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    // One cause once: all that the same package does not meet is one problem.
    let mut broken: BTreeMap<(Rule, String), Vec<(&Package, &Need)>> = BTreeMap::new();
    for package in view.environment.packages.values() {
        for need in view.known.needs_of(&package.name, &package.version) {
            let required = need.needs.name.as_ref();
            let Some(other) = view.environment.provider(required) else { continue };
            let Some(specifiers) = declared::specifiers(&need.needs) else { continue };
            let fits = specifiers.contains(&other.public());
            if !fits || need.replaces_declared() {
                findings.explain(&package.name, &other.name);
            }
            if !fits {
                broken
                    .entry((declared::rule_of(required), other.name.clone()))
                    .or_default()
                    .push((package, need));
            }
        }
    }
    for ((rule, name), needs) in broken {
        if let Some(other) = view.package(&name) {
            report(view, rule, other, &needs, findings);
        }
    }
}

fn report(
    view: &View<'_>,
    rule: Rule,
    other: &Package,
    needs: &[(&Package, &Need)],
    findings: &mut Findings,
) {
    let Some((_, need)) = needs.first() else { return };
    let mut packages = vec![other.name.as_str()];
    packages.extend(needs.iter().map(|(package, _)| package.name.as_str()));
    if rule == Rule::UndeclaredNeed {
        packages.rotate_left(1);
    }
    let all = needs.iter().filter_map(|(_, need)| declared::specifiers(&need.needs));
    let wanted: VersionSpecifiers = all.flat_map(|one| one.iter().cloned()).collect();
    let expected = Target::Specifiers(wanted.clone()).to_string();
    let names: Vec<String> = needs.iter().map(|(package, _)| told(package)).collect();
    let verb = if names.len() == 1 { "needs" } else { "need" };
    let mut found = problem(
        rule,
        &packages,
        other.version.to_string(),
        expected.clone(),
        format!(
            "{} {verb} {} {expected}, and it is {}",
            names.join(", "),
            other.name,
            other.version
        ),
    );
    found.symptom = need.symptom.clone().or_else(|| symptom(rule, other));
    found.location = need.source.clone();
    let target = bounded(view, other, narrowed(view, needs, other));
    found.candidates.push(vec![to_specifiers(view.environment, &other.name, target)]);
    // The same need of a newer release of the package that has it.
    let moved: Option<Vec<Change>> =
        needs.iter().map(|(package, _)| newer(view, package, other)).collect();
    found.candidates.extend(moved);
    if rule == Rule::UndeclaredNeed {
        found.candidates.push(
            needs.iter().map(|(package, _)| removal(view.environment, &package.name)).collect(),
        );
    }
    findings.problem(found);
}

fn symptom(rule: Rule, other: &Package) -> Option<String> {
    match rule {
        Rule::Numpy if other.minor().0 >= 2 => Some(format!(
            "A module that was compiled using NumPy 1.x cannot be run in NumPy {} as it may crash",
            other.version
        )),
        Rule::Keras => Some("ImportError or AttributeError out of tensorflow.keras".to_owned()),
        _ => None,
    }
}

/// The needs and what their packages declare of the other one, as few bounds as possible.
fn narrowed(view: &View<'_>, needs: &[(&Package, &Need)], other: &Package) -> VersionSpecifiers {
    let mut parts: Vec<VersionSpecifier> = Vec::new();
    let markers = view.environment.markers();
    for (package, need) in needs {
        parts.extend(
            declared::specifiers(&need.needs).into_iter().flat_map(|one| one.iter().cloned()),
        );
        for requirement in declared::requires(view.known, package).iter() {
            let named = view.environment.provider(requirement.name.as_ref());
            let is_meant = named.is_some_and(|named| named.name == other.name);
            let applies =
                markers.as_ref().is_some_and(|markers| requirement.evaluate_markers(markers, &[]));
            if is_meant && applies {
                parts.extend(
                    declared::specifiers(requirement)
                        .into_iter()
                        .flat_map(|one| one.iter().cloned()),
                );
            }
        }
    }
    let is_lower = |one: &&VersionSpecifier| {
        matches!(one.operator(), Operator::GreaterThan | Operator::GreaterThanEqual)
    };
    let is_upper = |one: &&VersionSpecifier| {
        matches!(one.operator(), Operator::LessThan | Operator::LessThanEqual)
    };
    let lower =
        parts.iter().filter(is_lower).max_by(|one, other| one.version().cmp(other.version()));
    let upper =
        parts.iter().filter(is_upper).min_by(|one, other| one.version().cmp(other.version()));
    let rest = parts.iter().filter(|one| !is_lower(one) && !is_upper(one));
    let mut kept: Vec<VersionSpecifier> =
        lower.into_iter().chain(upper).chain(rest).cloned().collect();
    kept.dedup();
    kept.into_iter().collect()
}

/// A specifier with a lower bound: the oldest known MAJOR.MINOR that satisfies it.
fn bounded(view: &View<'_>, other: &Package, wanted: VersionSpecifiers) -> VersionSpecifiers {
    let mut parts: Vec<VersionSpecifier> = Vec::new();
    if !wanted.iter().any(VersionSpecifier::has_lower_bound) {
        let oldest =
            view.known.of(&other.name).iter().find(|release| wanted.contains(&release.version));
        parts.extend(oldest.map(|release| {
            let (major, minor) = crate::package::minor(&release.version);
            VersionSpecifier::greater_than_equal_version(Version::new([major, minor]))
        }));
    }
    for part in wanted.iter() {
        if !parts.contains(part) {
            parts.push(part.clone());
        }
    }
    parts.into_iter().collect()
}

/// The first newer release that has no quarrel with what is installed.
fn newer(view: &View<'_>, package: &Package, other: &Package) -> Option<Change> {
    let fits = |release: &&Release| {
        let needs = view.known.needs_of(&package.name, &release.version);
        let mut of_other = needs.filter(|need| {
            view.environment
                .provider(need.needs.name.as_ref())
                .is_some_and(|found| found.name == other.name)
        });
        let measured = of_other.all(|need| {
            declared::specifiers(&need.needs)
                .is_none_or(|specifiers| specifiers.contains(&other.public()))
        });
        let markers = view.environment.markers();
        let mut declared = release.requires.iter().filter(|one| one.name.as_ref() == other.name);
        measured
            && declared.all(|one| {
                markers.as_ref().is_some_and(|markers| !one.evaluate_markers(markers, &[]))
                    || declared::specifiers(one)
                        .is_none_or(|specifiers| specifiers.contains(&other.public()))
            })
    };
    let mut releases =
        view.known.of(&package.name).iter().filter(|release| release.version.is_stable());
    let release = releases.find(|release| release.version > package.public() && fits(release))?;
    let (major, minor) = crate::package::minor(&release.version);
    Some(to_specifiers(view.environment, &package.name, format!(">={major}.{minor}").parse().ok()?))
}
