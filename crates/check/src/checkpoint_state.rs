//! Verdicts on TensorFlow's file `checkpoint`: the newest checkpoint that it names must exist, as
//! `tf.train.latest_checkpoint` looks for it, and be intact.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use serdes_checkpoints::checkpoint_state::{
    CheckpointState, CheckpointStateError, FILE_NAME, Found, find, is_matched, location,
    prefixes_in,
};

use super::{
    CheckpointList, CheckpointSummary, Findings, Inspection, Kind, Options, Reason, Remedy, Rule,
    Warning, checkpoint_v1,
    error::reason_of_io,
    opened::{Bytes, CheckpointFiles, Located},
    rule::messages,
    tensor_bundle,
};

/// Limit on the checkpoints that are listed; further ones are only counted.
const LISTED: usize = 20;

/// Limit on the checkpoints that are looked up.
const LOOKED_FOR: usize = 1000;

fn read(file: &Bytes) -> Result<CheckpointState, Box<Reason>> {
    CheckpointState::read(&*file.source).map_err(|error| {
        Box::new(match &error {
            CheckpointStateError::Io(source) => reason_of_io(source, error.to_string()),
            _ => Reason::new(Rule::Corrupt, error.to_string())
                .with_remedy(Remedy::NamePrefix { prefix: None }),
        })
    })
}

/// Returns the folder of the file; `None` for a stream.
fn folder(file: &Bytes) -> Option<&Path> {
    file.path.as_deref().map(|path| path.parent().unwrap_or(path))
}

/// Returns the verdict on the file; if `follows`, including the verdict on the newest checkpoint.
pub(super) fn check(file: &Bytes, follows: bool, options: &Options) -> Findings {
    let state = match read(file) {
        Ok(state) => state,
        Err(reason) => return reason.into(),
    };
    let Some(folder) = folder(file) else {
        return Findings::default().refused(messages::list_is_no_file());
    };
    let mut findings = Findings::default();
    match newest(file, folder, &state) {
        Ok((found, prefix)) if follows => findings.add(follow(file, found, prefix, options)),
        Ok(_) => {}
        Err(reason) => findings.refuse(*reason),
    }
    warn_of_lost(file, folder, &state, &mut findings);
    warn_of_unlisted(file, folder, &state, &mut findings);
    findings
}

/// Returns the newest checkpoint, if it exists.
fn newest(
    file: &Bytes,
    folder: &Path,
    state: &CheckpointState,
) -> Result<(Found, PathBuf), Box<Reason>> {
    let tree = &*file.tree;
    let prefix = location(tree, folder, &state.newest);
    let found = prefix.and_then(|prefix| find(tree, &prefix).map(|found| (found, prefix)));
    let Some((found, prefix)) = found else {
        let reason = Reason::from(messages::newest_is_missing(format_args!("{:?}", state.newest)));
        let remedy = Remedy::NamePrefix { prefix: beside(file, folder, &state.newest) };
        return Err(Box::new(reason.at(&*state.newest).with_remedy(remedy)));
    };
    if !is_matched(tree, &prefix) {
        let name = tree.name(&prefix);
        let reason = Reason::from(messages::newest_is_a_pattern(format_args!("{name:?}")));
        let remedy = Remedy::NamePrefix { prefix: Some(name) };
        return Err(Box::new(reason.at(&*state.newest).with_remedy(remedy)));
    }
    Ok((found, prefix))
}

/// Returns the checkpoint in the folder with the name of one elsewhere, which means that the folder
/// was moved.
fn beside(file: &Bytes, folder: &Path, prefix: &str) -> Option<String> {
    let beside = folder.join(Path::new(prefix).file_name()?);
    find(&*file.tree, &beside).map(|_| file.tree.name(&beside))
}

