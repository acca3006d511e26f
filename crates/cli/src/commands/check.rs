//! `serdes check`: verdicts on artifacts, and `serdes explain`: what their rules mean.

use std::{collections::BTreeMap, fs, io, path::Path};

use ignore::gitignore::GitignoreBuilder;
use serdes::{
    artifact::graph::DeprecatedOperations,
    check::{self, Consumer, Kind, Options, Outcome, Rule, Verdict},
    stream_executor::conformance,
};

use crate::{
    arguments::{CheckArguments, ExplainArguments},
    commands::{plugin, watch},
    terminal::{BAD, FAINT, Failure, GOOD, NAME, Status, Terminal, WARN, json_of, shown},
};

/// Checks every path; the worst verdict decides the status.
pub(crate) fn run(arguments: &CheckArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut options = options(arguments)?;
    let mut summary = Summary::default();
    // Standard input is read before anybody listens for Ctrl-C: a process that waits for its input is ended by it.
    let mut artifacts = Vec::new();
    for path in &arguments.paths {
        artifacts.push(if path == Path::new("-") {
            let input = check::reader(io::stdin().lock(), options.kind);
            Some(input.map_err(|error| Failure::chain(&error))?)
        } else {
            None
        });
    }
    if options.verify_data {
        options.watch = watch::watch(terminal)?;
    }
    for (path, artifact) in arguments.paths.iter().zip(artifacts) {
        match artifact {
            Some(artifact) => {
                let verdict = artifact.check(&options);
                show(&verdict, &options, terminal, &mut summary)?;
            }
            None => walk(path, arguments, &options, terminal, &mut summary)?,
        }
    }
    summary.print(terminal)?;
    Ok(summary.status)
}

/// Checks what is at a path. A directory that was walked ends with what became of the files in it.
fn walk(
    path: &Path,
    arguments: &CheckArguments,
    options: &Options,
    terminal: &mut Terminal,
    summary: &mut Summary,
) -> Result<(), Failure> {
    let mut walk = check::walk(path, options);
    let mut here = Counts::default();
    while let Some(verdict) = walk.next() {
        show(&verdict, options, terminal, summary)?;
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
    let mut options = Options::for_consumer(consumer);
    // Nothing between the commas is no tag: `--tags ""` asks for the meta graph without any.
    options.tags = arguments.tags.clone().map(|mut tags| {
        tags.retain(|tag| !tag.is_empty());
        tags
    });
    options.kind = kind(arguments.kind.as_deref())?;
    options.verify_data = arguments.verify_data;
    options.strict = arguments.strict;
    if let Some(path) = &arguments.deprecated {
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::new(format_args!("cannot read {}: {error}", path.display()))
        })?;
        options.deprecated = DeprecatedOperations::from_json(&text)
            .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
    }
    Ok(if arguments.exclude.is_empty() { options } else { excluding(options, &arguments.exclude)? })
}

/// The options for walks that leave out what the patterns match, as in a .gitignore at the top of the directory.
fn excluding(options: Options, patterns: &[String]) -> Result<Options, Failure> {
    let failed = |error: ignore::Error| Failure::new(format_args!("--exclude: {error}"));
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(failed)?;
    }
    let patterns = builder.build().map_err(failed)?;
    Ok(options
        .with_excluded(move |path, is_directory| patterns.matched(path, is_directory).is_ignore()))
}

/// The kind that `--kind` names.
pub(crate) fn kind(name: Option<&str>) -> Result<Option<Kind>, Failure> {
    name.map(|name| {
        name.parse::<Kind>().map_err(|error| Failure::new(format_args!("--kind: {error}")))
    })
    .transpose()
}

/// The status that a verdict means.
fn status(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Acceptable => Status::Yes,
        Outcome::Unacceptable => Status::No,
        _ => Status::Failed,
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

/// Shows a verdict; an error if the work was stopped, so that nobody takes half of it for the whole.
fn show(
    verdict: &Verdict,
    options: &Options,
    terminal: &mut Terminal,
    summary: &mut Summary,
) -> Result<(), Failure> {
    if options.watch.is_cancelled() {
        return Err(Failure::new(format_args!(
            "cancelled while {} was verified; nothing is known of it",
            verdict.path
        )));
    }
    summary.add(verdict);
    if terminal.json() {
        return terminal.object(&json_of(verdict)?);
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
        // The rule's own remedy is general; `explain` has it.
        if reason.remedy != reason.rule.explain().remedy {
            terminal.line(format_args!("    {GOOD}help{GOOD:#}: {}", reason.remedy))?;
        }
    }
    for warning in verdict.warnings() {
        terminal.line(format_args!("  {WARN}warning{WARN:#}: {warning}"))?;
    }
    Ok(())
}

/// Explains a rule, or lists the rules.
pub(crate) fn explain(
    arguments: &ExplainArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    if let Some(name) = &arguments.rule
        && let Some(behaviour) = conformance::demands().find(|(behaviour, _)| behaviour == name)
    {
        plugin::demand(behaviour, terminal)?;
        return Ok(Status::Yes);
    }
    let rules = match &arguments.rule {
        Some(id) => vec![id.parse::<Rule>().map_err(|error| Failure::chain(&error))?],
        None => Rule::ALL.to_vec(),
    };
    for rule in &rules {
        let explanation = rule.explain();
        if terminal.json() {
            terminal.object(&serde_json::json!({
                "rule": rule.id(),
                "verdict": rule.outcome().id(),
                "meaning": explanation.meaning,
                "example": explanation.example,
                "remedy": explanation.remedy,
            }))?;
        } else if arguments.rule.is_none() {
            terminal.line(format_args!(
                "{NAME}{:<22}{NAME:#}{}",
                rule.id(),
                explanation.meaning
            ))?;
        } else {
            terminal.line(format_args!("{NAME}{}{NAME:#} ({})\n", rule.id(), rule.outcome()))?;
            terminal.line(explanation.meaning)?;
            terminal.line(format_args!("\n{NAME}Example{NAME:#}  {}", explanation.example))?;
            terminal.line(format_args!("{NAME}Remedy{NAME:#}   {}", explanation.remedy))?;
        }
    }
    Ok(Status::Yes)
}
