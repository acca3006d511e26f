//! `serdes diff`: the tensors that differ between two files, with their distances.

use std::path::PathBuf;

use serde_json::json;
use serdes_tensors::{self as tensor_io, Comparison, Difference, Tolerance};

use crate::{
    arguments::DiffArguments,
    commands::{failures, locations, progress_monitor, save, streams},
    failure::Failure,
    objects,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, count, shown},
};

/// Runs the command.
pub(crate) fn run(
    arguments: &DiffArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let tolerance = tolerance(arguments)?;
    let paths = [arguments.a.clone(), arguments.b.clone()];
    streams::once(paths.iter().map(PathBuf::as_path))?;
    let form = save::input_form(arguments.kind.as_deref(), &paths)?;
    let input = streams::input_among(paths.iter().map(PathBuf::as_path))?;
    let monitor = progress_monitor::monitor(terminal)?;
    let storage = locations::storage(&monitor);
    let open = |path| streams::open(&storage, path, input.as_ref(), form);
    let (a, b) = (open(&arguments.a)?, open(&arguments.b)?);
    let refused = a.refused().len() + b.refused().len();
    for refused in a.refused().iter().chain(b.refused()) {
        terminal.warning(format_args!("left out {:?}: {}", refused.name, refused.reason));
        if terminal.json() {
            let error = format!("{:?} cannot be compared: {}", refused.name, refused.reason);
            terminal.object(&json!({ "name": refused.name, "error": error }))?;
        }
    }
    let mut printed = Ok(());
    let differences = tensor_io::diff(&*a, &*b, tolerance, &monitor, |difference| {
        if printed.is_ok() {
            printed = show(difference, terminal);
        }
    })
    .map_err(failures::tensor_io)?;
    printed?;
    let equal = differences.iter().filter(|found| found.comparison == Comparison::Equal).count();
    let others = differences.len() - equal;
    let style = if others == 0 { GOOD } else { BAD };
    let unknown =
        if refused == 0 { String::new() } else { format!(", {refused} cannot be compared") };
    terminal.line(format_args!("{equal} equal, {style}{others} not{style:#}{unknown}"))?;
    Ok(match (refused, others) {
        (0, 0) => ExitStatus::Success,
        (0, _) => ExitStatus::Negative,
        _ => ExitStatus::Error,
    })
}

/// Returns the tolerance of `--rtol` and `--atol`; `None` if neither is given.
fn tolerance(arguments: &DiffArguments) -> Result<Option<Tolerance>, Failure> {
    let (relative, absolute) = (arguments.rtol, arguments.atol);
    if relative.or(absolute).is_none() {
        return Ok(None);
    }
    let found = Tolerance::new(relative.unwrap_or(0.0), absolute.unwrap_or(0.0));
    found.map(Some).ok_or_else(|| {
        let name = if relative.is_some_and(|found| found.is_nan() || found < 0.0) {
            "--rtol"
        } else {
            "--atol"
        };
        Failure::new(format_args!("{name}: expected a number, 0 or more"))
    })
}

fn show(difference: &Difference, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&objects::difference(difference));
    }
    if difference.comparison == Comparison::Equal {
        return Ok(());
    }
    let of = format!("of {}", count(difference.elements, "element"));
    let by = match (difference.differing, difference.max_abs) {
        (Some(number), Some(most)) => format!("{number} {of}, by {most} at most"),
        (Some(number), None) => format!("{number} {of}"),
        _ => difference.detail.clone(),
    };
    terminal.line(format_args!(
        "{BAD}{:<10}{BAD:#} {NAME}{}{NAME:#}  {FAINT}{by}{FAINT:#}",
        difference.comparison.as_str(),
        shown(&difference.name)
    ))
}