/// Returns the verdict on the newest checkpoint.
fn follow(file: &Bytes, found: Found, prefix: PathBuf, options: &Options) -> Findings {
    let files = CheckpointFiles::Named(Located { tree: file.tree.clone(), path: prefix });
    match found {
        Found::Bundle => tensor_bundle::check(&files, options),
        Found::V1 => checkpoint_v1::check(&files, options),
    }
}

/// Warns about older checkpoints that are listed but do not exist.
fn warn_of_lost(file: &Bytes, folder: &Path, state: &CheckpointState, findings: &mut Findings) {
    let is_lost = |prefix: &&String| {
        let path = location(&*file.tree, folder, prefix);
        path.and_then(|path| find(&*file.tree, &path)).is_none()
    };
    let older = state.all.iter().filter(|prefix| **prefix != state.newest);
    let lost: Vec<&String> = older.take(LOOKED_FOR).filter(is_lost).collect();
    for prefix in lost.iter().take(LISTED) {
        let warning = Warning::from(messages::older_is_missing(format_args!("{prefix:?}")));
        findings.warn(warning.at(prefix.as_str()));
    }
    if let Some(more) = lost.len().checked_sub(LISTED + 1) {
        findings.warn(messages::more_older_missing(more + 1));
    }
}

/// Warns about checkpoints in the folder that the file does not list. Only a file with the standard
/// name is checked, because programs look for the newest checkpoint there.
fn warn_of_unlisted(file: &Bytes, folder: &Path, state: &CheckpointState, findings: &mut Findings) {
    if file.file_name() != FILE_NAME {
        return;
    }
    let tree = &*file.tree;
    let listed: HashSet<PathBuf> = std::iter::once(&state.newest)
        .chain(&state.all)
        .filter_map(|prefix| location(tree, folder, prefix))
        .map(|path| resolved(file, &path))
        .collect();
    let unlisted: Vec<PathBuf> = prefixes_in(tree, folder)
        .into_iter()
        .filter(|prefix| !listed.contains(&resolved(file, prefix)))
        .collect();
    for prefix in unlisted.iter().take(LISTED) {
        let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let newest = format_args!("{:?}", state.newest);
        let warning = Warning::from(messages::checkpoint_is_unlisted(
            format_args!("{name:?}"),
            FILE_NAME,
            newest,
        ));
        findings.warn(warning.at(name.as_str()));
    }
    if let Some(more) = unlisted.len().checked_sub(LISTED + 1) {
        findings.warn(messages::more_checkpoints_unlisted(more + 1, FILE_NAME));
    }
}

/// Returns a prefix with the canonical name of its folder, so that different spellings compare
/// equal.
fn resolved(file: &Bytes, prefix: &Path) -> PathBuf {
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
    let canonical = match file.tree.is_of_system(prefix) {
        true => fs::canonicalize(folder.unwrap_or(Path::new("."))).ok(),
        false => None,
    };
    match (canonical, prefix.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => prefix.to_owned(),
    }
}

/// Describes the checkpoints that the file lists.
pub(super) fn inspect(file: &Bytes, mut inspection: Inspection) -> Result<Inspection, Box<Reason>> {
    let state = read(file)?;
    let format = |prefix: &str| {
        let tree = &*file.tree;
        find(tree, &location(tree, folder(file)?, prefix)?)
    };
    let summary = |(number, prefix): (usize, &String)| CheckpointSummary {
        prefix: prefix.clone(),
        kind: if number < LOOKED_FOR { format(prefix).map(kind) } else { None },
        timestamp: state.timestamps.get(number).map(f64::to_string),
    };
    inspection.checkpoints = Some(CheckpointList {
        newest: state.newest.clone(),
        newest_kind: format(&state.newest).map(kind),
        checkpoints: state.all.iter().enumerate().map(summary).collect(),
        last_preserved: state.last_preserved.map(|seconds| seconds.to_string()),
    });
    Ok(inspection)
}

fn kind(found: Found) -> Kind {
    match found {
        Found::Bundle => Kind::TensorBundle,
        Found::V1 => Kind::CheckpointV1,
    }
}
