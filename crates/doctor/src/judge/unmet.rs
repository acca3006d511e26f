//! Unmet requirements of packages on others: one finding per wrong package, with all packages that
//! it breaks.

use std::collections::{BTreeMap, BTreeSet};

use pep440_rs::{Operator, Version, VersionSpecifier, VersionSpecifiers};

use super::{
    declared,
    findings::{Findings, View, listed, problem, removal, to_specifiers, told},
};
use crate::{
    data::{Need, Release},
    diagnosis::{Change, Problem, Target},
    package::Package,
    rule::Rule,
};

/// A requirement that the installed version does not satisfy.
pub(super) struct Unmet<'a> {
    /// The package with the requirement.
    pub(super) package: &'a Package,
    /// The package that does not satisfy it.
    pub(super) other: &'a Package,
    /// The versions that would satisfy it.
    pub(super) wanted: VersionSpecifiers,
    /// The rule that it breaks, if it is the only one.
    pub(super) rule: Rule,
    /// The row of the table for a measured or reported requirement; `None` for a declared one.
    pub(super) need: Option<&'a Need>,
}

/// The reason why a version is wrong. A package that is too old for one package and too new for
/// another has two causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    TooOld,
    TooNew,
}

/// The wrong package and its side; for NVIDIA's libraries the package that pins them, because one
/// release pins a dozen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Package(String, Side),
    Pins(String),
}

impl Unmet<'_> {
    fn side(&self) -> Side {
        let found = self.other.public();
        let failed = self.wanted.iter().find(|one| !one.contains(&found));
        match failed {
            Some(one) if *one.version() > found => Side::TooOld,
            _ => Side::TooNew,
        }
    }

    fn cause(&self) -> Cause {
        if self.other.name.starts_with("nvidia-") {
            Cause::Pins(self.package.name.clone())
        } else {
            Cause::Package(self.other.name.clone(), self.side())
        }
    }
}

/// Reports one problem per cause.
pub(super) fn report(view: &View<'_>, unmet: Vec<Unmet<'_>>, findings: &mut Findings) {
    let mut causes: BTreeMap<Cause, Vec<Unmet<'_>>> = BTreeMap::new();
    for one in unmet {
        causes.entry(one.cause()).or_default().push(one);
    }
    for (cause, all) in causes {
        let is_pinned = matches!(cause, Cause::Pins(_)) && all.len() > 1;
        let found = if is_pinned { pins(view, &all) } else { wrong(view, &all) };
        if let Some(found) = found {
            findings.problem(found);
        }
    }
}

/// Reports one package with a version that others do not accept.
fn wrong(view: &View<'_>, all: &[Unmet<'_>]) -> Option<Problem> {
    let first = all.iter().find(|one| one.need.is_some()).or_else(|| all.first())?;
    let other = first.other;
    let rule = all.iter().map(|one| one.rule).min_by_key(|rule| match rule {
        Rule::Requirement => 2,
        Rule::UndeclaredNeed => 1,
        _ => 0,
    })?;
    let mut requirers: Vec<&Package> = all.iter().map(|one| one.package).collect();
    requirers.dedup_by(|one, other| one.name == other.name);
    let mut packages: Vec<&str> = requirers.iter().map(|one| one.name.as_str()).collect();
    match rule {
        Rule::Requirement | Rule::UndeclaredNeed => packages.push(&other.name),
        _ => packages.insert(0, &other.name),
    }
    let expected = Target::Specifiers(joint(all.iter().flat_map(|one| one.wanted.iter().cloned())));
    let verb = match (all.iter().any(|one| one.need.is_some()), requirers.len() > 1) {
        (true, true) => "need",
        (true, false) => "needs",
        (false, true) => "require",
        (false, false) => "requires",
    };
    let mut found = problem(
        rule,
        &packages,
        other.version.to_string(),
        expected.to_string(),
        format!(
            "{} {verb} {} {expected}, and it is {}",
            listed(requirers.iter().copied()),
            other.name,
            other.version
        ),
    );
    found.symptom =
        all.iter().find_map(|one| one.need?.symptom.clone()).or_else(|| symptom(rule, other));
    let metadata = || first.package.path.as_ref().map(|path| path.join("METADATA"));
    found.location = all
        .iter()
        .find_map(|one| one.need?.source.clone())
        .or_else(|| metadata().map(|path| path.display().to_string()));
    found.candidates = candidates(view, all, other, rule);
    Some(found)
}

