//! Verdicts on V2 checkpoints: opening them decides (table and header readable, versions); other
//! defects are warnings, unless the data is verified.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_checkpoints::{
    table::{TableDefect, TableError},
    tensor_bundle::{Bundle, BundleError, BundleReport, Files, TensorEntry, prefix_of_index},
};
use serdes_files::{ReadAt, Tree};
use serdes_tensors::ifrt_types;

use super::{
    Findings, Inspection, Options, Reason, Rule, TensorSummary, Warning,
    consumer::ArtifactLine,
    error::{reason_of_io, rule_of_io},
    opened::{Bytes, CheckpointFiles, Located, with_suffix},
    rule::messages,
};

/// Limit on the defects that are listed; further ones are only counted.
const LISTED: usize = 100;

/// A single file without the name that the reader expects: standard input, or an index of another
/// name.
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

/// A function that opens a bundle, with or without its data.
type Open = fn(Arc<dyn Tree>, &Path) -> Result<Bundle, BundleError>;

fn open(files: &CheckpointFiles, open: Open) -> Result<Bundle, Box<Reason>> {
    let bundle = match files {
        CheckpointFiles::Named(Located { tree, path }) => open(Arc::clone(tree), path),
        CheckpointFiles::One(Bytes { source, label, path, tree }) => {
            match path.as_deref().and_then(prefix_of_index) {
                Some(prefix) => open(Arc::clone(tree), &prefix),
                None => {
                    let prefix = PathBuf::from(label);
                    let path = with_suffix(&prefix, ".index");
                    Bundle::open_any(OneFile { path, source: source.clone() }, prefix)
                }
            }
        }
    };
    bundle.map_err(|error| Box::new(reason(&error)))
}

