//! Checks Python, the machine and the C library against the packages.

use std::collections::BTreeMap;

use pep440_rs::Version;

use super::{
    findings::{Findings, View, listed, problem, to_version},
    unmet::joint,
};
use crate::{
    diagnosis::{Change, Target},
    package::{Package, minor},
    rule::{Rule, WarningRule},
};

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    // All packages share one system, so all mismatches are one problem.
    if let Some(python) = &view.environment.python {
        requires_python(view, python, findings);
        abi(view, python, findings);
    }
    machine(view, findings);
    glibc(view, findings);
    for (name, versions) in &view.environment.duplicates {
        let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
        let message = format!("{name} has metadata of several versions: {}", versions.join(", "));
        findings.warn(WarningRule::DuplicateMetadata, &[name], message);
    }
}

fn names<'a>(packages: &[&'a Package]) -> Vec<&'a str> {
    packages.iter().map(|package| package.name.as_str()).collect()
}

fn is_or_are(packages: &[&Package], one: &'static str, several: &'static str) -> &'static str {
    if packages.len() == 1 { one } else { several }
}

/// Returns changes that reinstall packages in their versions.
fn again(view: &View<'_>, packages: &[&Package]) -> Vec<Change> {
    let change = |package: &&Package| to_version(view.environment, &package.name, &package.version);
    packages.iter().map(change).collect()
}

fn requires_python(view: &View<'_>, python: &Version, findings: &mut Findings) {
    // A bound with a patch is ignored if only MAJOR.MINOR of Python is known.
    let python = if python.release().len() < 3 {
        let (major, minor) = minor(python);
        Version::new([major, minor, 99])
    } else {
        python.clone()
    };
    let mut bounds = Vec::new();
    let mut packages: Vec<&Package> = Vec::new();
    for package in view.environment.packages.values() {
        let from_table = || view.known.release(&package.name, &package.version)?.python.as_ref();
        let wanted = match &package.requires_python {
            Some(wanted) => Some(wanted),
            // Metadata without the field accept every Python.
            None if package.requires.is_some() => None,
            None => from_table(),
        };
        if let Some(wanted) = wanted.filter(|wanted| !wanted.contains(&python)) {
            bounds.extend(wanted.iter().cloned());
            packages.push(package);
        }
    }
    if packages.is_empty() {
        return;
    }
    let expected = Target::Specifiers(joint(bounds.into_iter())).to_string();
    let (major, minor) = minor(&python);
    let mut found = problem(
        Rule::PythonVersion,
        &names(&packages),
        format!("{major}.{minor}"),
        expected.clone(),
        format!(
            "{} {} for Python {expected}, and this is Python {major}.{minor}",
            listed(packages.iter().copied()),
            is_or_are(&packages, "is", "are")
        ),
    );
    let release = |package: &&Package| {
        let newest = view.known.of(&package.name).iter().rev().find(|release| {
            release.version.is_stable()
                && release.python.as_ref().is_some_and(|wanted| wanted.contains(&python))
        });
        Some(to_version(view.environment, &package.name, &newest?.version))
    };
    found.candidates.extend(packages.iter().map(release).collect::<Option<Vec<Change>>>());
    found.words = Some(format!(
        "use a Python {expected}, or another release of {}",
        names(&packages).join(", ")
    ));
    findings.problem(found);
}

