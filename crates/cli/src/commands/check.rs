//! `serdes check`: verdicts on artifacts.

use std::{collections::BTreeMap, fs, io, path::Path};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;
use serdes::{
    artifact::graph::DeprecatedOperations,
    check::{self, Consumer, Kind, Options, Outcome, Verdict, Walk},
};

use crate::{
    arguments::CheckArguments,
    commands::{remedies, watch},
    failure::Failure,
    terminal::{BAD, FAINT, GOOD, NAME, Status, Terminal, WARN, json_of, shown},
};

/// Checks every path; the worst verdict decides the status.
pub(crate) fn run(arguments: &CheckArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut options = options(arguments)?;
    let kind = kind(arguments.kind.as_deref())?;
    let excluded = excluded(&arguments.exclude)?;
    let mut summary = Summary::default();
    // Standard input is read before anybody listens for Ctrl-C: a process that waits for its input
    // is ended by it.
    let mut artifacts = Vec::new();
    for path in &arguments.paths {
        artifacts.push(if path == Path::new("-") {
            Some(check::reader(io::stdin().lock(), kind).map_err(Failure::of)?)
        } else {
            None
        });
    }
    if arguments.verify_data {
        options = options.with_watch(watch::watch(terminal)?);
    }
    for (path, artifact) in arguments.paths.iter().zip(artifacts) {
        if let Some(artifact) = artifact {
            let verdict = artifact.check(&options).map_err(Failure::of)?;
            show(&verdict, terminal, &mut summary)?;
            continue;
        }
        let mut walk = check::walk(path, &options);
        if let Some(kind) = kind {
            walk = walk.of_kind(kind);
        }
        if let Some(excluded) = &excluded {
            walk =
                walk.without(|path, is_directory| excluded.matched(path, is_directory).is_ignore());
        }
        show_walk(walk, path, arguments, terminal, &mut summary)?;
    }
    summary.print(terminal)?;
    Ok(summary.status)
}

/// Checks what is at a path. A directory that was walked ends with what became of the files in it.
fn show_walk(
    mut walk: Walk<'_>,
    path: &Path,
    arguments: &CheckArguments,
    terminal: &mut Terminal,
    summary: &mut Summary,
) -> Result<(), Failure> {
    let mut here = Counts::default();
    while let Some(verdict) = walk.next() {
        let verdict = verdict.map_err(Failure::of)?;
        show(&verdict, terminal, summary)?;
        // That there is nothing at all is said of the directory, and not of a file in it.
        if walk.found_any() {
            here.add(verdict.outcome());
        }
    }
    if !walk.is_of_directory() {
        return Ok(());
    }
    let skipped = walk.skipped();
    if arguments.require_known && skipped.count > 0 {
        summary.status = summary.status.worst(Status::Failed);
    }
    let paths = || skipped.paths.iter().map(|path| path.to_string_lossy());
    if terminal.json() {
        return terminal.object(&serde_json::json!({
            "summary": true,
            "path": path.to_string_lossy(),
            "checked": here.checked(),
            "acceptable": here.acceptable,
            "unacceptable": here.unacceptable,
            "unreadable": here.unreadable,
            "skipped": skipped.count,
            "skipped_paths": paths().collect::<Vec<_>>(),
        }));
    }
    let are = if skipped.count == 1 { "file is" } else { "files are" };
    terminal.line(format_args!(
        "{NAME}{}{NAME:#}: {} checked; {} {are} of no kind that is judged",
        shown(&path.to_string_lossy()),
        here.checked(),
        skipped.count
    ))?;
    if arguments.require_known || terminal.verbosity() > 0 {
        for path in paths() {
            terminal.line(format_args!("  {FAINT}skipped{FAINT:#}: {}", shown(&path)))?;
        }
    }
    Ok(())
}

/// How many artifacts got each verdict.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    acceptable: u64,
    unacceptable: u64,
    unreadable: u64,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Acceptable => &mut self.acceptable,
            Outcome::Unacceptable => &mut self.unacceptable,
            Outcome::Unreadable => &mut self.unreadable,
        } += 1;
    }

    fn checked(&self) -> u64 {
        self.acceptable + self.unacceptable + self.unreadable
    }
}

