//! The environments of a lock: one, or one per fork.
//!
//! A lock for several Pythons and systems has some packages in several versions, each with markers.
//! The markers are evaluated for common Pythons and systems, and those with the same versions form
//! one environment.

use std::{collections::BTreeMap, path::Path, str::FromStr as _};

use pep440_rs::Version;

use super::locked::{Locked, Pin};
use crate::{
    data::Releases,
    environment::{Environment, Kind, Tool},
    names::is_judged,
    package::Package,
    rule::WarningRule,
    warning::{Unknown, Warning},
};

/// Maximum number of environments of one lock.
const FORKS: usize = 16;
/// Minors of Python 3 for which markers are evaluated, most common first.
const PYTHONS: [u64; 7] = [12, 11, 13, 10, 14, 9, 8];
/// The systems for which markers are evaluated, with their usual machines.
const SYSTEMS: [(&str, Option<&str>); 2] = [("linux", None), ("darwin", Some("arm64"))];

type Selection = BTreeMap<String, Version>;

/// Returns the environments of a lock.
pub(super) fn environments(path: &Path, locked: &Locked) -> Vec<Environment> {
    let label = path.display().to_string();
    let mut found: Vec<(Environment, Selection)> = Vec::new();
    let mut add = |locked: &Locked| {
        for one in of_installation(&label, locked) {
            if found.len() < FORKS && found.iter().all(|(_, known)| *known != one.1) {
                found.push(one);
            }
        }
    };
    match &*locked.choices {
        [] => add(locked),
        choices => choices.iter().for_each(|choice| add(&locked.only(choice))),
    }
    let forks = found.len();
    let filled = found.into_iter().enumerate().map(|(at, (mut environment, selection))| {
        if forks > 1 {
            environment.label = format!("{label} (fork {})", at + 1);
        }
        fill(&mut environment, selection, locked);
        environment
    });
    filled.collect()
}

/// Returns the environments of one installation: one, or one per fork.
fn of_installation(label: &str, locked: &Locked) -> Vec<(Environment, Selection)> {
    let is_one = judged(locked).all(|(_, pins)| pins.len() < 2 && pins.iter().all(Pin::is_for_all));
    let mut found = if is_one { Vec::new() } else { forked(label, locked) };
    if found.is_empty() {
        found.push(whole(label, locked));
    }
    found
}

/// Returns the environment with the first version of each package.
fn whole(label: &str, locked: &Locked) -> (Environment, Selection) {
    let all = judged(locked).filter_map(|(name, pins)| Some((name, pins.first()?)));
    let selection = all.map(|(name, pin)| (name.clone(), pin.version.clone())).collect();
    let mut environment = empty(label.to_owned(), locked);
    // A package for macOS only determines the system.
    if ["tensorflow-metal", "jax-metal"].iter().any(|name| locked.versions.contains_key(*name)) {
        environment.system = "darwin";
        environment.machine = Some("arm64".to_owned());
    }
    (environment, selection)
}

/// Returns the environments that the markers of a lock distinguish.
fn forked(label: &str, locked: &Locked) -> Vec<(Environment, Selection)> {
    let all = points(label, locked).into_iter().flat_map(|point| {
        let selections = selections(&point, locked).into_iter();
        selections.filter(|one| !one.is_empty()).map(move |selection| (point.clone(), selection))
    });
    let (mut can_be, others): (Vec<_>, Vec<_>) =
        all.partition(|(point, selection)| takes_python(point, selection));
    // An installer never combines releases with a Python that they do not accept.
    if can_be.is_empty() {
        can_be = others;
    }
    let mut found: Vec<(Environment, Selection)> = Vec::new();
    for one in can_be {
        if found.len() < FORKS && found.iter().all(|(_, known)| *known != one.1) {
            found.push(one);
        }
    }
    found
}

/// Returns true if every release accepts the Python of the markers; releases without an entry in
/// the table do.
fn takes_python(point: &Environment, selection: &Selection) -> bool {
    let Some(python) = &point.assumed_python else { return true };
    let python = Version::new(python.release().iter().copied().chain([99]));
    let known = Releases::known();
    selection.iter().all(|(name, version)| {
        let wanted = known.release(name, version).and_then(|release| release.python.as_ref());
        wanted.is_none_or(|wanted| wanted.contains(&python))
    })
}

/// Returns the judged packages of a lock.
fn judged(locked: &Locked) -> impl Iterator<Item = (&String, &Vec<Pin>)> {
    locked.versions.iter().filter(|(name, _)| is_judged(name))
}

fn empty(label: String, locked: &Locked) -> Environment {
    let mut environment = Environment::empty(label, Kind::Lock, locked.tool.unwrap_or(Tool::Pip));
    environment.python = locked.python.clone().or_else(|| only_python(locked));
    environment.jaxlib_holds_plugin = locked.jaxlib_holds_plugin;
    environment
}

/// Returns true if a lock is for a minor of Python 3.
fn is_wanted(locked: &Locked, minor: u64) -> bool {
    let Some(wanted) = &locked.requires_python else { return true };
    // The bound may include a patch.
    [0, 99].iter().any(|patch| wanted.contains(&Version::new([3, minor, *patch])))
}

/// Returns the Python of a lock if its bounds permit only one minor.
fn only_python(locked: &Locked) -> Option<Version> {
    let mut wanted = PYTHONS.into_iter().filter(|minor| is_wanted(locked, *minor));
    let only =
        wanted.next().filter(|_| wanted.next().is_none() && locked.requires_python.is_some())?;
    Some(Version::new([3, only]))
}