/// Splits a wheel's tag: interpreters, binary interfaces, platforms.
fn parts(tag: &str) -> Option<(&str, &str, &str)> {
    let mut parts = tag.splitn(3, '-');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// Returns the interpreter for which a package was installed, if it differs: from a tag of its
/// wheel, or the name of an extension module.
fn other_python(package: &Package, python: &Version, free_threaded: bool) -> Option<String> {
    let (major, minor) = minor(python);
    let own = format!("cp{major}{minor}");
    let fits = |tag: &String| {
        let Some((interpreters, abis, _)) = parts(tag) else { return true };
        let mut abis = abis.split('.');
        // A build without the lock imports only modules of its own binary interface, which no other
        // build imports.
        let is_free = |abi: &str| abi.starts_with("cp") && abi.ends_with('t');
        let takes = |abi: &str| abi == "none" || is_free(abi) == free_threaded;
        if !abis.clone().any(takes) {
            return false;
        }
        let stable = abis.any(|abi| abi == "none" || (abi == "abi3" && !free_threaded));
        interpreters.split('.').any(|interpreter| {
            if interpreter.starts_with("py") || interpreter == own {
                return true;
            }
            let number =
                interpreter.strip_prefix("cp3").and_then(|minor| minor.parse::<u64>().ok());
            stable && major == 3 && number.is_some_and(|number| number <= minor)
        })
    };
    if !package.tags.is_empty() && !package.tags.iter().any(fits) {
        return package.tags.first().cloned();
    }
    let own = format!("{major}{minor}{}", if free_threaded { "t" } else { "" });
    let mut modules = package.files.iter().filter_map(|file| cpython_of(&file.path)).peekable();
    let first = modules.peek().cloned()?;
    (!modules.any(|version| version == own)).then(|| format!("cpython-{first}"))
}

fn abi(view: &View<'_>, python: &Version, findings: &mut Findings) {
    let installed = view.environment.packages.values();
    let free = view.environment.free_threaded;
    let wrong: Vec<(&Package, String)> = installed
        .filter_map(|package| Some((package, other_python(package, python, free)?)))
        .collect();
    let Some((first, tag)) = wrong.first() else { return };
    let packages: Vec<&Package> = wrong.iter().map(|(package, _)| *package).collect();
    let (major, minor) = minor(python);
    let t = if free { "t" } else { "" };
    let mut found = problem(
        Rule::PythonAbi,
        &names(&packages),
        tag.clone(),
        format!("cp{major}{minor}{t}"),
        format!(
            "{} {} installed for {tag}, and this is Python {major}.{minor}{t}{}",
            listed(packages.iter().copied()),
            is_or_are(&packages, "was", "were"),
            if free { ", the free-threaded build" } else { "" }
        ),
    );
    found.symptom = Some(format!("ImportError at import {}", first.name.replace('-', "_")));
    found.location = first.path.as_ref().map(|path| path.join("WHEEL").display().to_string());
    found.candidates.push(again(view, &packages));
    findings.problem(found);
}

/// Returns the Python of an extension module: `312` for `_x.cpython-312-x86_64-linux-gnu.so`, and
/// `313t` for a free-threaded one.
fn cpython_of(name: &str) -> Option<String> {
    let (_, rest) = name.rsplit_once(".cpython-")?;
    let number = rest.split(['-', '.']).next()?;
    let digits = number.strip_suffix('t').unwrap_or(number);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    (rest.ends_with(".so") && is_number).then(|| number.to_owned())
}

/// Returns the machines of a tag, with the names in the platform part.
fn machine_of(platform: &str) -> Option<&'static str> {
    const MACHINES: [&str; 6] = ["x86_64", "aarch64", "arm64", "i686", "ppc64le", "s390x"];
    MACHINES.into_iter().find(|machine| platform.ends_with(machine))
}

/// Returns the system of a tag, with the environment's name for it; `None` for any.
fn system_of(platform: &str) -> Option<&'static str> {
    if platform.starts_with("macosx") {
        Some("darwin")
    } else if platform.starts_with("win") {
        Some("win32")
    } else {
        platform.contains("linux").then_some("linux")
    }
}

/// Returns the system or machine for which a package was built, if it differs: from its wheel's
/// tags, or else from its libraries.
fn other_machine(view: &View<'_>, package: &Package) -> Option<String> {
    let environment = view.environment;
    let system = environment.system;
    let machine = environment.machine.as_deref();
    let is_machine = |other: &str| {
        machine.is_none_or(|own| {
            other == own || matches!((other, own), ("arm64", "aarch64") | ("aarch64", "arm64"))
        })
    };
    let is_own = |platform: &str| {
        system_of(platform).is_none_or(|of| of == system)
            && (platform.ends_with("universal2") || machine_of(platform).is_none_or(is_machine))
    };
    let mut platforms = package
        .tags
        .iter()
        .filter_map(|tag| parts(tag))
        .flat_map(|(_, _, platforms)| platforms.split('.'))
        .peekable();
    let first = platforms.peek().map(|platform| (*platform).to_owned());
    let of_tag = first.filter(|_| !platforms.any(is_own)).map(|platform| {
        let machine = machine_of(&platform).filter(|_| system_of(&platform) == Some(system));
        machine.map(str::to_owned).unwrap_or(platform)
    });
    let libraries = environment.needs.iter().filter(|need| need.package == package.name);
    let mut foreign = libraries.filter(|need| {
        need.system != system
            || (!need.machines.is_empty() && !need.machines.iter().any(|one| is_machine(one)))
    });
    let of_library = || {
        let need = foreign.next()?;
        let machines = need.machines.join(", ");
        Some(if need.system == system { machines } else { format!("{} {machines}", need.system) })
    };
    of_tag.or_else(of_library)
}