/// Returns the conjunction of several requirements' bounds.
fn bounds(all: &[Unmet<'_>]) -> impl Iterator<Item = VersionSpecifier> + Clone {
    all.iter().flat_map(|one| one.wanted.iter().cloned())
}

/// Returns the removal of the packages with the requirements; for a plug-in, of both its packages.
fn removals(view: &View<'_>, all: &[Unmet<'_>]) -> Vec<Change> {
    let halves = |name: &str| [name.to_owned(), name.replace("-plugin", "-pjrt")];
    let names: BTreeSet<String> = all.iter().flat_map(|one| halves(&one.package.name)).collect();
    let there = names.iter().filter(|name| view.package(name).is_some());
    there.map(|name| removal(view.environment, name)).collect()
}

fn candidates(view: &View<'_>, all: &[Unmet<'_>], other: &Package, rule: Rule) -> Vec<Vec<Change>> {
    let environment = view.environment;
    let wanted = bounds(all);
    let of_these = all.iter().flat_map(|one| declared_bounds(view, one.package, other));
    let of_everyone =
        environment.packages.values().flat_map(|package| declared_bounds(view, package, other));
    let change = |bounds: VersionSpecifiers| {
        vec![to_specifiers(environment, &other.name, bounded(view, other, bounds))]
    };
    let mut candidates = vec![
        change(joint(wanted.clone().chain(of_these))),
        change(joint(wanted.chain(of_everyone))),
    ];
    let mut moved: Vec<Change> = Vec::new();
    for one in all {
        if moved.iter().any(|change| change.package == one.package.name) {
            continue;
        }
        let Some(change) = newer(view, one, other) else {
            moved.clear();
            break;
        };
        moved.push(change);
    }
    candidates.push(moved);
    if rule == Rule::UndeclaredNeed {
        // jax refuses a jaxlib newer than itself.
        if other.name == "jaxlib" && view.package("jax").is_some() {
            let both = |name| to_specifiers(environment, name, joint(bounds(all)));
            candidates.push(vec![both("jax"), both("jaxlib")]);
        }
        candidates.push(removals(view, all));
    }
    candidates
}

