//! `serdes inspect`: prints the contents of an artifact.

use std::{path::Path, sync::Arc};

use chrono::DateTime;
use serdes_check::{
    self as check, Artifact, CheckpointList, Inspection, Kind, Options, TensorSummary,
};
use serdes_device_state::files::Tree;
use serdes_tensors::storage::Storage;

use crate::{
    arguments::InspectArguments,
    commands::{
        inspect_jax, inspect_message, inspect_model, inspect_state, remedies, streams, unread,
        walk_options::named_kind,
    },
    failure::Failure,
    status::ExitStatus,
    terminal::{FAINT, NAME, Terminal, bytes, count, json_of, shown},
};

/// Inspects the artifact at the path, or each one below a directory.
pub(crate) fn run(
    arguments: &InspectArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let (kind, message) = named_kind(arguments.kind.as_deref())?;
    if let Some(message) = message {
        return inspect_message::run(&arguments.path, message, terminal);
    }
    if arguments.path == Path::new("-") {
        let artifact = check::reader(streams::standard_input()?, kind).map_err(Failure::of)?;
        print(&inspect(&artifact)?, arguments, terminal)?;
        return Ok(ExitStatus::Success);
    }
    let options = Options::default();
    let storage: Arc<dyn Tree> = Arc::new(Storage::anywhere());
    unread::note_of_data(&*storage, &arguments.path, terminal);
    let mut walk = check::walk(&arguments.path, &options).in_tree(storage);
    if let Some(kind) = kind {
        walk = walk.of_kind(kind);
    }
    let (mut status, mut is_first) = (ExitStatus::Success, true);
    while let Some(opened) = walk.next_opened() {
        if !std::mem::take(&mut is_first) {
            terminal.line("")?;
        }
        let (path, found) = match opened {
            Ok(artifact) => (artifact.path().to_owned(), inspect(&artifact)),
            Err(unopened) => (unopened.path, Err(Failure::new(unopened.reason.message))),
        };
        match found {
            Ok(inspection) => print(&inspection, arguments, terminal)?,
            Err(failure) if Path::new(&path) == arguments.path && !walk.is_of_directory() => {
                status = status.worst(terminal.fail(&failure));
            }
            Err(failure) => status = status.worst(terminal.fail(&failure.about(path))),
        }
    }
    let skipped = walk.skipped().count;
    if skipped > 0 {
        let files = count(skipped, "file");
        terminal.note(format_args!("{FAINT}left out: {files} of no kind that is judged{FAINT:#}"));
    }
    Ok(status)
}

fn inspect(artifact: &Artifact) -> Result<Inspection, Failure> {
    artifact.inspect().map_err(|reason| remedies::failure(&reason))
}

/// Prints an inspection.
fn print(
    inspection: &Inspection,
    arguments: &InspectArguments,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&json_of(inspection)?);
    }
    match &inspection.model {
        Some(model) if arguments.signatures => {
            inspect_model::show_signatures(inspection, model, terminal)
        }
        _ => show(inspection, terminal),
    }
}

fn show(inspection: &Inspection, terminal: &mut Terminal) -> Result<(), Failure> {
    terminal.line(format_args!(
        "{NAME}{}{NAME:#} {FAINT}{}{FAINT:#}",
        shown(&inspection.path),
        inspection.kind
    ))?;
    if let Some(versions) = inspection.versions.as_ref().filter(|_| inspection.state.is_none()) {
        let label = match inspection.kind {
            Kind::TensorBundle | Kind::CheckpointV1 => "checkpoint versions",
            _ => "GraphDef versions",
        };
        let bad = if versions.bad_consumers.is_empty() {
            String::new()
        } else {
            format!(", bad_consumers {:?}", versions.bad_consumers)
        };
        let (producer, oldest) = (versions.producer, versions.min_consumer);
        terminal.fact(label, format_args!("producer {producer}, min_consumer {oldest}{bad}"))?;
    }
    if inspection.state.is_none() {
        facts(inspection, terminal)?;
    }
    if let Some(state) = &inspection.state {
        inspect_state::show(inspection, state, terminal)?;
    }
    if let Some(list) = &inspection.checkpoints {
        show_list(list, terminal)?;
    }
    if let Some(found) = &inspection.jax {
        inspect_jax::show(found, terminal)?;
    }
    if let Some(model) = &inspection.model {
        inspect_model::show(model, terminal)?;
    }
    if inspection.state.is_none() {
        nested(inspection, terminal)?;
    }
    operations(inspection, terminal)?;
    let holds_tensors = matches!(inspection.kind, Kind::DeviceState | Kind::TensorBundle);
    if holds_tensors || !inspection.tensors.is_empty() {
        let total = inspection.tensors.iter().filter_map(|tensor| tensor.bytes).sum();
        let number = inspection.tensors.len();
        terminal.fact("tensors", format_args!("{number} ({})", bytes(total)))?;
        tree(&inspection.tensors, terminal)?;
    }
    Ok(())
}

