//! The possible installations of one `uv.lock`.
//!
//! uv locks the extras and the groups of a project together, and an installation has the packages
//! of the selected ones: `cuda12` and `cuda13` may be two extras of one lock.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::names::normal;

/// Maximum number of installations of one lock.
const CHOICES: usize = 16;
/// Maximum number of packages and extras reachable from one project.
const FOLLOWED: usize = 20_000;
/// The group that uv installs by default.
const ALWAYS: &str = "dev";

/// The packages of an installation, each with its locked version.
pub(super) type Choice = BTreeSet<(String, String)>;

/// The dependencies of a lock's entry, and its source.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Relations {
    source: Option<toml::Value>,
    dependencies: Option<toml::Value>,
    #[serde(rename = "optional-dependencies")]
    extras: Option<toml::Value>,
    #[serde(rename = "dev-dependencies")]
    groups: Option<toml::Value>,
}

/// A dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    name: String,
    version: Option<String>,
    extra: Option<String>,
}

impl Relations {
    /// Returns true if the entry is a project of the lock, not an external package.
    fn is_project(&self) -> bool {
        let table = self.source.as_ref().and_then(toml::Value::as_table);
        table.is_some_and(|table| {
            ["virtual", "editable"].iter().any(|form| table.contains_key(*form))
        })
    }

    fn dependencies(&self) -> Vec<Named> {
        self.dependencies.as_ref().map(named).unwrap_or_default()
    }
}

/// Parses a list of dependencies; one with extras yields itself and each of them.
fn named(list: &toml::Value) -> Vec<Named> {
    let mut all = Vec::new();
    for table in list.as_array().into_iter().flatten().filter_map(toml::Value::as_table) {
        let text = |key: &str| table.get(key).and_then(toml::Value::as_str);
        let Some(name) = text("name").and_then(normal) else { continue };
        let version = text("version").map(str::to_owned);
        let extras = table.get("extra").and_then(toml::Value::as_array).into_iter().flatten();
        let extras = extras.filter_map(toml::Value::as_str).map(|one| Some(one.to_owned()));
        all.extend(extras.chain([None]).map(|extra| Named {
            name: name.clone(),
            version: version.clone(),
            extra,
        }));
    }
    all
}

/// Parses the lists of a table of extras or groups, by name.
fn lists(table: Option<&toml::Value>) -> BTreeMap<&str, Vec<Named>> {
    let table = table.and_then(toml::Value::as_table).into_iter().flatten();
    table.map(|(name, list)| (name.as_str(), named(list))).collect()
}

/// The entries of a lock, by name.
type Entries<'a> = BTreeMap<String, Vec<(&'a str, &'a Relations)>>;

/// Collects all packages that are reachable through dependencies.
fn follow(entries: &Entries<'_>, mut waiting: Vec<Named>) -> Choice {
    let mut seen = BTreeSet::new();
    let mut choice = Choice::new();
    while let Some(next) = waiting.pop() {
        if seen.len() == FOLLOWED || !seen.insert(next.clone()) {
            continue;
        }
        for (version, relations) in entries.get(&next.name).into_iter().flatten() {
            if next.version.as_ref().is_some_and(|wanted| wanted != version) {
                continue;
            }
            choice.insert((next.name.clone(), (*version).to_owned()));
            match &next.extra {
                None => waiting.extend(relations.dependencies()),
                Some(extra) => {
                    let mut extras = lists(relations.extras.as_ref());
                    waiting.extend(extras.remove(extra.as_str()).unwrap_or_default());
                }
            }
        }
    }
    choice
}

/// Returns the installations of the projects in a lock: each without extras, and with each of its
/// extras and groups. Empty if there is only one installation, or entries remain that nothing
/// depends on.
pub(super) fn choices<'a>(
    entries: impl Iterator<Item = (&'a str, &'a str, &'a Relations)>,
) -> Vec<Choice> {
    let mut by_name: Entries<'_> = BTreeMap::new();
    for (name, version, relations) in entries {
        let Some(name) = normal(name) else { continue };
        by_name.entry(name).or_default().push((version, relations));
    }
    let mut found: Vec<Choice> = Vec::new();
    for (_, project) in by_name.values().flatten().filter(|(_, one)| one.is_project()) {
        let mut groups = lists(project.groups.as_ref());
        let mut base = project.dependencies();
        base.extend(groups.remove(ALWAYS).unwrap_or_default());
        let more = lists(project.extras.as_ref()).into_values().chain(groups.into_values());
        for asked in std::iter::once(Vec::new()).chain(more).take(CHOICES) {
            let choice = follow(&by_name, base.iter().cloned().chain(asked).collect());
            if found.len() < CHOICES && !found.contains(&choice) {
                found.push(choice);
            }
        }
    }
    let is_reached = |name: &String, version: &str| {
        found.iter().any(|choice| choice.contains(&(name.clone(), version.to_owned())))
    };
    let is_whole = by_name.iter().all(|(name, entries)| {
        entries.iter().all(|(version, one)| one.is_project() || is_reached(name, version))
    });
    if is_whole && found.len() > 1 { found } else { Vec::new() }
}
