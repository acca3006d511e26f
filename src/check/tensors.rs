//! Verdicts on files of plain tensors: safetensors, npy, npz. They record no versions; a file is whole or it is not.

use std::path::Path;
use std::sync::Arc;

use super::artifact::{Artifact, Place};
use super::{Inspection, Kind, Options, Reason, Rule, TensorSummary, Verdict, Warning};
use crate::artifact::ReadAt;
use crate::device_state::Phase;
use crate::tensor_io::{self, Error, Form, Source};

/// Tensors or words of a file that are listed before they are only counted.
const LISTED: usize = 100;

/// Bytes that are read at a time.
const STEP: usize = 1 << 20;

fn source(artifact: &Artifact) -> Result<&Arc<dyn ReadAt>, Box<Reason>> {
    match &artifact.place {
        Place::Source(source) => Ok(source),
        Place::Prefix(path) | Place::Directory(path) => {
            let message = format!("{} is no file", path.display());
            Err(Reason::new(Rule::Unsupported, message, "name the file").into())
        }
    }
}

fn open(artifact: &Artifact) -> Result<Box<dyn Source>, Box<Reason>> {
    let form = match artifact.kind {
        Kind::Safetensors => Form::Safetensors,
        Kind::Npy => Form::Npy,
        _ => Form::Npz,
    };
    let source = Arc::clone(source(artifact)?);
    let tensors = tensor_io::open_at(source, Path::new(&artifact.label), Some(form));
    let tensors = tensors.map_err(|error| Box::new(reason(&error)))?;
    tensors.compare_size().map_err(|error| Box::new(reason(&error)))?;
    Ok(tensors)
}

fn reason(error: &Error) -> Reason {
    let reason = |rule| Reason::new(rule, error.to_string(), "");
    let io = |source: &std::io::Error| match source.kind() {
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => Rule::Corrupt,
        std::io::ErrorKind::NotFound => Rule::NotFound,
        _ => Rule::Unsupported,
    };
    match error {
        Error::Corrupt { found, expected, .. } => {
            reason(Rule::Corrupt).with_numbers(found, expected)
        }
        Error::Refused { name, .. } => reason(Rule::Unsupported).at(name.clone()),
        Error::Data { name, source } => reason(io(source)).at(name.clone()),
        Error::Io { source, .. } => reason(io(source)),
        _ => reason(Rule::Unsupported),
    }
}

/// The verdict on a file of tensors.
pub(super) fn check(artifact: &Artifact, options: &Options, verdict: &mut Verdict) {
    let tensors = match open(artifact) {
        Ok(tensors) => tensors,
        Err(reason) => return verdict.refuse(*reason),
    };
    for refused in tensors.refused().iter().take(LISTED) {
        let message = format!(
            "{:?} is whole as far as its header tells, and {}",
            refused.name, refused.reason
        );
        verdict.warn(Warning::new(Rule::Unsupported, message).at(refused.name.clone()));
    }
    if let Some(more) = tensors.refused().len().checked_sub(LISTED + 1) {
        let message = format!("{} more tensors that cannot be moved", more + 1);
        verdict.warn(Warning::new(Rule::Unsupported, message));
    }
    if !options.verify_data {
        return;
    }
    for error in
        tensors.compare_checksums(&mut |_| !options.watch.is_cancelled()).iter().take(LISTED)
    {
        verdict.refuse(reason(error));
    }
    if verdict.is_acceptable()
        && let Err(error) = read_all(artifact, options)
    {
        verdict.refuse(*error);
    }
}

/// Reads every byte, which is all that can be done for what has no checksum.
fn read_all(artifact: &Artifact, options: &Options) -> Result<(), Box<Reason>> {
    let source = source(artifact)?;
    let failed = |source| {
        let path = artifact.label.clone();
        Box::new(super::CheckError::Io { path, source }.reason())
    };
    let size = source.size().map_err(failed)?;
    options.watch.begin(Phase::Verify, size);
    let mut buffer = vec![0; STEP];
    let mut at = 0;
    while at < size {
        let step = usize::try_from(size - at).unwrap_or(STEP).min(STEP);
        let piece = buffer.get_mut(..step).unwrap_or_default();
        source.read_exact_at(piece, at).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Box::new(Reason::new(
                Rule::Corrupt,
                "the file became shorter while it was read",
                "check it again once it is written",
            )),
            _ => failed(error),
        })?;
        at += step as u64;
        if options.watch.advance(step as u64).is_err() {
            break;
        }
    }
    Ok(())
}

/// What is in a file of tensors.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let tensors = open(artifact)?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    inspection.tensors = tensors
        .tensors()
        .iter()
        .map(|info| {
            let shape = info.shape.dims().to_vec();
            TensorSummary::new(&info.name, info.dtype.name(), Some(shape), Some(info.bytes))
        })
        .collect();
    for (key, value) in tensors.metadata().iter().flatten().take(LISTED) {
        inspection.details.insert(format!("metadata {key}"), value.clone());
    }
    for refused in tensors.refused().iter().take(LISTED) {
        inspection.details.insert(format!("not read {}", refused.name), refused.reason.clone());
    }
    Ok(inspection)
}
