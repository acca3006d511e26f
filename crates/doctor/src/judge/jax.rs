//! jax and jaxlib: jax compares the numbers of both version files at import.

use pep440_rs::Version;

use super::findings::{Findings, View, listed, problem, to_version, told};
use crate::{
    package::Package,
    rule::{Rule, WarningRule},
    warning::Unknown,
};

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    let Some(jax) = view.package("jax") else { return newer_than_known(view, findings) };
    findings.explain("jax", "jaxlib");
    let Some(jaxlib) = view.package("jaxlib") else {
        if view.environment.is_partial && brings_jaxlib(view, jax) {
            return newer_than_known(view, findings);
        }
        let message = format!("{} is installed, and jaxlib is not", told(jax));
        let mut found = problem(
            Rule::JaxlibMissing,
            &["jax", "jaxlib"],
            "none".to_owned(),
            format!("=={}", jax.public()),
            message,
        );
        found.symptom = Some("ModuleNotFoundError: jax requires jaxlib to be installed".to_owned());
        found.candidates.push(vec![to_version(view.environment, "jaxlib", &jax.version)]);
        return findings.problem(found);
    };
    newer_than_known(view, findings);
    let (has, wants) = (numbers(&jaxlib.version), numbers(&jax.version));
    if has > wants {
        too_new(view, jax, jaxlib, findings);
    } else if let Some(minimum) = minimum(view, jax)
        && has < numbers(&minimum)
    {
        too_old(view, jax, jaxlib, &minimum, findings);
    }
}

/// Returns true if an installer adds jaxlib to jax: jax declares it since 0.4.30.
fn brings_jaxlib(view: &View<'_>, jax: &Package) -> bool {
    let release = view.known.release("jax", &jax.version);
    release.is_none_or(|release| release.requires.iter().any(|one| one.name.as_ref() == "jaxlib"))
}

/// Returns the numbers that jax compares, without suffixes and trailing zeros.
fn numbers(version: &Version) -> Vec<u64> {
    let mut numbers = version.release().to_vec();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

/// Returns the oldest jaxlib for a jax: from its version file, the table, or its metadata.
fn minimum(view: &View<'_>, jax: &Package) -> Option<Version> {
    let declared = || {
        let requires = jax.requires.as_ref()?;
        let jaxlib = requires.iter().find(|one| one.name.as_ref() == "jaxlib")?;
        super::declared::specifiers(jaxlib)?
            .iter()
            .find(|one| *one.operator() == pep440_rs::Operator::GreaterThanEqual)
            .map(|one| one.version().clone())
    };
    let known = || view.known.release("jax", &jax.version)?.minimum_jaxlib.clone();
    jax.minimum_jaxlib.clone().or_else(known).or_else(declared)
}

fn too_new(view: &View<'_>, jax: &Package, jaxlib: &Package, findings: &mut Findings) {
    let mut found = problem(
        Rule::JaxlibTooNew,
        &["jax", "jaxlib"],
        jaxlib.version.to_string(),
        format!("<={}", jax.version),
        format!("jaxlib {} is newer than jax {}, which refuses it", jaxlib.version, jax.version),
    );
    found.symptom = Some(format!(
        "RuntimeError: jaxlib version {} is newer than and incompatible with jax version {}",
        jaxlib.version, jax.version
    ));
    found.location = jaxlib.version_file.as_ref().map(|path| path.display().to_string());
    both_ways(view, jax, jaxlib, &mut found.candidates);
    findings.problem(found);
}

fn too_old(
    view: &View<'_>,
    jax: &Package,
    jaxlib: &Package,
    minimum: &Version,
    findings: &mut Findings,
) {
    let mut found = problem(
        Rule::JaxlibTooOld,
        &["jax", "jaxlib"],
        jaxlib.version.to_string(),
        format!(">={minimum},<={}", jax.version),
        format!(
            "jaxlib {} is older than {minimum}, the oldest that jax {} takes",
            jaxlib.version, jax.version
        ),
    );
    found.symptom = Some(format!(
        "RuntimeError: jaxlib is version {}, but this version of jax requires version >= {minimum}",
        jaxlib.version
    ));
    found.location = jaxlib.version_file.as_ref().map(|path| path.display().to_string());
    both_ways(view, jax, jaxlib, &mut found.candidates);
    findings.problem(found);
}

/// Returns changes of jaxlib to the version of jax, or vice versa, with the plug-ins if there are
/// any.
fn both_ways(
    view: &View<'_>,
    jax: &Package,
    jaxlib: &Package,
    candidates: &mut Vec<Vec<crate::diagnosis::Change>>,
) {
    for (package, version) in [("jaxlib", &jax.version), ("jax", &jaxlib.version)] {
        let change = to_version(view.environment, package, version);
        candidates.push(vec![change.clone()]);
        let mut with_plugins = vec![change];
        for name in super::plugins::compared(view.environment) {
            with_plugins.push(to_version(view.environment, name, version));
        }
        if with_plugins.len() > 1 {
            candidates.push(with_plugins);
        }
    }
}

/// Reports frameworks newer than the tables: their files can be checked, but a lock has none.
fn newer_than_known(view: &View<'_>, findings: &mut Findings) {
    let as_of = view.known.as_of();
    let mut newer: Vec<&Package> = Vec::new();
    for name in ["jax", "jaxlib", "tensorflow"] {
        let Some(package) = view.environment.provider(name) else { continue };
        let newest = view.known.of(name).last();
        if newest.is_some_and(|newest| package.public() > newest.version) {
            newer.push(package);
        }
    }
    if newer.is_empty() {
        return;
    }
    if view.environment.has_files() {
        let names: Vec<&str> = newer.iter().map(|package| package.name.as_str()).collect();
        let message = format!(
            "{} {} newer than the tables of this build ({as_of})",
            listed(newer.iter().copied()),
            if newer.len() == 1 { "is" } else { "are" }
        );
        return findings.warn(WarningRule::NewerThanKnown, &names, message);
    }
    findings.unknown.extend(newer.into_iter().map(|package| Unknown {
        name: package.name.clone(),
        version: package.version.to_string(),
        why: format!(
            "newer than the tables of this build ({as_of}), and a lock has no files to judge"
        ),
    }));
}
