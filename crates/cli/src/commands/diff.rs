//! `serdes diff`: which tensors of two files differ, and by how much.

use serde_json::json;
use serdes::tensor_io::{self, Comparison, Difference};

use crate::{
    arguments::DiffArguments,
    commands::{failures, watch},
    terminal::{BAD, FAINT, Failure, GOOD, NAME, Status, Terminal, shown},
};

/// Compares.
pub(crate) fn run(arguments: &DiffArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let failure = |error| failures::tensor_io(&error);
    let a = tensor_io::open(&arguments.a).map_err(failure)?;
    let b = tensor_io::open(&arguments.b).map_err(failure)?;
    for refused in a.refused().iter().chain(b.refused()) {
        terminal.warning(format_args!("left out {:?}: {}", refused.name, refused.reason));
    }
    let watch = watch::watch(terminal)?;
    let mut printed = Ok(());
    let differences = tensor_io::diff(&*a, &*b, &watch, |difference| {
        if printed.is_ok() {
            printed = show(difference, terminal);
        }
    })
    .map_err(failure)?;
    printed?;
    let equal = differences.iter().filter(|found| found.comparison == Comparison::Equal).count();
    let others = differences.len() - equal;
    let style = if others == 0 { GOOD } else { BAD };
    terminal.line(format_args!("{equal} equal, {style}{others} not{style:#}"))?;
    Ok(if others == 0 { Status::Yes } else { Status::No })
}

fn show(difference: &Difference, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&json!({
            "name": difference.name,
            "result": difference.comparison.as_str(),
            "max_abs": difference.max_abs,
            "elements": difference.elements,
            "detail": difference.detail,
        }));
    }
    if difference.comparison == Comparison::Equal {
        return Ok(());
    }
    let by = match (difference.elements, difference.max_abs) {
        (Some(count), Some(most)) => format!("{count} elements, by {most} at most"),
        (Some(count), None) => format!("{count} elements"),
        _ => difference.detail.clone(),
    };
    terminal.line(format_args!(
        "{BAD}{:<10}{BAD:#} {NAME}{}{NAME:#}  {FAINT}{by}{FAINT:#}",
        difference.comparison.as_str(),
        shown(&difference.name)
    ))
}