/// Prints facts that take one line each.
fn facts(inspection: &Inspection, terminal: &mut Terminal) -> Result<(), Failure> {
    let facts =
        [("producer's date", &inspection.date), ("producer's release", &inspection.release)];
    for (label, value) in facts {
        if let Some(value) = value {
            terminal.fact(label, value)?;
        }
    }
    if let Some(stripped) = inspection.stripped_default_attrs {
        terminal.fact("stripped_default_attrs", if stripped { "yes" } else { "no" })?;
    }
    if let Some(listed @ 1..) = inspection.stripped_op_list {
        terminal.fact("stripped_op_list", count(listed, "operation"))?;
    }
    for (label, value) in &inspection.details {
        if value.is_empty() {
            terminal.fact(label, "none")?;
        } else {
            terminal.fact(label, shown(value))?;
        }
    }
    if let Some(shards) = inspection.shards {
        terminal.fact("shards", shards)?;
    }
    if let Some(functions) = inspection.functions {
        terminal.fact("functions", functions)?;
    }
    Ok(())
}

/// Prints the checkpoints that TensorFlow's file `checkpoint` lists, the newest apart.
fn show_list(list: &CheckpointList, terminal: &mut Terminal) -> Result<(), Failure> {
    let there = |kind: Option<Kind>| kind.map_or("not there", Kind::id);
    terminal
        .fact("newest", format_args!("{}  {}", shown(&list.newest), there(list.newest_kind)))?;
    for checkpoint in &list.checkpoints {
        let saved = checkpoint.timestamp.as_deref().map(day).unwrap_or_default();
        terminal.fact(
            "checkpoint",
            format_args!("{}  {}{saved}", shown(&checkpoint.prefix), there(checkpoint.kind)),
        )?;
    }
    match &list.last_preserved {
        Some(seconds) => terminal.fact("last_preserved", day(seconds).trim_start()),
        None => Ok(()),
    }
}

/// Formats a time in seconds since 1970 as a date and time, preceded by a space; the number itself
/// if it has no date.
fn day(seconds: &str) -> String {
    let whole = seconds.parse::<f64>().ok().filter(|number| number.is_finite());
    let time = whole.and_then(|number| DateTime::from_timestamp(number as i64, 0));
    match time {
        Some(time) => format!("  {}", time.format("%Y-%m-%d %H:%M:%S UTC")),
        None => format!("  {}", shown(seconds)),
    }
}

/// Prints the versions that are recorded inside, if there are any.
fn nested(inspection: &Inspection, terminal: &mut Terminal) -> Result<(), Failure> {
    if inspection.nested.is_empty() {
        return Ok(());
    }
    terminal.line("  versions recorded inside")?;
    for nested in &inspection.nested {
        let recorded = nested.recorded.map_or_else(|| "-".to_owned(), |number| number.to_string());
        terminal.line(format_args!(
            "    {}: {} {recorded}",
            shown(&nested.place),
            shown(&nested.type_name)
        ))?;
    }
    Ok(())
}

/// Prints the number of nodes per operation, if there are any.
fn operations(inspection: &Inspection, terminal: &mut Terminal) -> Result<(), Failure> {
    if inspection.operations.is_empty() {
        return Ok(());
    }
    let total: u64 = inspection.operations.values().sum();
    terminal.fact("operations", total)?;
    let mut operations: Vec<_> = inspection.operations.iter().collect();
    operations.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (name, count) in operations {
        terminal.line(format_args!("    {count:>8} {}", shown(name)))?;
    }
    Ok(())
}

/// Maximum depth of nested folders; deeper names are shown as one. A hostile name may have as many
/// parts as characters.
const DEEPEST: usize = 32;

/// Prints tensors as a tree by the parts of their names, with the size of each folder.
fn tree(tensors: &[TensorSummary], terminal: &mut Terminal) -> Result<(), Failure> {
    let mut sorted: Vec<&TensorSummary> = tensors.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = sorted.as_slice();
    while let Some((tensor, behind)) = rest.split_first() {
        let mut parts: Vec<&str> = tensor.name.splitn(DEEPEST, '/').collect();
        let leaf = parts.pop().unwrap_or_default();
        let common = open.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        open.truncate(common);
        for part in parts.iter().skip(common) {
            open.push(part);
            let prefix = format!("{}/", open.join("/"));
            // Sorting keeps a folder together, except for names that sort between `a` and `a/`.
            let size = rest
                .iter()
                .take_while(|tensor| tensor.name.starts_with(&prefix))
                .filter_map(|tensor| tensor.bytes)
                .sum();
            terminal.line(format_args!(
                "    {:indent$}{NAME}{}/{NAME:#} {FAINT}{}{FAINT:#}",
                "",
                shown(part),
                bytes(size),
                indent = 2 * (open.len() - 1)
            ))?;
        }
        let shape = tensor.shape.as_ref().map_or_else(
            || "?".to_owned(),
            |shape| shape.iter().map(i64::to_string).collect::<Vec<_>>().join(","),
        );
        let size = tensor.bytes.map(|count| bytes(count).to_string()).unwrap_or_default();
        terminal.line(format_args!(
            "    {:indent$}{}  {}[{shape}]  {FAINT}{size}{FAINT:#}",
            "",
            shown(leaf),
            shown(&tensor.dtype),
            indent = 2 * open.len()
        ))?;
        rest = behind;
    }
    Ok(())
}