/// Returns the tensor that an error is about.
fn tensor_of(error: &BundleError) -> Option<&str> {
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

/// Returns the error of the system, if a file could not be read.
fn io_of(error: &BundleError) -> Option<&io::Error> {
    let table = match error {
        BundleError::Io { source, .. } => return Some(source),
        BundleError::Index { source, .. }
        | BundleError::HeaderBlock { source, .. }
        | BundleError::Lookup { source, .. }
        | BundleError::TableDefect { defect: TableDefect::Block(source), .. } => source,
        _ => return None,
    };
    match table {
        TableError::Io(error) => Some(error),
        _ => None,
    }
}

fn rule(error: &BundleError) -> Rule {
    match error {
        BundleError::IndexMissing { .. } | BundleError::ShardMissing { .. } => Rule::NotFound,
        BundleError::Unsupported { .. } | BundleError::DataType { .. } => Rule::Unsupported,
        _ => io_of(error).map_or(Rule::Corrupt, rule_of_io),
    }
}

pub(super) fn reason(error: &BundleError) -> Reason {
    if let BundleError::Version { source, .. } = error {
        return Reason::of_rejection(source);
    }
    // The reader's messages include a remedy, except those of the system.
    let reason = match io_of(error) {
        Some(system) => reason_of_io(system, error.to_string()),
        None => Reason::new(rule(error), error.to_string()),
    };
    let reason = match error {
        BundleError::TensorChecksum { stored, computed, .. }
        | BundleError::StringLengthChecksum { stored, computed, .. } => {
            reason.with_numbers(format_args!("{computed:#010x}"), format_args!("{stored:#010x}"))
        }
        BundleError::EntrySize { stored, expected, .. } => reason.with_numbers(stored, expected),
        _ => reason,
    };
    reason.at_any(tensor_of(error))
}

/// Returns the verdict on a V2 checkpoint.
pub(super) fn check(files: &CheckpointFiles, options: &Options) -> Findings {
    match open(files, |tree, path| Bundle::open_for_data(tree, path)) {
        Ok(bundle) => {
            let mut findings = Findings::of_versions(bundle.versions());
            findings.add(judge(&bundle, options, None));
            findings
        }
        Err(reason) => reason.into(),
    }
}

/// The place of a SavedModel's checkpoint in messages; it distinguishes the versions of the
/// checkpoint from those of the graph.
const VARIABLES: &str = "variables/variables.index";

/// Returns the verdict on the checkpoint of a SavedModel.
pub(super) fn check_variables(variables: &Located, options: &Options) -> Findings {
    match Bundle::open_for_data(Arc::clone(&variables.tree), &variables.path) {
        Ok(bundle) => judge(&bundle, options, Some(VARIABLES)),
        Err(error) => {
            // The loader that reads the checkpoint refuses the model in this case.
            let mut findings = Findings::default();
            findings.warn(Warning::new(rule(&error), error.to_string()).at(VARIABLES));
            findings
        }
    }
}

/// Returns the findings in a bundle; `place` is the location of the checkpoint in a larger
/// artifact.
fn judge(bundle: &Bundle, options: &Options, place: Option<&str>) -> Findings {
    let mut findings = Findings::default();
    let consumer = options.consumer().line(ArtifactLine::TensorBundle);
    if let Err(error) = bundle.check_versions(&consumer) {
        return findings.refused(reason(&error).at_any(place));
    }
    let BundleReport { warnings, errors, .. } = options.verify(|verify| bundle.verify(verify));
    for error in errors.iter().take(LISTED) {
        findings.refuse(reason(error));
    }
    if let Some(more) = errors.len().checked_sub(LISTED + 1) {
        findings.refuse(messages::more_tensors_lost(more + 1));
    }
    for defect in warnings.iter().take(LISTED) {
        let warning = Warning::new(rule(defect), defect.to_string());
        findings.warn(warning.at_any(tensor_of(defect)));
    }
    if let Some(more) = warnings.len().checked_sub(LISTED + 1) {
        findings.warn(messages::more_defects(more + 1));
    }
    findings
}

fn summary(entry: &TensorEntry) -> TensorSummary {
    let dtype = match entry.data_type() {
        Some(data_type) => ifrt_types::ifrt_name(data_type).to_owned(),
        None => format!("type {}", entry.data_type_number()),
    };
    TensorSummary::new(entry.name(), dtype, Some(entry.shape().to_vec()), entry.byte_len())
}

/// Describes the contents of a V2 checkpoint.
pub(super) fn inspect(
    files: &CheckpointFiles,
    inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let bundle = open(files, |tree, path| Bundle::open_any(tree, path))?;
    Ok(Inspection { versions: Some(bundle.versions().into()), ..tensors(&bundle, inspection) })
}

/// Returns the tensors of the checkpoint of a SavedModel; empty if it cannot be read.
pub(super) fn inspect_variables(variables: &Located, inspection: Inspection) -> Inspection {
    match Bundle::open_any(Arc::clone(&variables.tree), &variables.path) {
        Ok(bundle) => tensors(&bundle, inspection),
        Err(_) => inspection,
    }
}

fn tensors(bundle: &Bundle, inspection: Inspection) -> Inspection {
    Inspection {
        shards: u64::try_from(bundle.header().num_shards).ok(),
        tensors: bundle.tensors().tensors.iter().map(summary).collect(),
        ..inspection
    }
}

#[cfg(test)]
mod tests {
    use serdes_files::FileSystem;

    use super::*;
    use crate::checkpoint_v1;

    /// A file on a broken disk.
    struct Unreadable;

    impl ReadAt for Unreadable {
        fn size(&self) -> io::Result<u64> {
            Ok(1000)
        }

        fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
            Err(io::Error::other("the disk is broken"))
        }
    }

    #[test]
    fn an_index_that_the_system_cannot_read_is_not_called_corrupt() {
        let bytes = Bytes {
            source: Arc::new(Unreadable),
            label: "-".to_owned(),
            path: None,
            tree: Arc::new(FileSystem),
        };
        let files = CheckpointFiles::One(bytes);
        let options = Options::default();
        for findings in [check(&files, &options), checkpoint_v1::check(&files, &options)] {
            let reason = &findings.reasons()[0];
            assert_eq!(reason.rule, Rule::Unsupported, "{reason}");
            assert_eq!(reason.remedy, crate::Remedy::MakeReadable);
        }
    }
}
