//! Verdicts on the index of a set of files that together hold tensors: the files must exist and be
//! intact.
//!
//! The files belong to the index; a walk does not give them their own verdicts.

use std::path::Path;

use serdes_tensors::{ShardFile, ShardSet, Source, count_of_tensors, listed_names};

use super::{
    CheckError, Findings, Inspection, Options, Reason, Remedy, Rule, TensorSummary,
    opened::Bytes,
    rule::messages,
    tensors::{self, reason},
};

/// Largest number of files or diagnostics that a verdict lists.
const LISTED: usize = 100;

fn open(index: &Bytes) -> Result<ShardSet, Box<Reason>> {
    let Some(path) = &index.path else {
        return Err(Box::new(messages::index_is_no_file().into()));
    };
    ShardSet::open(&*index.tree, path).map_err(|error| Box::new(reason(&error)))
}

/// Returns the verdict on an index and its files.
pub(super) fn check(index: &Bytes, options: &Options) -> Findings {
    let set = match open(index) {
        Ok(set) => set,
        Err(reason) => return reason.into(),
    };
    let mut findings = Findings::default();
    for error in set.errors.iter().take(LISTED) {
        findings.refuse(with_remedy(reason(error)));
    }
    for (file, source) in opened(&set) {
        if let Err(error) = source.compare_size() {
            findings.refuse(with_remedy(reason(&error)).at(&*file.name));
        }
        tensors::tell_refused(source, &mut findings);
        tensors::warn_of_passed_over(source, &mut findings);
    }
    if !set.besides.is_empty() {
        let (tensors, names) = (count_of_tensors(set.besides.len()), listed_names(&set.besides));
        findings.warn(messages::tensors_beside_index(tensors, names));
    }
    if set.errors.is_empty()
        && let Some((stated, (once, each))) = set.total_size.zip(set.sizes())
        && stated != once
        && stated != each
    {
        findings.warn(messages::total_size_differs(stated, each));
    }
    if options.verifies_data() && findings.reasons().is_empty() {
        verify(index, &set, options, &mut findings);
    }
    findings
}

/// Returns the files that could be opened.
fn opened(set: &ShardSet) -> impl Iterator<Item = (&ShardFile, &dyn Source)> {
    set.files.iter().filter_map(|file| file.source.as_deref().map(|source| (file, source)))
}

/// Adds the remedy for a file that is missing or does not match the index: it is of another
/// revision than the others, or was never fetched.
fn with_remedy(reason: Reason) -> Reason {
    match reason.rule {
        Rule::NotFound | Rule::Corrupt => reason.with_remedy(Remedy::FetchSetAgain),
        _ => reason,
    }
}

/// Reads and checks every byte of the files.
fn verify(index: &Bytes, set: &ShardSet, options: &Options, findings: &mut Findings) {
    let mut files = Vec::with_capacity(set.files.len());
    for (file, source) in opened(set) {
        match bytes(index, &file.path) {
            Ok(bytes) => files.push((bytes, source)),
            Err(error) => return findings.refuse(error.reason()),
        }
    }
    let files: Vec<_> = files.iter().map(|(bytes, source)| (bytes, *source)).collect();
    tensors::verify(&files, options, findings);
}

fn bytes(index: &Bytes, path: &Path) -> Result<Bytes, CheckError> {
    let label = index.tree.name(path);
    let opened = index.tree.open(path);
    let source = opened.map_err(|source| CheckError::of_system(label.clone(), source))?;
    Ok(Bytes { source, label, path: Some(path.to_owned()), tree: index.tree.clone() })
}

/// Returns the tensors of the files of an index. A file that is missing or cannot be read is
/// reported in their place.
pub(super) fn inspect(
    index: &Bytes,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let set = open(index)?;
    inspection.shards = Some(set.files.len() as u64);
    let details = &mut inspection.details;
    if let Some(size) = set.total_size {
        details.insert("total_size".to_owned(), size.to_string());
    }
    for file in set.files.iter().take(LISTED) {
        details.insert(format!("file {}", file.name), count_of_tensors(file.named));
    }
    for (number, error) in set.errors.iter().take(LISTED).enumerate() {
        details.insert(format!("fault {}", number + 1), error.to_string());
    }
    for (number, file) in set.files.iter().enumerate() {
        let Some(source) = &file.source else { continue };
        let mut of_file = Inspection::new(String::new(), inspection.kind);
        tensors::list(&**source, &mut of_file);
        let is_taken = |tensor: &TensorSummary| set.is_taken(&tensor.name, number);
        inspection.tensors.extend(of_file.tensors.into_iter().filter(is_taken));
        inspection.details.extend(of_file.details);
    }
    Ok(inspection)
}