fn options(arguments: &CheckArguments) -> Result<Options, Failure> {
    let mut consumer = match &arguments.tensorflow {
        Some(release) => Consumer::tensorflow(release)
            .map_err(|error| Failure::new(format_args!("--tensorflow: {error}")))?,
        None => Consumer::newest(),
    };
    for text in &arguments.consumer {
        consumer = consumer
            .with(text)
            .map_err(|error| Failure::new(format_args!("--consumer: {error}")))?;
    }
    let mut options = Options::for_consumer(consumer)
        .with_verify_data(arguments.verify_data)
        .with_strict(arguments.strict);
    if let Some(tags) = &arguments.tags {
        // Nothing between the commas is no tag: `--tags ""` asks for the meta graph without any.
        options = options.with_tags(tags.iter().filter(|tag| !tag.is_empty()).cloned());
    }
    if let Some(path) = &arguments.deprecated {
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::new(format_args!("cannot read {}: {error}", path.display()))
        })?;
        let deprecated = DeprecatedOperations::from_json(&text)
            .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
        options = options.with_deprecated(deprecated);
    }
    Ok(options)
}

/// What the patterns match, as in a .gitignore at the top of the directory.
fn excluded(patterns: &[String]) -> Result<Option<Gitignore>, Failure> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let failed = |error: ignore::Error| Failure::new(format_args!("--exclude: {error}"));
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(failed)?;
    }
    builder.build().map(Some).map_err(failed)
}

/// The kind that `--kind` names.
pub(crate) fn kind(name: Option<&str>) -> Result<Option<Kind>, Failure> {
    name.map(|name| {
        name.parse::<Kind>().map_err(|error| Failure::new(format_args!("--kind: {error}")))
    })
    .transpose()
}

/// The status that a verdict means.
pub(crate) fn status(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Acceptable => Status::Yes,
        Outcome::Unacceptable => Status::No,
        Outcome::Unreadable => Status::Failed,
    }
}

struct Summary {
    status: Status,
    /// How many of each kind got each verdict.
    kinds: BTreeMap<(String, &'static str), u64>,
    counts: Counts,
}

impl Default for Summary {
    fn default() -> Self {
        Self { status: Status::Yes, kinds: BTreeMap::new(), counts: Counts::default() }
    }
}

impl Summary {
    fn add(&mut self, verdict: &Verdict) {
        let outcome = verdict.outcome();
        self.status = self.status.worst(status(outcome));
        let kind = verdict.kind.map_or_else(|| "unknown".to_owned(), |kind| kind.to_string());
        *self.kinds.entry((kind, outcome.id())).or_default() += 1;
        self.counts.add(outcome);
    }

    /// A table for people, where there was more than one artifact.
    fn print(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let total = self.counts.checked();
        if total < 2 {
            return Ok(());
        }
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_header(["count", "kind", "verdict"]);
        for ((kind, outcome), count) in &self.kinds {
            table.add_row([count.to_string(), kind.clone(), (*outcome).to_owned()]);
        }
        terminal.line("")?;
        for line in table.lines() {
            terminal.line(line.trim_end())?;
        }
        let bad = total - self.counts.acceptable;
        terminal.line(format_args!("\n{bad} of {total} would not load"))
    }
}

/// A verdict as an object, with remedies in the words of this command.
fn object(verdict: &Verdict) -> Result<Value, Failure> {
    let mut object = json_of(verdict)?;
    if let Some(reasons) = object.get_mut("reasons").and_then(Value::as_array_mut) {
        for (reason, shown) in verdict.reasons().iter().zip(reasons) {
            if let Some(remedy) = shown.get_mut("remedy") {
                *remedy = remedies::words(&reason.remedy).into();
            }
        }
    }
    Ok(object)
}

/// Shows a verdict.
fn show(verdict: &Verdict, terminal: &mut Terminal, summary: &mut Summary) -> Result<(), Failure> {
    summary.add(verdict);
    if terminal.json() {
        return terminal.object(&object(verdict)?);
    }
    let style = match verdict.outcome() {
        Outcome::Acceptable => GOOD,
        _ => BAD,
    };
    let kind = verdict.kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
    terminal.line(format_args!(
        "{NAME}{}{NAME:#}{FAINT}{kind}{FAINT:#}: {style}{}{style:#}",
        verdict.path,
        verdict.outcome()
    ))?;
    for reason in verdict.reasons() {
        let place = reason.place.as_ref().map(|place| format!(" (at {})", shown(place)));
        terminal.line(format_args!(
            "  {BAD}reason{BAD:#}: {}: {}{}",
            reason.rule,
            reason.message,
            place.unwrap_or_default()
        ))?;
        if let Some(help) = remedies::help(reason) {
            terminal.line(format_args!("    {GOOD}help{GOOD:#}: {help}"))?;
        }
    }
    for warning in verdict.warnings() {
        terminal.line(format_args!("  {WARN}warning{WARN:#}: {warning}"))?;
    }
    Ok(())
}