/// Returns the Pythons and systems for which markers are evaluated.
fn points(label: &str, locked: &Locked) -> Vec<Environment> {
    let mut points = Vec::new();
    for (system, machine) in SYSTEMS {
        let pythons: Vec<Option<Version>> = match empty(String::new(), locked).python {
            Some(_) => vec![None],
            None => PYTHONS
                .iter()
                .filter(|minor| is_wanted(locked, **minor))
                .map(|minor| Some(Version::new([3, *minor])))
                .collect(),
        };
        for python in pythons {
            let mut point = empty(label.to_owned(), locked);
            point.assumed_python = python;
            point.system = system;
            point.machine = machine.map(str::to_owned);
            points.push(point);
        }
    }
    points
}

/// Returns the versions of an environment: several selections if markers permit several versions of
/// a name, of which the n-th belong together.
fn selections(point: &Environment, locked: &Locked) -> Vec<Selection> {
    let Some(markers) = point.markers() else { return Vec::new() };
    let of_point: Vec<(&String, Vec<&Pin>)> = judged(locked)
        .map(|(name, pins)| (name, pins.iter().filter(|pin| pin.is_for(&markers)).collect()))
        .collect();
    let most = of_point.iter().map(|(_, pins)| pins.len()).max().unwrap_or(1).clamp(1, FORKS);
    let nth = |at: usize| {
        let chosen = of_point.iter().filter_map(|(name, pins)| {
            let pin = pins.get(at).or_else(|| pins.last())?;
            Some(((*name).clone(), pin.version.clone()))
        });
        chosen.collect()
    };
    (0..most).map(nth).collect()
}

fn fill(environment: &mut Environment, selection: Selection, locked: &Locked) {
    environment.count = locked.versions.len();
    for (name, version) in selection {
        let package = Package::named(name.clone(), version);
        environment.packages.insert(name, package);
    }
    environment.is_partial = locked.may_be_partial && is_partial(environment, locked);
    let open: Vec<&String> = locked
        .open
        .iter()
        .filter(|name| is_judged(name) && !environment.packages.contains_key(*name))
        .collect();
    if environment.packages.is_empty() {
        environment.unread.extend(open.into_iter().map(|name| Unknown {
            name: name.clone(),
            version: String::new(),
            why: "the file does not say which version is installed".to_owned(),
        }));
    } else if !open.is_empty() {
        let names: Vec<String> = open.into_iter().cloned().collect();
        environment.read_warnings.push(Warning {
            rule: WarningRule::NotJudged,
            message: format!("the file gives no version of {}", names.join(", ")),
            packages: names,
        });
    }
}

/// Returns true if a package is missing that another one always requires, apart from jaxlib and a
/// plug-in's packages: then the list is not complete.
fn is_partial(environment: &Environment, locked: &Locked) -> bool {
    let Some(markers) = environment.markers() else { return false };
    let is_named = |name: &str| environment.provider(name).is_some() && !locked.open.contains(name);
    let brings = |package: &Package| {
        let release = Releases::known().release(&package.name, &package.version);
        let mut requires = release.into_iter().flat_map(|release| &release.requires);
        requires.any(|one| {
            let name = one.name.as_ref();
            let is_asked_about = name == "jaxlib" || name.ends_with("-pjrt");
            !is_asked_about
                && !is_named(name)
                && is_judged(name)
                && one.evaluate_markers(&markers, &[])
        })
    };
    let is_open = |name: &String| is_judged(name) && !environment.packages.contains_key(name);
    locked.open.iter().any(is_open) || environment.packages.values().any(brings)
}

/// Returns the version in the name of a wheel or source archive at the end of a URL.
pub(super) fn version_in_address(address: &str) -> Option<Version> {
    let file = address.split(['#', '?']).next()?.rsplit('/').next()?;
    let stem = file.strip_suffix(".whl").or_else(|| file.strip_suffix(".tar.gz"))?;
    let version = stem.split('-').nth(1)?.replace("%2B", "+").replace("%2b", "+");
    Version::from_str(&version).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::locked::markers;

    fn of(locked: &Locked) -> Vec<Vec<String>> {
        let told = |environment: &Environment| {
            environment
                .packages
                .values()
                .map(|one| format!("{} {}", one.name, one.version))
                .collect()
        };
        environments(Path::new("x.lock"), locked).iter().map(told).collect()
    }

    #[test]
    fn forks_have_the_versions_that_their_markers_give_together() {
        let mut locked = Locked::default();
        // In another order than the Pythons.
        locked.add("numpy", "2.3.5", markers(["python_version >= '3.11'"]));
        locked.add("numpy", "2.2.6", markers(["python_version < '3.11'"]));
        locked.add("jax", "0.6.2", markers(["python_version < '3.11'"]));
        locked.add("jax", "0.10.2", markers(["python_version >= '3.11'"]));
        assert_eq!(of(&locked), [["jax 0.10.2", "numpy 2.3.5"], ["jax 0.6.2", "numpy 2.2.6"]]);
    }

    #[test]
    fn forks_of_systems_are_told_apart() {
        let mut locked = Locked::default();
        locked.add("torch", "2.8.0+cpu", markers(["sys_platform == 'linux'"]));
        locked.add("torch", "2.7.0", markers(["sys_platform == 'darwin'"]));
        let all = environments(Path::new("x.lock"), &locked);
        assert_eq!(all.iter().map(|one| one.system).collect::<Vec<_>>(), ["linux", "darwin"]);
    }

    #[test]
    fn addresses_of_wheels_tell_versions() {
        let version = |address| version_in_address(address).map(|version| version.to_string());
        assert_eq!(
            version("https://x/y/torch-2.8.0%2Bcpu-cp312-cp312-linux_x86_64.whl#sha256=aa")
                .as_deref(),
            Some("2.8.0+cpu")
        );
        assert_eq!(version("git+https://x/y.git@main"), None);
    }
}
