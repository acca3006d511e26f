//! `serdes check --against REF`: the effect of a change on the releases that load each artifact.
//!
//! The earlier state is a folder, or a git revision that is copied to a temporary folder. Does not
//! depend on the contents of verdicts.

mod change;
mod git;
mod judge;
mod listing;
mod show;
mod tree;

use std::{collections::BTreeMap, path::Path};

use serdes_check::Verdicts;

use self::{change::Change, judge::judge, tree::Earlier};
use super::consumers::consumers;
use crate::{arguments::CheckArguments, failure::Failure, status::ExitStatus, terminal::Terminal};

/// Compares the artifacts at each path with the earlier ones.
pub(super) fn run(
    arguments: &CheckArguments,
    against: &str,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let mut arguments = arguments.clone();
    if arguments.tensorflow.is_empty() && arguments.consumer.is_empty() {
        arguments.tensorflow.push("all".to_owned());
    }
    if arguments.jax.is_empty() {
        arguments.jax.push("all".to_owned());
    }
    if arguments.paths.iter().any(|path| path == Path::new("-")) {
        return Err(Failure::new("--against compares files, and standard input is none"));
    }
    let consumers = consumers(&arguments)?;
    let earlier = Earlier::of(against, &arguments.paths)?;
    let mut changes = Vec::new();
    for (path, before) in arguments.paths.iter().zip(&earlier.places) {
        let now = by_name(path, judge(path, &arguments, &consumers)?);
        let then = match before {
            Some(before) => by_name(before, judge(before, &arguments, &consumers)?),
            None => BTreeMap::new(),
        };
        changes.extend(change::compare(path, then, now));
    }
    for note in &earlier.notes {
        terminal.note(note);
    }
    show::show(against, &changes, &arguments, terminal)?;
    Ok(changes.iter().map(Change::status).fold(ExitStatus::Success, ExitStatus::worst))
}

/// Maps the artifacts' paths, relative to the named one, to verdicts.
fn by_name(root: &Path, found: Vec<Verdicts>) -> BTreeMap<String, Verdicts> {
    let below = |path: &str| {
        let path = Path::new(path);
        path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
    };
    found.into_iter().map(|verdicts| (below(&verdicts.path), verdicts)).collect()
}