/// Reports NVIDIA libraries whose versions differ from one package's pins.
fn pins(view: &View<'_>, all: &[Unmet<'_>]) -> Option<Problem> {
    let package = all.first()?.package;
    let mut packages = vec![package.name.as_str()];
    packages.extend(all.iter().map(|one| one.other.name.as_str()));
    let named = |of: fn(&Unmet<'_>) -> String| {
        let names = all.iter().map(|one| format!("{} {}", one.other.name, of(one)));
        names.collect::<Vec<_>>().join(", ")
    };
    let wanted = |one: &Unmet<'_>| Target::Specifiers(one.wanted.clone()).to_string();
    let mut found = problem(
        Rule::Requirement,
        &packages,
        named(|one| one.other.version.to_string()),
        named(wanted),
        format!(
            "{} requires other versions of {} libraries of NVIDIA: {}",
            told(package),
            all.len(),
            all.iter()
                .map(|one| format!("{} {}, not {}", one.other.name, wanted(one), one.other.version))
                .collect::<Vec<_>>()
                .join("; ")
        ),
    );
    found.location = package.path.as_ref().map(|path| path.join("METADATA").display().to_string());
    let change =
        |one: &Unmet<'_>| to_specifiers(view.environment, &one.other.name, one.wanted.clone());
    found.candidates.push(all.iter().map(change).collect());
    let fits = |release: &&Release| {
        release.version.is_stable()
            && all.iter().all(|one| takes(view, &release.requires, one.other))
    };
    let release = view.known.of(&package.name).iter().rev().find(fits);
    if let Some(exact) = release.and_then(|release| exactly(&release.version)) {
        found.candidates.push(vec![to_specifiers(view.environment, &package.name, exact)]);
    }
    Some(found)
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

/// Returns the bounds that a package declares for another one.
fn declared_bounds(view: &View<'_>, package: &Package, other: &Package) -> Vec<VersionSpecifier> {
    let markers = view.environment.markers();
    let mut bounds = Vec::new();
    for requirement in declared::requires(view.known, package).iter() {
        let named = view.environment.provider(requirement.name.as_ref());
        let is_meant = named.is_some_and(|named| named.name == other.name);
        let applies =
            markers.as_ref().is_some_and(|markers| requirement.evaluate_markers(markers, &[]));
        if is_meant && applies {
            let specifiers = declared::specifiers(requirement).into_iter();
            bounds.extend(specifiers.flat_map(|one| one.iter().cloned()));
        }
    }
    bounds
}

/// Combines several bounds into as few as possible.
pub(super) fn joint(bounds: impl Iterator<Item = VersionSpecifier>) -> VersionSpecifiers {
    let parts: Vec<VersionSpecifier> = bounds.collect();
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
    let mut kept: Vec<VersionSpecifier> = lower.into_iter().chain(upper).cloned().collect();
    for one in parts.iter().filter(|one| !is_lower(one) && !is_upper(one)) {
        if !kept.contains(one) {
            kept.push(one.clone());
        }
    }
    kept.into_iter().collect()
}

/// Adds a lower bound to a specifier: the oldest known MAJOR.MINOR that satisfies it.
fn bounded(view: &View<'_>, other: &Package, wanted: VersionSpecifiers) -> VersionSpecifiers {
    let has_bound = |one: &VersionSpecifier| {
        one.has_lower_bound() || matches!(one.operator(), Operator::Equal | Operator::EqualStar)
    };
    if wanted.iter().any(has_bound) {
        return wanted;
    }
    let oldest =
        view.known.of(&other.name).iter().find(|release| wanted.contains(&release.version));
    let lower = oldest.map(|release| {
        let (major, minor) = crate::package::minor(&release.version);
        VersionSpecifier::greater_than_equal_version(Version::new([major, minor]))
    });
    lower.into_iter().chain(wanted.iter().cloned()).collect()
}

/// Returns true if requirements accept the installed version of another package.
fn takes(view: &View<'_>, requires: &[pep508_rs::Requirement], other: &Package) -> bool {
    let markers = view.environment.markers();
    requires.iter().filter(|one| one.name.as_ref() == other.name).all(|one| {
        markers.as_ref().is_some_and(|markers| !one.evaluate_markers(markers, &[]))
            || declared::specifiers(one).is_none_or(|wanted| wanted.contains(&other.public()))
    })
}

fn exactly(version: &Version) -> Option<VersionSpecifiers> {
    format!("=={version}").parse().ok()
}

/// Returns a release of the package with the requirement that accepts the installed packages: the
/// next newer one for a measured requirement, or else the newest.
fn newer(view: &View<'_>, unmet: &Unmet<'_>, other: &Package) -> Option<Change> {
    let package = unmet.package;
    let fits = |release: &&Release| {
        let needs = view.known.needs_of(&package.name, &release.version);
        let mut of_other = needs.filter(|need| {
            let found = view.environment.provider(need.needs.name.as_ref());
            found.is_some_and(|found| found.name == other.name)
        });
        release.version.is_stable()
            && of_other.all(|need| {
                declared::specifiers(&need.needs)
                    .is_none_or(|specifiers| specifiers.contains(&other.public()))
            })
            && takes(view, &release.requires, other)
    };
    let releases = view.known.of(&package.name).iter();
    let wanted = if unmet.need.is_some() {
        let mut newer = releases.filter(|release| release.version > package.public());
        let (major, minor) = crate::package::minor(&newer.find(fits)?.version);
        format!(">={major}.{minor}").parse().ok()?
    } else {
        exactly(&releases.rev().find(fits)?.version)?
    };
    Some(to_specifiers(view.environment, &package.name, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joint_bounds_are_the_narrowest() {
        let joined = |texts: &[&str]| {
            let all = texts.iter().map(|text| text.parse::<VersionSpecifiers>().unwrap());
            let parts: Vec<_> =
                all.flat_map(|one| one.iter().cloned().collect::<Vec<_>>()).collect();
            Target::Specifiers(joint(parts.into_iter())).to_string()
        };
        assert_eq!(joined(&[">=2.0", ">=2.1,<3", "<2.6"]), ">=2.1,<2.6");
        assert_eq!(joined(&["==0.5.1", "==0.5.1", "!=0.4"]), "!=0.4,==0.5.1");
    }
}
