//! Verdicts on V1 checkpoints: opening every file decides; other defects are warnings, unless the
//! data is verified.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes::version;
use serdes_checkpoints::{
    checkpoint_v1::{CheckpointV1, CheckpointV1Error},
    table::TableError,
    tensor_bundle::Files,
};
use serdes_files::ReadAt;
use serdes_tensors::ifrt_types;

use super::{
    Findings, Inspection, Options, Reason, Rule, TensorSummary, Warning,
    consumer::ArtifactLine,
    error::{reason_of_io, rule_of_io},
    opened::{Bytes, CheckpointFiles, Located},
};

/// Limit on the defects that are listed; further ones are only counted.
const LISTED: usize = 100;

/// The only file of the checkpoint, which is already open.
#[derive(Debug)]
struct OneFile(Arc<dyn ReadAt>);

impl Files for OneFile {
    fn open(&self, _path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Ok(self.0.clone())
    }
}

/// Opens a checkpoint for a consumer; without one, the versions are not checked.
fn open(
    files: &CheckpointFiles,
    consumer: Option<&version::Consumer>,
) -> Result<CheckpointV1, CheckpointV1Error> {
    match files {
        CheckpointFiles::Named(Located { tree, path }) => {
            CheckpointV1::open_in(&**tree, path, consumer)
        }
        CheckpointFiles::One(Bytes { source, label, .. }) => {
            let path = PathBuf::from(label);
            CheckpointV1::open_files(&OneFile(source.clone()), &[path], consumer)
        }
    }
}

/// Returns the error of the system, if a file could not be read.
fn io_of(error: &CheckpointV1Error) -> Option<&io::Error> {
    match error {
        CheckpointV1Error::Io { source: error, .. }
        | CheckpointV1Error::Table { source: TableError::Io(error), .. }
        | CheckpointV1Error::NoHeader { source: Some(TableError::Io(error)), .. } => Some(error),
        _ => None,
    }
}

fn rule(error: &CheckpointV1Error) -> Rule {
    match error {
        CheckpointV1Error::NoFiles { .. } => Rule::NotFound,
        CheckpointV1Error::Pattern { .. } | CheckpointV1Error::Unsupported { .. } => {
            Rule::Unsupported
        }
        _ => io_of(error).map_or(Rule::Corrupt, rule_of_io),
    }
}

/// Returns the tensor that an error is about.
fn tensor_of(error: &CheckpointV1Error) -> Option<&str> {
    match error {
        CheckpointV1Error::Shape { name, .. }
        | CheckpointV1Error::Slice { name, .. }
        | CheckpointV1Error::Conflict { name, .. }
        | CheckpointV1Error::Overlap { name }
        | CheckpointV1Error::SlicesMissing { name, .. }
        | CheckpointV1Error::SliceData { name, .. }
        | CheckpointV1Error::Unsupported { name, .. } => Some(name),
        _ => None,
    }
}

pub(super) fn reason(error: &CheckpointV1Error) -> Reason {
    if let CheckpointV1Error::Version { source, .. } = error {
        return Reason::of_rejection(source);
    }
    let reason = match io_of(error) {
        Some(system) => reason_of_io(system, error.to_string()),
        None => Reason::new(rule(error), error.to_string()),
    };
    reason.at_any(tensor_of(error))
}

/// Returns the verdict on a V1 checkpoint.
pub(super) fn check(files: &CheckpointFiles, options: &Options) -> Findings {
    let opened = open(files, Some(&options.consumer().line(ArtifactLine::Checkpoint)));
    let readable = match &opened {
        // The contents are worth showing although the checkpoint is refused.
        Err(CheckpointV1Error::Version { .. }) => open(files, None).ok(),
        _ => None,
    };
    let shown = opened.as_ref().ok().or(readable.as_ref());
    let mut findings = Findings::default();
    findings.versions = shown
        .and_then(|checkpoint| checkpoint.versions().next())
        .map(|(_, versions)| versions.into());
    let checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error) => return findings.refused(reason(&error)),
    };
    let (warnings, errors) = options.verify(|verify| checkpoint.verify(verify));
    for error in errors.iter().take(LISTED) {
        findings.refuse(reason(error));
    }
    for defect in warnings.iter().take(LISTED) {
        let warning = Warning::new(rule(defect), defect.to_string());
        findings.warn(warning.at_any(tensor_of(defect)));
    }
    findings
}

/// Describes the contents of a V1 checkpoint.
pub(super) fn inspect(
    files: &CheckpointFiles,
    inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let checkpoint = open(files, None).map_err(|error| Box::new(reason(&error)))?;
    Ok(Inspection {
        versions: checkpoint.versions().next().map(|(_, versions)| versions.into()),
        shards: Some(checkpoint.versions().count() as u64),
        tensors: checkpoint
            .tensors()
            .iter()
            .map(|tensor| {
                let dtype = match tensor.data_type() {
                    Some(data_type) => ifrt_types::ifrt_name(data_type).to_owned(),
                    None => format!("type {}", tensor.data_type_number()),
                };
                let shape = Some(tensor.shape().to_vec());
                TensorSummary::new(tensor.name(), dtype, shape, tensor.byte_len())
            })
            .collect(),
        ..inspection
    })
}
