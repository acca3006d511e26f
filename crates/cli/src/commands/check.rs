//! `serdes check`: verdicts on artifacts.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_check::{
    self as check, Kind, Outcome, Verdicts, Walk,
    report::{Baseline, Comparison},
};
use serdes_device_state::files::Tree;
use serdes_tensors::storage::Storage;

use crate::{
    arguments::CheckArguments,
    commands::{
        against,
        consumers::{Several, check_configured, consumers, options},
        locations, progress_monitor,
        reports::Reports,
        streams, unread,
        walk_options::{excluded, named_kind},
    },
    configuration::Effective,
    failure::Failure,
    status::ExitStatus,
    terminal::{FAINT, NAME, Terminal, shown, shown_path},
};

/// Checks the paths of the command line, or else those of `serdes.toml`.
pub(crate) fn run_configured(
    arguments: &CheckArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let effective = Effective::of(arguments)?;
    check_configured(&effective)?;
    let Effective { arguments, file, .. } = effective;
    if arguments.paths.is_empty() {
        let hint = match file {
            Some(file) => format!("name one, or add paths to {}", shown_path(&file)),
            None => "name one, or write a serdes.toml with paths".to_owned(),
        };
        return Err(Failure::new("no PATH to check").with_hint(hint));
    }
    match &arguments.against {
        Some(against) => against::run(&arguments, against, terminal),
        None => run(&arguments, terminal),
    }
}

/// Checks every path; the worst verdict determines the status.
fn run(arguments: &CheckArguments, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    run_for(arguments, Loaders::All, terminal)
}

/// The frameworks that load artifacts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loaders {
    /// All frameworks: the newest release of those without an option.
    All,
    /// Only frameworks with an option; artifacts of others get no verdict.
    Named,
}

/// Checks every path for these frameworks.
pub(crate) fn run_for(
    arguments: &CheckArguments,
    loaders: Loaders,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let consumers = consumers(arguments)?;
    let reports = Reports::of(arguments, consumers.several.any(), terminal)?;
    let mut options = options(arguments)?.with_strict(reports.strict(arguments));
    let (kind, message) = named_kind(arguments.kind.as_deref())?;
    if let Some(message) = message {
        options = options.with_message(message);
    }
    let excluded = excluded(&arguments.exclude)?;
    let baseline = reports.baseline();
    let comparison = baseline.as_ref().map(Baseline::compare);
    let mut summary = Summary::new(consumers.several, reports, comparison);
    if matches!(loaders, Loaders::Named) {
        summary.missing = Missing {
            tensorflow: arguments.tensorflow.is_empty(),
            jaxlib: arguments.jax.is_empty(),
        };
    }
    streams::once(arguments.paths.iter().map(PathBuf::as_path))?;
    // Standard input is read before the Ctrl-C handler is installed, so that Ctrl-C still ends a
    // process that waits for input.
    let mut artifacts = Vec::new();
    for path in &arguments.paths {
        artifacts.push(if path == Path::new("-") {
            Some(check::reader(streams::standard_input()?, kind).map_err(Failure::of)?)
        } else {
            None
        });
    }
    let mut storage = Storage::anywhere();
    if arguments.verify_data {
        let monitor = progress_monitor::monitor(terminal)?;
        storage = locations::storage(&monitor);
        options = options.with_monitor(monitor);
    }
    let storage: Arc<dyn Tree> = Arc::new(storage);
    for (path, artifact) in arguments.paths.iter().zip(artifacts) {
        if let Some(artifact) = artifact {
            let verdicts = artifact.check_for(&consumers.all, &options).map_err(Failure::of)?;
            summary.show(&verdicts, terminal)?;
            continue;
        }
        unread::note_of_data(&*storage, path, terminal);
        let mut walk = check::walk(path, &options)
            .in_tree(Arc::clone(&storage))
            .for_consumers(consumers.all.iter().cloned());
        if let Some(kind) = kind {
            walk = walk.of_kind(kind);
        }
        if let Some(excluded) = &excluded {
            walk =
                walk.without(|path, is_directory| excluded.matched(path, is_directory).is_ignore());
        }
        show_walk(walk, path, arguments, terminal, &mut summary)?;
    }
    summary.finish(terminal)
}

