//! Verdicts on V2 checkpoints: opening them decides (table and header readable, versions); what else is wrong is a warning, unless
//! the data is verified.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::artifact::{Artifact, Place, with_suffix};
use super::{Inspection, Kind, Options, Reason, Rule, TensorSummary, Verdict, Warning};
use crate::artifact::ReadAt;
use crate::artifact::tensor_bundle::{
    Bundle, BundleError, BundleReport, FileSystem, Files, TensorEntry,
};

/// Defects that are listed before they are only counted.
const LISTED: usize = 100;

/// A single file that is not called what the reader expects: standard input, or an index of another name.
#[derive(Debug)]
struct OneFile {
    path: PathBuf,
    source: Arc<dyn ReadAt>,
}

impl Files for OneFile {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        if path == self.path {
            Ok(self.source.clone())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// The prefix of a checkpoint whose index has this path.
fn prefix_of(index: &Path) -> Option<PathBuf> {
    if index.extension()? == "index" { Some(index.with_extension("")) } else { None }
}

fn open(artifact: &Artifact) -> Result<Bundle, Box<Reason>> {
    let path = artifact.path.as_deref();
    let bundle = match &artifact.place {
        Place::Source(source) => match path.and_then(prefix_of) {
            Some(prefix) => Bundle::open_any(FileSystem, prefix),
            None => {
                let prefix = PathBuf::from(&artifact.label);
                let files =
                    OneFile { path: with_suffix(&prefix, ".index"), source: source.clone() };
                Bundle::open_any(files, prefix)
            }
        },
        Place::Prefix(path) | Place::Directory(path) => Bundle::open_any(FileSystem, path),
    };
    bundle.map_err(|error| Box::new(reason(&error)))
}

/// The tensor that an error is about.
fn place(error: &BundleError) -> Option<&str> {
    match error {
        BundleError::TensorNotFound { name }
        | BundleError::Lookup { name, .. }
        | BundleError::Entry { name, .. }
        | BundleError::Shape { name, .. }
        | BundleError::DataType { name, .. }
        | BundleError::DataTypeMismatch { name, .. }
        | BundleError::Unsupported { name, .. }
        | BundleError::EntrySize { name, .. }
        | BundleError::EntryOffset { name, .. }
        | BundleError::ShardMissing { name, .. }
        | BundleError::ShardShort { name, .. }
        | BundleError::TensorChecksum { name, .. }
        | BundleError::StringLengthChecksum { name, .. }
        | BundleError::StringLengths { name, .. }
        | BundleError::StringLength { name }
        | BundleError::Slice { name, .. }
        | BundleError::SlicesMissing { name, .. }
        | BundleError::SlicesOverlap { name }
        | BundleError::PieceMismatch { name, .. } => Some(name),
        _ => None,
    }
}

fn rule(error: &BundleError) -> Rule {
    match error {
        BundleError::IndexMissing { .. } | BundleError::ShardMissing { .. } => Rule::NotFound,
        BundleError::Unsupported { .. } | BundleError::DataType { .. } => Rule::Unsupported,
        BundleError::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
            Rule::Corrupt
        }
        BundleError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Rule::NotFound
        }
        BundleError::Io { .. } => Rule::Unsupported,
        _ => Rule::Corrupt,
    }
}

fn reason(error: &BundleError) -> Reason {
    if let BundleError::Version { source, .. } = error {
        return Reason::of_rejection(source);
    }
    // The messages of the reader say what to do.
    let reason = Reason::new(rule(error), error.to_string(), "");
    let reason = match error {
        BundleError::TensorChecksum { stored, computed, .. }
        | BundleError::StringLengthChecksum { stored, computed, .. } => {
            reason.with_numbers(format_args!("{computed:#010x}"), format_args!("{stored:#010x}"))
        }
        BundleError::EntrySize { stored, expected, .. } => reason.with_numbers(stored, expected),
        _ => reason,
    };
    match place(error) {
        Some(name) => reason.at(name),
        None => reason,
    }
}

fn warning(error: &BundleError) -> Warning {
    let warning = Warning::new(rule(error), error.to_string());
    match place(error) {
        Some(name) => warning.at(name),
        None => warning,
    }
}

/// The verdict on a V2 checkpoint.
pub(super) fn check(artifact: &Artifact, options: &Options, verdict: &mut Verdict) {
    let bundle = match open(artifact) {
        Ok(bundle) => bundle,
        Err(reason) => return verdict.refuse(*reason),
    };
    verdict.versions = Some(bundle.versions().into());
    judge(&bundle, options, verdict);
}

/// The same for the checkpoint of a SavedModel, which `prefix` names; reasons and warnings are added to the model's.
pub(super) fn check_variables(prefix: &Path, options: &Options, verdict: &mut Verdict) {
    match Bundle::open_any(FileSystem, prefix) {
        Ok(bundle) => judge(&bundle, options, verdict),
        Err(error) => {
            let reason = reason(&error);
            let place =
                reason.place.clone().unwrap_or_else(|| "variables/variables.index".to_owned());
            verdict.refuse(reason.at(place));
        }
    }
}

fn judge(bundle: &Bundle, options: &Options, verdict: &mut Verdict) {
    if let Some(consumer) = options.consumer.line("tensor_bundle")
        && let Err(error) = bundle.check_versions(&consumer)
    {
        let reason = reason(&error);
        // In a SavedModel the place tells it from the versions of the graph.
        return verdict.refuse(match verdict.kind {
            Some(Kind::SavedModel) => reason.at("variables/variables.index"),
            _ => reason,
        });
    }
    let BundleReport { warnings, errors, .. } = options.verify(|verify| bundle.verify(verify));
    for error in errors.iter().take(LISTED) {
        verdict.refuse(reason(error));
    }
    if let Some(more) = errors.len().checked_sub(LISTED + 1) {
        verdict.refuse(Reason::new(
            Rule::Corrupt,
            format!("{} more tensors cannot be restored", more + 1),
            "",
        ));
    }
    for defect in warnings.iter().take(LISTED) {
        verdict.warn(warning(defect));
    }
    if let Some(more) = warnings.len().checked_sub(LISTED + 1) {
        verdict.warn(Warning::new(Rule::Corrupt, format!("{} more defects", more + 1)));
    }
}

fn summary(entry: &TensorEntry) -> TensorSummary {
    let dtype = match entry.data_type() {
        Some(data_type) => data_type.ifrt_name().to_owned(),
        None => format!("type {}", entry.data_type_number()),
    };
    TensorSummary::new(entry.name(), dtype, Some(entry.shape().to_vec()), entry.byte_len())
}

/// What is in a V2 checkpoint.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let bundle = open(artifact)?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    inspection.versions = Some(bundle.versions().into());
    inspection.shards = u64::try_from(bundle.header().num_shards).ok();
    inspection.tensors = bundle.tensors().tensors.iter().map(summary).collect();
    Ok(inspection)
}

/// The tensors of the checkpoint of a SavedModel; none if it cannot be read.
pub(super) fn inspect_variables(prefix: &Path, inspection: &mut Inspection) {
    if let Ok(bundle) = Bundle::open_any(FileSystem, prefix) {
        inspection.shards = u64::try_from(bundle.header().num_shards).ok();
        inspection.tensors = bundle.tensors().tensors.iter().map(summary).collect();
    }
}