fn machine(view: &View<'_>, findings: &mut Findings) {
    let mut foreign: BTreeMap<String, Vec<&Package>> = BTreeMap::new();
    for package in view.environment.packages.values() {
        if let Some(other) = other_machine(view, package) {
            foreign.entry(other).or_default().push(package);
        }
    }
    let environment = view.environment;
    let own = environment.machine.as_deref().unwrap_or(environment.system);
    for (other, packages) in foreign {
        let mut found = problem(
            Rule::Architecture,
            &names(&packages),
            other.clone(),
            own.to_owned(),
            format!(
                "{} {} for {other}, and this machine is {own}",
                listed(packages.iter().copied()),
                is_or_are(&packages, "is", "are")
            ),
        );
        found.candidates.push(again(view, &packages));
        findings.problem(found);
    }
}

/// Returns the minimum C library of a tag.
fn glibc_of(platform: &str) -> Option<(u64, u64)> {
    if platform.starts_with("manylinux2014") {
        return Some((2, 17));
    }
    if platform.starts_with("manylinux2010") {
        return Some((2, 12));
    }
    if platform.starts_with("manylinux1_") {
        return Some((2, 5));
    }
    let mut numbers = platform.strip_prefix("manylinux_")?.splitn(3, '_');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the C library that a package requires: from its tag, or from its libraries, with the
/// library that requires it.
fn glibc_needed(view: &View<'_>, package: &Package) -> Option<((u64, u64), Option<String>)> {
    // A tag of several platforms fits if one of them does.
    let platforms = package
        .tags
        .iter()
        .filter_map(|tag| parts(tag))
        .flat_map(|(_, _, platform)| platform.split('.'));
    let of_tag = platforms.filter_map(glibc_of).min();
    let libraries = view.environment.needs.iter().filter(|need| need.package == package.name);
    let library = libraries.max_by_key(|need| need.glibc).filter(|need| need.glibc.is_some());
    let needed = of_tag.max(library.and_then(|need| need.glibc))?;
    let library = library.filter(|need| need.glibc == Some(needed));
    Some((needed, library.map(|need| need.path.display().to_string())))
}

fn glibc(view: &View<'_>, findings: &mut Findings) {
    let Some(own) = view.environment.glibc else { return };
    let installed = view.environment.packages.values();
    let too_new: Vec<_> = installed
        .filter_map(|package| Some((package, glibc_needed(view, package)?)))
        .filter(|(_, (needed, _))| *needed > own)
        .collect();
    let Some((_, (needed, location))) = too_new.iter().max_by_key(|(_, (needed, _))| *needed)
    else {
        return;
    };
    let packages: Vec<&Package> = too_new.iter().map(|(package, _)| *package).collect();
    let (told_own, told_needed) =
        (format!("{}.{}", own.0, own.1), format!("{}.{}", needed.0, needed.1));
    let mut found = problem(
        Rule::Glibc,
        &names(&packages),
        told_own.clone(),
        format!(">={told_needed}"),
        format!(
            "{} {} glibc {told_needed}, and the system has {told_own}",
            listed(packages.iter().copied()),
            is_or_are(&packages, "needs", "need")
        ),
    );
    found.symptom = Some(format!("version `GLIBC_{told_needed}' not found"));
    found.location.clone_from(location);
    found.words = Some(format!(
        "take a system with glibc {told_needed} or newer, or an older release of {}",
        names(&packages).join(", ")
    ));
    findings.problem(found);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_of_tags_is_that_of_their_platform() {
        for (platform, glibc) in [
            ("manylinux2014_x86_64", Some((2, 17))),
            ("manylinux_2_31_x86_64", Some((2, 31))),
            ("macosx_12_0_arm64", None),
            ("manylinux_2_x", None),
        ] {
            assert_eq!(glibc_of(platform), glibc, "{platform}");
        }
    }

    #[test]
    fn cpython_of_extension_modules_is_in_their_names() {
        assert_eq!(cpython_of("numpy/_x.cpython-312-x86_64-linux-gnu.so").as_deref(), Some("312"));
        assert_eq!(cpython_of("jaxlib/_jax.so"), None);
        assert_eq!(cpython_of("a/b.cpython-312.pyc"), None);
    }
}
