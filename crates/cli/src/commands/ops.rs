//! `serdes ops`: the operations of a release, one of them, or the differences of two releases.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use serdes_operations::{Difference, Operation, Registry};

use crate::{
    arguments::OpsArguments,
    commands::nearest::nearest,
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN},
};

/// Runs the command.
pub(crate) fn run(
    arguments: &OpsArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let registry = registry(&arguments.release)?;
    match arguments.other.as_deref() {
        None => list(&registry, terminal),
        // Names of operations do not begin with a digit.
        Some(other) if other.starts_with(|first: char| first.is_ascii_digit()) => {
            compare(&registry, &self::registry(other)?, terminal)
        }
        Some(LATEST) => compare(&registry, &self::registry(LATEST)?, terminal),
        Some(name) => show(&registry, name, terminal),
    }
}

/// Name of the newest release, as for `serdes check`.
const LATEST: &str = "latest";

/// Returns the operations of a release.
fn registry(release: &str) -> Result<Registry, Failure> {
    let newest = Registry::releases().last().filter(|_| release == LATEST);
    Registry::tensorflow(newest.unwrap_or(release)).map_err(Failure::new)
}

fn list(registry: &Registry, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let mut count = 0;
    for operation in registry.operations() {
        count += 1;
        if terminal.json() {
            terminal.object(&operation.to_definition().to_json())?;
        } else {
            terminal.line(operation.to_definition())?;
        }
    }
    let release = registry.measured_release();
    terminal
        .note(format_args!("{FAINT}{count} operations, read from TensorFlow {release}{FAINT:#}"));
    Ok(ExitStatus::Success)
}

fn show(registry: &Registry, name: &str, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let Some(operation) = registry.operation(name) else { return Err(missing(registry, name)) };
    let definition = operation.to_definition();
    if terminal.json() {
        let mut object = definition.to_json();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("first_release".to_owned(), json!(operation.first_release()));
            fields.insert("last_release".to_owned(), json!(operation.last_release()));
            for attribute in
                fields.get_mut("attrs").and_then(Value::as_array_mut).into_iter().flatten()
            {
                let name = attribute.get("name").and_then(Value::as_str);
                let releases = name.and_then(|name| operation.attribute_releases(name));
                if let Some(fields) = attribute.as_object_mut() {
                    fields.insert(
                        "first_release".to_owned(),
                        json!(releases.map(|(first, _)| first)),
                    );
                    fields.insert("last_release".to_owned(), json!(releases.map(|(_, last)| last)));
                }
            }
        }
        terminal.object(&object)?;
        return Ok(ExitStatus::Success);
    }
    terminal.line(format_args!("{NAME}{definition}{NAME:#}"))?;
    for attribute in &definition.attributes {
        let releases = operation.attribute_releases(&attribute.name);
        let range = range_within(releases, &operation);
        terminal.line(format_args!("    {attribute}{FAINT}{range}{FAINT:#}"))?;
    }
    for (is_so, text) in [
        (operation.is_stateful(), "has a state, or an effect besides its outputs"),
        (!operation.has_shape_function(), "has no shape function: the C import refuses it"),
        (!operation.has_cpu_kernel(), "has no kernel for the CPU"),
        (operation.is_python_only(), "is there once TensorFlow's Python package is imported"),
    ] {
        if is_so {
            terminal.line(format_args!("  {text}"))?;
        }
    }
    if let Some(version) = operation.deprecated_since() {
        terminal.line(format_args!(
            "  graphs of GraphDef version {version} and newer may not use it"
        ))?;
    }
    history(&operation, terminal)?;
    Ok(ExitStatus::Success)
}

/// Returns the releases with an attribute, if they differ from those with the operation.
fn range_within(releases: Option<(&str, &str)>, operation: &Operation<'_>) -> String {
    let Some((first, last)) = releases else { return String::new() };
    match (operation.first_release() == Some(first), operation.last_release() == Some(last)) {
        (true, true) => String::new(),
        (true, false) => format!("  (until {last})"),
        (false, true) => format!("  (since {first})"),
        (false, false) => format!("  ({first} to {last})"),
    }
}

/// Prints the releases with the operation, and its changes.
fn history(operation: &Operation<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let (first, last) = (operation.first_release(), operation.last_release());
    let (oldest, newest) = (Registry::releases().next(), Registry::releases().last());
    let range = match (first == oldest, last == newest) {
        (true, true) => "in every known release".to_owned(),
        (true, false) => format!("until {}", last.unwrap_or_default()),
        (false, true) => format!("since {}", first.unwrap_or_default()),
        (false, false) => format!("{} to {}", first.unwrap_or_default(), last.unwrap_or_default()),
    };
    terminal.line(format_args!("  {FAINT}{range}{FAINT:#}"))?;
    let mut before = None;
    for release in Registry::releases() {
        let registry = Registry::tensorflow(release).map_err(Failure::new)?;
        let now = registry.operation(operation.name()).map(|found| found.to_definition());
        if let (Some(before), Some(now)) = (&before, &now) {
            for difference in Difference::between(before, now) {
                terminal.line(format_args!("  {release}: {difference}"))?;
            }
        }
        before = now;
    }
    Ok(())
}

fn missing(registry: &Registry, name: &str) -> Failure {
    let release = registry.release();
    let known = Registry::operation_of_any_release(name);
    let hint = match known.and_then(|found| found.first_release().zip(found.last_release())) {
        Some((first, last)) => format!("; it is in {first} to {last}"),
        None => match nearest(name, registry.operations().map(|operation| operation.name())) {
            Some(near) => format!(
                ", and no other known release has it; did you mean {near}? A custom operation is in no release"
            ),
            None => ", and no other known release has it; a custom operation is in no release"
                .to_owned(),
        },
    };
    Failure::no(format_args!("TensorFlow {release} has no operation {name:?}{hint}"))
}

fn compare(old: &Registry, new: &Registry, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let names: BTreeSet<&str> =
        old.operations().chain(new.operations()).map(|operation| operation.name()).collect();
    let (mut added, mut removed, mut changed) = (0_u64, 0_u64, 0_u64);
    for name in names {
        let before = old.operation(name).map(|found| found.to_definition());
        let after = new.operation(name).map(|found| found.to_definition());
        let differences = match (&before, &after) {
            (Some(before), Some(after)) => Difference::between(before, after),
            _ => Vec::new(),
        };
        let (change, style, count) = match (&before, &after) {
            (None, _) => ("added", GOOD, &mut added),
            (_, None) => ("removed", BAD, &mut removed),
            _ if differences.is_empty() => continue,
            _ => ("changed", WARN, &mut changed),
        };
        *count += 1;
        if terminal.json() {
            let differences: Vec<_> = differences
                .iter()
                .map(|one| json!({ "what": one.what, "old": one.old, "new": one.new }))
                .collect();
            terminal.object(&json!({
                "name": name,
                "change": change,
                "differences": differences,
                "old": before.map(|definition| definition.to_json()),
                "new": after.map(|definition| definition.to_json()),
            }))?;
            continue;
        }
        terminal.line(format_args!("{style}{change:7}{style:#}  {NAME}{name}{NAME:#}"))?;
        for difference in differences {
            terminal.line(format_args!("         {difference}"))?;
        }
    }
    terminal.note(format_args!(
        "{FAINT}TensorFlow {} to {}: {added} added, {removed} removed, {changed} changed{FAINT:#}",
        old.release(),
        new.release()
    ));
    Ok(ExitStatus::Success)
}
