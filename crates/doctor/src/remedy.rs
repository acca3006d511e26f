//! Remedies: sets of changes, each checked by judging the changed environment with the same rules.

use std::collections::{BTreeSet, HashSet};

use pep440_rs::{Operator, Version, VersionSpecifiers};
use pep508_rs::Requirement;

use crate::{
    data::Releases,
    diagnosis::{Change, Problem, Remedy, Target},
    environment::{Environment, PluginFramework, PluginModule, Tool},
    judge,
    libraries::Libraries,
    names::is_judged,
    package::Package,
    rule::Rule,
};

/// Maximum number of remedies shown for a problem.
const SHOWN: usize = 3;
/// Maximum number of packages that one change may bring along, as with an installer.
const BROUGHT_ALONG: usize = 64;

type Key = (Rule, BTreeSet<String>);

/// Checks the candidates of every problem, and keeps those that solve it and cause no other.
pub(crate) fn find(environment: &Environment, problems: &mut [Problem], libraries: &dyn Libraries) {
    let known: HashSet<Key> = problems.iter().map(Problem::key).collect();
    for problem in problems {
        let candidates = std::mem::take(&mut problem.candidates);
        let mut remedies: Vec<Remedy> = Vec::new();
        for changes in candidates {
            let is_new =
                !changes.is_empty() && !remedies.iter().any(|remedy| remedy.changes == changes);
            if is_new && heals(environment, &changes, &problem.key(), &known, libraries) {
                let command = Some(command(environment.tool, &changes));
                let text = command.clone().unwrap_or_default();
                remedies.push(Remedy { changes, command, text });
            }
        }
        remedies.sort_by_key(|remedy| remedy.changes.len());
        remedies.truncate(SHOWN);
        if let Some(text) = problem.words.take() {
            remedies.push(Remedy { changes: Vec::new(), command: None, text });
        }
        problem.remedies = remedies;
    }
}

/// Returns true if changes solve a problem and cause no other.
fn heals(
    environment: &Environment,
    changes: &[Change],
    problem: &Key,
    known: &HashSet<Key>,
    libraries: &dyn Libraries,
) -> bool {
    let Some(changed) = apply(environment, changes) else { return false };
    let after = judge::judge(&changed, libraries);
    let mut left = after.problems.iter().map(Problem::key);
    left.all(|key| key != *problem && known.contains(&key))
}

/// Returns true if changes cause no new problem.
pub(crate) fn breaks_nothing(
    environment: &Environment,
    changes: &[Change],
    libraries: &dyn Libraries,
) -> bool {
    let keys = |environment: &Environment| -> HashSet<Key> {
        judge::judge(environment, libraries).problems.iter().map(Problem::key).collect()
    };
    apply(environment, changes).is_some_and(|changed| keys(&changed).is_subset(&keys(environment)))
}

/// Applies changes to an environment, with the packages that an installer brings along; `None` if a
/// requested version is unknown.
fn apply(environment: &Environment, changes: &[Change]) -> Option<Environment> {
    let mut changed = environment.clone();
    let mut asked = BTreeSet::new();
    for change in changes {
        match &change.to {
            Target::Removed => remove(&mut changed, &change.package),
            Target::Version(version) => put(&mut changed, &change.package, version.clone()),
            Target::Specifiers(specifiers) => {
                let version = resolve(&change.package, specifiers)?;
                put(&mut changed, &change.package, version);
            }
        }
        asked.insert(change.package.clone());
    }
    let new_plugins =
        changes.iter().filter(|change| change.from.is_none() && is_cuda_plugin(&change.package));
    let new_plugins: BTreeSet<String> = new_plugins.map(|change| change.package.clone()).collect();
    bring_along(&mut changed, asked, &new_plugins);
    Some(changed)
}

/// Returns the newest known release that satisfies a specifier; if no release of the package is
/// known, the newest version in the specifier, or for `!=9.10.0.*` the next one.
fn resolve(package: &str, specifiers: &VersionSpecifiers) -> Option<Version> {
    if let Some(release) = Releases::known().newest(package, specifiers) {
        return Some(release.version.clone());
    }
    let named = specifiers.iter().map(|one| match (one.operator(), one.version().release()) {
        (Operator::NotEqualStar, [before @ .., last]) => {
            Version::new(before.iter().copied().chain([last.saturating_add(1)]))
        }
        _ => one.version().clone(),
    });
    let mut fitting: Vec<Version> = named.filter(|version| specifiers.contains(version)).collect();
    fitting.sort();
    fitting.into_iter().next_back()
}

fn remove(environment: &mut Environment, name: &str) {
    environment.packages.remove(name);
    environment.plugins.retain(|plugin| plugin.owner.as_deref() != Some(name));
    environment.needs.retain(|need| need.package != name);
}

