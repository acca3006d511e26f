//! Files of packages: owned by two packages, missing, changed; and version files that disagree with
//! the metadata.

use std::collections::HashMap;

use super::findings::{Findings, View, problem, removal, to_version, told};
use crate::{
    diagnosis::Problem,
    package::Package,
    rule::{Rule, WarningRule},
};

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    owners(view, findings);
    for package in view.environment.packages.values() {
        lost(view, package, findings);
        changed(view, package, findings);
        metadata(view, package, findings);
    }
}

/// Reports files that two packages own, except for empty files, such as package markers, and those
/// in folders that several packages share.
fn owners(view: &View<'_>, findings: &mut Findings) {
    let mut owners: HashMap<&str, &Package> = HashMap::new();
    let mut pairs: Vec<(&Package, &Package, &str)> = Vec::new();
    for package in view.environment.packages.values() {
        for file in &package.files {
            let name = &file.path;
            let shared = file.size == Some(0)
                || name.contains("__pycache__")
                || name.starts_with("../")
                || name.starts_with("nvidia/__init__")
                || name.starts_with("jax_plugins/__init__")
                || name.contains(".dist-info/");
            if shared {
                continue;
            }
            match owners.get(name.as_str()) {
                Some(first) if first.name != package.name => {
                    if !pairs
                        .iter()
                        .any(|(one, other, _)| one.name == first.name && other.name == package.name)
                    {
                        pairs.push((first, package, name));
                    }
                }
                Some(_) => {}
                None => drop(owners.insert(name, package)),
            }
        }
    }
    let both = ("libtpu", "libtpu-nightly");
    if let (Some(one), Some(other)) = (view.package(both.0), view.package(both.1))
        && other.version.release().iter().any(|part| *part > 0)
        && pairs.is_empty()
        && !view.environment.has_files()
    {
        pairs.push((one, other, "libtpu"));
    }
    // The dozen libraries of two CUDA majors share folders.
    let is_nvidia = |package: &Package| package.name.starts_with("nvidia-");
    let (nvidia, others): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(one, other, _)| is_nvidia(one) && is_nvidia(other));
    let groups = others.into_iter().map(|pair| vec![pair]).chain(Some(nvidia));
    for group in groups.filter(|group| !group.is_empty()) {
        let found = owned_twice(view, &group);
        // Builds of TensorFlow have their own rule.
        let is_said = findings.problems.iter().any(|known| {
            known.rule == Rule::SameFiles
                && found.packages.iter().all(|package| known.packages.contains(package))
        });
        if !is_said {
            findings.problem(found);
        }
    }
}

/// Reports pairs of packages that own the same file.
fn owned_twice(view: &View<'_>, pairs: &[(&Package, &Package, &str)]) -> Problem {
    let side = |of: fn(&(&'_ Package, &'_ Package, &str)) -> String| -> Vec<String> {
        let mut names: Vec<String> = pairs.iter().map(of).collect();
        names.dedup();
        names
    };
    let first = side(|(one, _, _)| one.name.clone());
    let second = side(|(_, other, _)| other.name.clone());
    let packages: Vec<&str> = first.iter().chain(&second).map(String::as_str).collect();
    let told: Vec<String> = pairs
        .iter()
        .map(|(one, other, name)| {
            format!("{} and {} own the same files, such as {name}", told(one), told(other))
        })
        .collect();
    let mut found = problem(
        Rule::SameFiles,
        &packages,
        packages.join(", "),
        "one of them".to_owned(),
        told.join("; "),
    );
    for side in [second, first] {
        let changes = side.iter().map(|name| removal(view.environment, name));
        found.candidates.push(changes.collect());
    }
    found
}

fn lost(view: &View<'_>, package: &Package, findings: &mut Findings) {
    let Some(first) = package.missing.first() else { return };
    let said = findings.problems.iter().any(|known| {
        matches!(
            known.rule,
            Rule::PluginModuleMissing | Rule::PluginLibraryMissing | Rule::SameFiles
        ) && known.packages.contains(&package.name)
    });
    if said {
        return;
    }
    let message = format!(
        "{} of {} files of {} are not there, such as {first}",
        package.missing.len(),
        package.files.len(),
        told(package)
    );
    let mut found =
        problem(Rule::FilesMissing, &[&package.name], first.clone(), "a file".to_owned(), message);
    found.location = package.path.as_ref().map(|path| path.join("RECORD").display().to_string());
    found.candidates.push(vec![to_version(view.environment, &package.name, &package.version)]);
    findings.problem(found);
}

fn changed(view: &View<'_>, package: &Package, findings: &mut Findings) {
    let Some(first) = package.changed.first() else { return };
    let said = findings
        .problems
        .iter()
        .any(|known| known.rule == Rule::SameFiles && known.packages.contains(&package.name));
    if said {
        return;
    }
    let message = format!(
        "{} of {} files of {} differ from its record, such as {first}",
        package.changed.len(),
        package.files.len(),
        told(package)
    );
    let mut found = problem(
        Rule::FilesChanged,
        &[&package.name],
        first.clone(),
        "the file of RECORD".to_owned(),
        message,
    );
    found.location = package.path.as_ref().map(|path| path.join("RECORD").display().to_string());
    found.candidates.push(vec![to_version(view.environment, &package.name, &package.version)]);
    findings.problem(found);
}

/// Reports a version file that disagrees with the metadata: as a problem if another rule depends on
/// it.
fn metadata(view: &View<'_>, package: &Package, findings: &mut Findings) {
    let Some(said) =
        package.metadata_version.as_ref().map(|version| version.clone().without_local())
    else {
        return;
    };
    if said == package.public() {
        return;
    }
    let message = format!(
        "the metadata of {} says {said}, and its version file {}",
        package.name, package.version
    );
    let decides = findings.problems.iter().any(|known| known.packages.contains(&package.name));
    if !decides {
        return findings.warn(WarningRule::MetadataDiffers, &[&package.name], message);
    }
    let mut found = problem(
        Rule::MetadataDiffers,
        &[&package.name],
        package.version.to_string(),
        said.to_string(),
        message,
    );
    found.location = package.path.as_ref().map(|path| path.join("METADATA").display().to_string());
    found.candidates.push(vec![to_version(view.environment, &package.name, &said)]);
    findings.problem(found);
}
