//! Verdicts on V1 checkpoints: opening every file decides; what else is wrong is a warning, unless the data is verified.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::artifact::{Artifact, Place};
use super::{Inspection, Options, Reason, Rule, TensorSummary, Verdict, Warning};
use crate::artifact::ReadAt;
use crate::artifact::checkpoint_v1::{CheckpointV1, CheckpointV1Error};
use crate::artifact::tensor_bundle::Files;
use crate::version;

/// Defects that are listed before they are only counted.
const LISTED: usize = 100;

/// The one file of the checkpoint, which is open already.
#[derive(Debug)]
struct OneFile(Arc<dyn ReadAt>);

impl Files for OneFile {
    fn open(&self, _path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Ok(self.0.clone())
    }
}

fn open(
    artifact: &Artifact,
    consumer: Option<&version::Consumer>,
) -> Result<CheckpointV1, CheckpointV1Error> {
    match &artifact.place {
        Place::Source(source) => {
            let path = PathBuf::from(&artifact.label);
            CheckpointV1::open_files(&OneFile(source.clone()), &[path], consumer)
        }
        Place::Prefix(pattern) | Place::Directory(pattern) => match consumer {
            Some(consumer) => CheckpointV1::open_for(pattern, consumer),
            None => CheckpointV1::open_for(
                pattern,
                &version::Consumer::new("checkpoint", i32::MAX, i32::MIN),
            ),
        },
    }
}

fn rule(error: &CheckpointV1Error) -> Rule {
    match error {
        CheckpointV1Error::NoFiles { .. } => Rule::NotFound,
        CheckpointV1Error::Pattern { .. } | CheckpointV1Error::Unsupported { .. } => {
            Rule::Unsupported
        }
        CheckpointV1Error::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
            Rule::Corrupt
        }
        CheckpointV1Error::Io { .. } => Rule::Unsupported,
        _ => Rule::Corrupt,
    }
}

/// The tensor that an error is about.
fn place(error: &CheckpointV1Error) -> Option<&str> {
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

fn reason(error: &CheckpointV1Error) -> Reason {
    if let CheckpointV1Error::Version { source, .. } = error {
        return Reason::of_rejection(source);
    }
    let reason = Reason::new(rule(error), error.to_string(), "");
    match place(error) {
        Some(name) => reason.at(name),
        None => reason,
    }
}

/// The verdict on a V1 checkpoint.
pub(super) fn check(artifact: &Artifact, options: &Options, verdict: &mut Verdict) {
    let consumer = options.consumer.line("checkpoint");
    let opened = open(artifact, consumer.as_ref());
    let readable = match &opened {
        // What it records is worth showing although it is refused.
        Err(CheckpointV1Error::Version { .. }) => open(artifact, None).ok(),
        _ => None,
    };
    let shown = opened.as_ref().ok().or(readable.as_ref());
    verdict.versions = shown
        .and_then(|checkpoint| checkpoint.versions().next())
        .map(|(_, versions)| versions.into());
    let checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error) => return verdict.refuse(reason(&error)),
    };
    let (warnings, errors) = options.verify(|verify| checkpoint.verify(verify));
    for error in errors.iter().take(LISTED) {
        verdict.refuse(reason(error));
    }
    for defect in warnings.iter().take(LISTED) {
        let warning = Warning::new(rule(defect), defect.to_string());
        verdict.warn(match place(defect) {
            Some(name) => warning.at(name),
            None => warning,
        });
    }
}

/// What is in a V1 checkpoint.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let checkpoint = open(artifact, None).map_err(|error| Box::new(reason(&error)))?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    inspection.versions = checkpoint.versions().next().map(|(_, versions)| versions.into());
    inspection.shards = Some(checkpoint.versions().count() as u64);
    inspection.tensors = checkpoint
        .tensors()
        .iter()
        .map(|tensor| {
            let dtype = match tensor.data_type() {
                Some(data_type) => data_type.ifrt_name().to_owned(),
                None => format!("type {}", tensor.data_type_number()),
            };
            TensorSummary::new(
                tensor.name(),
                dtype,
                Some(tensor.shape().to_vec()),
                tensor.byte_len(),
            )
        })
        .collect();
    Ok(inspection)
}