/// Checks the artifacts at a path. A walked directory ends with a summary of its files.
fn show_walk(
    mut walk: Walk<'_>,
    path: &Path,
    arguments: &CheckArguments,
    terminal: &mut Terminal,
    summary: &mut Summary<'_>,
) -> Result<(), Failure> {
    let mut here = Counts::default();
    while let Some(verdicts) = walk.next_artifact() {
        let verdicts = verdicts.map_err(Failure::of)?;
        let outcome = summary.show(&verdicts, terminal)?;
        // An empty directory is reported as such, not as a file in it.
        if let Some(outcome) = outcome.filter(|_| walk.found_any()) {
            here.add(outcome);
        }
    }
    if !walk.is_of_directory() {
        return Ok(());
    }
    let skipped = walk.skipped();
    if arguments.require_known && skipped.count > 0 {
        summary.status = summary.status.worst(ExitStatus::Error);
    }
    let paths = || skipped.paths.iter().map(|path| path.to_string_lossy());
    let object = serde_json::json!({
        "summary": true,
        "path": path.to_string_lossy(),
        "checked": here.checked(),
        "acceptable": here.acceptable,
        "unacceptable": here.unacceptable,
        "unreadable": here.unreadable,
        "skipped": skipped.count,
        "skipped_paths": paths().collect::<Vec<_>>(),
    });
    summary.reports.object(&object, terminal)?;
    let files = if skipped.count == 1 { "file" } else { "files" };
    let (name, checked) = (path.to_string_lossy(), here.checked());
    let rest = format!("{checked} checked; {} {files} skipped (unsupported type)", skipped.count);
    summary.reports.note(format!("{}: {rest}", shown(&name)));
    if arguments.require_known {
        for path in paths() {
            summary
                .reports
                .note(format!("{}: of no kind that is judged, and required to be", shown(&path)));
        }
    }
    if !summary.reports.is_streamed() {
        return Ok(());
    }
    terminal.line(format_args!("{NAME}{}{NAME:#}: {rest}", shown(&name)))?;
    if arguments.require_known || terminal.verbosity() > 0 {
        for path in paths() {
            terminal.line(format_args!("  {FAINT}skipped{FAINT:#}: {}", shown(&path)))?;
        }
    }
    Ok(())
}

/// Number of artifacts with each verdict.
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

/// Frameworks that are not installed and so load no artifact.
#[derive(Clone, Copy, Debug, Default)]
struct Missing {
    tensorflow: bool,
    jaxlib: bool,
}

impl Missing {
    /// Returns the framework that would load artifacts of a kind, if it is missing.
    fn loader_of(self, kind: Option<Kind>) -> Option<&'static str> {
        match kind? {
            Kind::JaxExport | Kind::StableHlo => self.jaxlib.then_some("jaxlib"),
            Kind::SavedModel
            | Kind::MetaGraph
            | Kind::GraphDef
            | Kind::GraphDefText
            | Kind::TensorBundle
            | Kind::CheckpointV1
            | Kind::CheckpointState => self.tensorflow.then_some("TensorFlow"),
            _ => None,
        }
    }
}

/// Summary of all artifacts.
struct Summary<'b> {
    status: ExitStatus,
    missing: Missing,
    /// Number of artifacts by kind and verdict; the worst verdict of several releases counts.
    kinds: BTreeMap<(String, &'static str), u64>,
    counts: Counts,
    several: Several,
    reports: Reports,
    comparison: Option<Comparison<'b>>,
}

impl<'b> Summary<'b> {
    fn new(several: Several, reports: Reports, comparison: Option<Comparison<'b>>) -> Self {
        Self {
            status: ExitStatus::Success,
            missing: Missing::default(),
            kinds: BTreeMap::new(),
            counts: Counts::default(),
            several,
            reports,
            comparison,
        }
    }

    /// Prints the verdicts on an artifact, and counts them; `None` if its framework is missing.
    fn show(
        &mut self,
        found: &Verdicts,
        terminal: &mut Terminal,
    ) -> Result<Option<Outcome>, Failure> {
        let kind = found.iter().find_map(|verdict| verdict.kind);
        if let Some(loader) = self.missing.loader_of(kind) {
            let path = found.iter().next().map(|verdict| verdict.path.as_str());
            terminal.warning(format_args!(
                "{} is not judged: no {loader} was found that is to load it",
                shown(path.unwrap_or_default())
            ));
            return Ok(None);
        }
        let are_several = self.several.of(kind);
        let counted = self.reports.add(found, are_several, &mut self.comparison, terminal)?;
        self.status = self.status.worst(counted.status);
        let kind = kind.map_or_else(|| "unknown".to_owned(), |kind| kind.to_string());
        *self.kinds.entry((kind, counted.words)).or_default() += 1;
        self.counts.add(counted.outcome);
        Ok(Some(counted.outcome))
    }

    /// Writes the reports, and a table of the numbers of verdicts if they were printed one by one.
    fn finish(self, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
        if self.reports.is_streamed() && self.counts.checked() > 1 {
            self.print(terminal)?;
        }
        self.reports.finish(self.status, self.comparison.as_ref(), terminal)
    }

    fn print(&self, terminal: &mut Terminal) -> Result<(), Failure> {
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
        let total = self.counts.checked();
        let bad = total - self.counts.acceptable;
        terminal.line(format_args!("\n{bad} of {total} would not load"))
    }
}