/// Replaces a package by a release.
fn put(environment: &mut Environment, name: &str, version: Version) {
    let release = Releases::known().release(name, &version);
    let mut package = Package::named(name.to_owned(), version);
    if let Some(release) = release {
        package.requires_python.clone_from(&release.python);
        package.minimum_jaxlib.clone_from(&release.minimum_jaxlib);
        // Assume a wheel for this Python, unless the table says otherwise.
        let platform = release.tag.as_deref().and_then(|tag| tag.splitn(3, '-').nth(2));
        // The table has the wheels of one machine; other machines have the same C library.
        let own = environment.machine.as_deref().unwrap_or("x86_64");
        let platform =
            platform.filter(|_| environment.has_files() && environment.system == "linux");
        package.tags.extend(
            platform.map(|platform| format!("py3-none-{}", platform.replace("x86_64", own))),
        );
    }
    remove(environment, name);
    if let Some(rest) = name.strip_prefix("jax-").and_then(|rest| rest.strip_suffix("-pjrt")) {
        environment.plugins.push(PluginModule {
            framework: PluginFramework::Jax,
            module: format!("jax_plugins.xla_{rest}"),
            path: std::path::PathBuf::new(),
            owner: Some(name.to_owned()),
            entry_point: true,
            exists: true,
            // An empty path is not read: the tables decide.
            library: Some(std::path::PathBuf::new()),
        });
    }
    environment.packages.insert(name.to_owned(), package);
}

/// Changes packages that the changed packages require, like an installer.
fn bring_along(
    environment: &mut Environment,
    asked: BTreeSet<String>,
    new_plugins: &BTreeSet<String>,
) {
    let known = Releases::known();
    let Some(markers) = environment.markers() else { return };
    let mut waiting: Vec<String> = asked.iter().cloned().collect();
    let mut budget = BROUGHT_ALONG;
    while let Some(name) = waiting.pop() {
        let Some(package) = environment.package(&name) else { continue };
        let requires: Vec<Requirement> = judge::requires(known, package).into_owned();
        let brings_extras = new_plugins.contains(&name);
        let extras = if brings_extras { judge::extras(package, &requires) } else { Vec::new() };
        for requirement in &requires {
            let required = requirement.name.as_ref();
            let is_met = |found: &Package| {
                judge::specifiers(requirement).is_none_or(|wanted| wanted.contains(&found.public()))
            };
            if !is_judged(required)
                || !requirement.evaluate_markers(&markers, &extras)
                || asked.contains(required)
                || environment.provider(required).is_some_and(is_met)
            {
                continue;
            }
            let any = VersionSpecifiers::empty();
            let wanted = judge::specifiers(requirement).unwrap_or(&any);
            let Some(version) = resolve(required, wanted) else { continue };
            budget = budget.saturating_sub(1);
            if budget == 0 {
                return;
            }
            put(environment, required, version);
            waiting.push(required.to_owned());
        }
    }
}

/// Returns true if a package is a CUDA plug-in, which brings its libraries by the extra
/// `with-cuda`.
fn is_cuda_plugin(name: &str) -> bool {
    name.starts_with("jax-cuda") && name.ends_with("-plugin")
}

/// Returns the command that makes changes.
pub(crate) fn command(tool: Tool, changes: &[Change]) -> String {
    let removed: Vec<&str> = changes
        .iter()
        .filter(|change| change.to == Target::Removed)
        .map(|change| change.package.as_str())
        .collect();
    let again = changes.iter().all(|change| matches!(&change.to, Target::Version(version) if change.from.as_ref().is_some_and(|from| from.clone().without_local() == *version)));
    let wanted: Vec<String> = changes.iter().filter_map(|change| wanted(tool, change)).collect();
    let (install, uninstall) = match tool {
        Tool::Pip => ("pip install", "pip uninstall -y"),
        Tool::UvPip => ("uv pip install", "uv pip uninstall"),
        Tool::Uv => ("uv add", "uv remove"),
        Tool::Poetry => ("poetry add", "poetry remove"),
        Tool::Conda => ("conda install", "conda remove"),
    };
    let force = match tool {
        Tool::Pip | Tool::UvPip if again => " --force-reinstall --no-deps",
        Tool::Conda if again => " --force-reinstall",
        _ => "",
    };
    let mut commands = Vec::new();
    if !removed.is_empty() {
        commands.push(format!("{uninstall} {}", removed.join(" ")));
    }
    if !wanted.is_empty() {
        commands.push(format!("{install}{force} {}", wanted.join(" ")));
    }
    commands.join(" && ")
}

fn wanted(tool: Tool, change: &Change) -> Option<String> {
    let mut name = change.package.clone();
    if change.from.is_none() && is_cuda_plugin(&name) && tool != Tool::Conda {
        name.push_str("[with-cuda]");
    }
    match (&change.to, tool) {
        (Target::Removed, _) => None,
        (Target::Version(version), Tool::Conda) => Some(format!("'{name}={version}'")),
        (Target::Version(version), _) => Some(format!("'{name}=={version}'")),
        (specifiers @ Target::Specifiers(_), _) => Some(format!("'{name}{specifiers}'")),
    }
}
