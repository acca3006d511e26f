//! Python, the machine and the C library below the packages.

use pep440_rs::Version;

use super::findings::{Findings, View, problem, to_version, told};
use crate::{
    package::{Package, minor},
    rule::{Rule, WarningRule},
};

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    for package in view.environment.packages.values() {
        if let Some(python) = &view.environment.python {
            requires_python(view, package, python, findings);
            abi(view, package, python, findings);
        }
        machine(view, package, findings);
        glibc(view, package, findings);
    }
    for (name, versions) in &view.environment.duplicates {
        let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
        let message = format!("{name} has metadata of several versions: {}", versions.join(", "));
        findings.warn(WarningRule::DuplicateMetadata, &[name], message);
    }
}

fn requires_python(view: &View<'_>, package: &Package, python: &Version, findings: &mut Findings) {
    let from_table = || view.known.release(&package.name, &package.version)?.python.as_ref();
    let wanted = match &package.requires_python {
        Some(wanted) => Some(wanted),
        // Metadata without the field takes every Python.
        None if package.requires.is_some() => None,
        None => from_table(),
    };
    let Some(wanted) = wanted else { return };
    // A bound with a patch is not held against a Python of which only MAJOR.MINOR is known.
    let python = if python.release().len() < 3 {
        let (major, minor) = minor(python);
        Version::new([major, minor, 99])
    } else {
        python.clone()
    };
    if wanted.contains(&python) {
        return;
    }
    let expected = crate::diagnosis::Target::Specifiers(wanted.clone()).to_string();
    let (major, minor) = minor(&python);
    let mut found = problem(
        Rule::PythonVersion,
        &[&package.name],
        format!("{major}.{minor}"),
        expected.clone(),
        format!("{} is for Python {expected}, and this is Python {major}.{minor}", told(package)),
    );
    let release = view.known.of(&package.name).iter().rev().find(|release| {
        release.version.is_stable()
            && release.python.as_ref().is_some_and(|wanted| wanted.contains(&python))
    });
    if let Some(release) = release {
        found.candidates.push(vec![to_version(view.environment, &package.name, &release.version)]);
    }
    found.words = Some(format!("use a Python {expected}, or another release of {}", package.name));
    findings.problem(found);
}

/// The parts of a wheel's tag: interpreters, binary interfaces, platforms.
fn parts(tag: &str) -> Option<(&str, &str, &str)> {
    let mut parts = tag.splitn(3, '-');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

fn abi(view: &View<'_>, package: &Package, python: &Version, findings: &mut Findings) {
    let (major, minor) = minor(python);
    let own = format!("cp{major}{minor}");
    let fits = |tag: &String| {
        let Some((interpreters, abis, _)) = parts(tag) else { return true };
        interpreters.split('.').any(|interpreter| {
            if interpreter.starts_with("py") || interpreter == own {
                return true;
            }
            let stable = abis.split('.').any(|abi| abi == "abi3" || abi == "none");
            let number =
                interpreter.strip_prefix("cp3").and_then(|minor| minor.parse::<u64>().ok());
            stable && major == 3 && number.is_some_and(|number| number <= minor)
        })
    };
    let wrong_tag = !package.tags.is_empty() && !package.tags.iter().any(fits);
    let wrong_file = || {
        let other = package.files.iter().filter_map(|file| cpython_of(&file.path));
        let mut modules = other.peekable();
        let first = modules.peek().cloned();
        let own = format!("{major}{minor}");
        (!modules.any(|version| version == own)).then_some(first).flatten()
    };
    let found = if wrong_tag {
        package.tags.first().cloned()
    } else {
        wrong_file().map(|version| format!("cpython-{version}"))
    };
    let Some(found) = found else { return };
    let mut found = problem(
        Rule::PythonAbi,
        &[&package.name],
        found.clone(),
        own,
        format!("{} was installed for {found}, and this is Python {major}.{minor}", told(package)),
    );
    found.symptom = Some(format!("ImportError at import {}", package.name.replace('-', "_")));
    found.location = package.path.as_ref().map(|path| path.join("WHEEL").display().to_string());
    found.candidates.push(vec![to_version(view.environment, &package.name, &package.version)]);
    findings.problem(found);
}

/// The Python of an extension module: `312` of `_x.cpython-312-x86_64-linux-gnu.so`.
fn cpython_of(name: &str) -> Option<String> {
    let (_, rest) = name.rsplit_once(".cpython-")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (rest.ends_with(".so") && !digits.is_empty()).then_some(digits)
}

/// The machines of a tag, in the names of the platform part.
fn machine_of(platform: &str) -> Option<&'static str> {
    const MACHINES: [&str; 6] = ["x86_64", "aarch64", "arm64", "i686", "ppc64le", "s390x"];
    MACHINES.into_iter().find(|machine| platform.ends_with(machine))
}

/// The system of a tag, as environments name it; `None` for any.
fn system_of(platform: &str) -> Option<&'static str> {
    if platform.starts_with("macosx") {
        Some("darwin")
    } else if platform.starts_with("win") {
        Some("win32")
    } else {
        platform.contains("linux").then_some("linux")
    }
}

/// The system and the machine of a package: those of its wheel's tags, then those of its libraries.
fn machine(view: &View<'_>, package: &Package, findings: &mut Findings) {
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
    let Some(other) = of_tag.or_else(of_library) else { return };
    let own = machine.unwrap_or(system).to_owned();
    let mut found = problem(
        Rule::Architecture,
        &[&package.name],
        other.clone(),
        own.clone(),
        format!("{} is for {other}, and this machine is {own}", told(package)),
    );
    found.candidates.push(vec![to_version(environment, &package.name, &package.version)]);
    findings.problem(found);
}

/// The C library that a tag promises to be enough.
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

fn glibc(view: &View<'_>, package: &Package, findings: &mut Findings) {
    let Some(own) = view.environment.glibc else { return };
    // A tag of several platforms is good where one of them is.
    let platforms = package
        .tags
        .iter()
        .filter_map(|tag| parts(tag))
        .flat_map(|(_, _, platform)| platform.split('.'));
    let of_tag = platforms.filter_map(glibc_of).min();
    let libraries = view.environment.needs.iter().filter(|need| need.package == package.name);
    let library = libraries
        .filter(|need| need.glibc.is_some_and(|glibc| glibc > own))
        .max_by_key(|need| need.glibc);
    let needed = of_tag.into_iter().chain(library.and_then(|need| need.glibc)).max();
    let Some(needed) = needed.filter(|needed| *needed > own) else { return };
    let (told_own, told_needed) =
        (format!("{}.{}", own.0, own.1), format!("{}.{}", needed.0, needed.1));
    let mut found = problem(
        Rule::Glibc,
        &[&package.name],
        told_own.clone(),
        format!(">={told_needed}"),
        format!("{} needs glibc {told_needed}, and the system has {told_own}", told(package)),
    );
    found.symptom = Some(format!("version `GLIBC_{told_needed}' not found"));
    found.location = library.map(|need| need.path.display().to_string());
    found.words = Some(format!(
        "take a system with glibc {told_needed} or newer, or an older release of {}",
        package.name
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
