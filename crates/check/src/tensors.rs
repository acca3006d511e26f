//! Verdicts on files of plain tensors: safetensors, npy, npz. They record no versions; a file is
//! either intact or not.

use std::{collections::HashSet, io, path::Path, sync::Arc};

use serdes_device_state::Phase;
use serdes_files::Prefetch;
use serdes_tensors::{self as tensor_io, Error, Form, Source};

use super::{
    CheckError, Findings, Inspection, Kind, Options, Reason, Remedy, Rule, TensorSummary, Warning,
    error::became_shorter,
    opened::{Bytes, Located, TensorForm},
    rule::messages,
};

/// Limit on the tensors or messages of a file that are listed; further ones are only counted.
const LISTED: usize = 100;

/// Number of characters of the plain values of a PyTorch file that are shown.
const SHOWN_VALUES: usize = 4096;

/// Number of bytes read at a time.
const STEP: usize = 1 << 20;

fn open(file: &Bytes, form: TensorForm) -> Result<Box<dyn Source>, Box<Reason>> {
    let source = Arc::clone(&file.source);
    let tensors = tensor_io::open_at(source, Path::new(&file.label), Some(form.into()));
    let tensors = tensors.map_err(|error| Box::new(reason(&error)))?;
    tensors.compare_size().map_err(|error| Box::new(reason(&error)))?;
    Ok(tensors)
}

/// Returns the reason for an error of a reader of tensors.
pub(super) fn reason(error: &Error) -> Reason {
    let reason = |rule| Reason::new(rule, error.to_string());
    let io = |source: &io::Error| match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Rule::Corrupt,
        io::ErrorKind::NotFound => Rule::NotFound,
        _ => Rule::Unsupported,
    };
    match error {
        Error::Corrupt { found, expected, .. } => {
            let reason = reason(Rule::Corrupt).with_numbers(found, expected);
            reason.with_remedy(Remedy::FetchOrWriteAgain)
        }
        Error::Refused { name, .. } => reason(Rule::Unsupported).at(name.clone()),
        Error::Data { name, source, .. } => reason(io(source)).at(name.clone()),
        Error::Io { source, .. } => reason(io(source)),
        _ => reason(Rule::Unsupported),
    }
}

/// Returns the verdict on a file of tensors.
pub(super) fn check(file: &Bytes, form: TensorForm, options: &Options) -> Findings {
    let tensors = match open(file, form) {
        Ok(tensors) => tensors,
        Err(reason) => return reason.into(),
    };
    let mut findings = of_listing(&*tensors);
    if options.verifies_data() {
        verify(&[(file, &*tensors)], options, &mut findings);
    }
    findings
}

/// Returns the verdict on a folder of files that together hold tensors: all must exist and match
/// their description.
pub(super) fn check_folder(folder: &Located, options: &Options) -> Findings {
    match open_folder(folder) {
        Ok(tensors) => {
            let mut findings = of_listing(&*tensors);
            if options.verifies_data() {
                compare_checksums(&*tensors, options, &mut findings);
            }
            findings
        }
        Err(reason) => reason.into(),
    }
}

/// Describes the contents of such a folder.
pub(super) fn inspect_folder(
    folder: &Located,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let tensors = open_folder(folder)?;
    list(&*tensors, &mut inspection);
    show_values(&*tensors, &mut inspection);
    Ok(inspection)
}

fn open_folder(folder: &Located) -> Result<Box<dyn Source>, Box<Reason>> {
    let tensors = tensor_io::open_folder(Arc::clone(&folder.tree), &folder.path);
    let tensors = tensors.map_err(|error| Box::new(reason(&error)))?;
    tensors.compare_size().map_err(|error| Box::new(reason(&error)))?;
    Ok(tensors)
}

/// Returns the findings in the listing of a source: refused tensors, and Python objects.
fn of_listing(tensors: &dyn Source) -> Findings {
    let mut findings = Findings::default();
    for name in tensors.listing().pickled.iter().take(LISTED) {
        let reason = Reason::from(messages::array_is_pickled(format_args!("{name:?}")));
        findings.refuse(reason.at(&**name).with_remedy(Remedy::SaveWithoutObjects));
    }
    tell_refused(tensors, &mut findings);
    warn_of_passed_over(tensors, &mut findings);
    findings
}

/// Warns about bytes and entries that the file's own reader ignores.
pub(super) fn warn_of_passed_over(tensors: &dyn Source, findings: &mut Findings) {
    let all = tensors.passed_over();
    for found in all.iter().take(LISTED) {
        let warning = match found.name.as_str() {
            "" => Warning::from(messages::header_is_odd(&found.reason)),
            name => {
                let message = messages::entry_is_odd(format_args!("{name:?}"), &found.reason);
                Warning::from(message).at(name)
            }
        };
        findings.warn(warning);
    }
    if let Some(more) = all.len().checked_sub(LISTED).filter(|more| *more > 0) {
        findings.warn(messages::more_entries_odd(more));
    }
}

/// Reports tensors that exist but cannot be read. A safetensors file with one is refused: its own
/// reader does not accept unknown types.
pub(super) fn tell_refused(tensors: &dyn Source, findings: &mut Findings) {
    let is_reason = tensors.kind() == Kind::Safetensors.id();
    let pickled: HashSet<&String> = tensors.listing().pickled.iter().collect();
    let others = || tensors.refused().iter().filter(|refused| !pickled.contains(&refused.name));
    for refused in others().take(LISTED) {
        let message =
            messages::tensor_is_refused(format_args!("{:?}", refused.name), &refused.reason);
        match is_reason {
            true => findings.refuse(Reason::from(message).at(refused.name.clone())),
            false => findings.warn(Warning::from(message).at(refused.name.clone())),
        }
    }
    if let Some(more) = others().count().checked_sub(LISTED + 1) {
        findings.warn(messages::more_tensors_refused(more + 1));
    }
}

/// Compares the checksums of files of tensors, and reads all their bytes.
pub(super) fn verify(files: &[(&Bytes, &dyn Source)], options: &Options, findings: &mut Findings) {
    for (_, tensors) in files {
        compare_checksums(*tensors, options, findings);
    }
    if findings.reasons().is_empty()
        && let Err(error) = read_all(files, options)
    {
        findings.refuse(*error);
    }
}

/// Compares the checksums that the files of a source have.
fn compare_checksums(tensors: &dyn Source, options: &Options, findings: &mut Findings) {
    let monitor = options.monitor();
    let errors = tensors.compare_checksums(&mut |_| !monitor.is_cancelled());
    errors.iter().take(LISTED).for_each(|error| findings.refuse(reason(error)));
}

/// Reads every byte, which is the only possible check for files without checksums.
fn read_all<'f>(files: &[(&'f Bytes, &dyn Source)], options: &Options) -> Result<(), Box<Reason>> {
    let size = |entry: &(&'f Bytes, &dyn Source)| {
        let (file, _) = *entry;
        Ok((file, file.source.size().map_err(|source| unreadable(file, source))?))
    };
    let sizes = files.iter().map(size).collect::<Result<Vec<(&Bytes, u64)>, Box<Reason>>>()?;
    options.monitor().begin(Phase::Verify, sizes.iter().map(|(_, size)| size).sum());
    sizes.iter().try_for_each(|(file, size)| read_file(file, *size, options))
}

fn unreadable(file: &Bytes, source: io::Error) -> Box<Reason> {
    Box::new(CheckError::Io { path: file.label.clone(), source }.reason())
}

fn read_file(file: &Bytes, size: u64, options: &Options) -> Result<(), Box<Reason>> {
    let mut buffer = vec![0; STEP];
    let mut ahead = Prefetch::new(std::iter::once(0..size));
    let mut at = 0;
    while at < size {
        let step = usize::try_from(size - at).unwrap_or(STEP).min(STEP);
        let (piece, _) = buffer.split_at_mut(step);
        ahead.read(&*file.source, piece, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Box::new(became_shorter()),
            _ => unreadable(file, error),
        })?;
        at += step as u64;
        if options.monitor().advance(step as u64).is_err() {
            break;
        }
    }
    Ok(())
}

/// Describes the contents of a file of tensors.
pub(super) fn inspect(
    file: &Bytes,
    form: TensorForm,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let tensors = open(file, form)?;
    list(&*tensors, &mut inspection);
    for (key, value) in tensors.metadata().iter().flatten().take(LISTED) {
        inspection.details.insert(format!("metadata {key}"), value.clone());
    }
    Ok(inspection)
}

/// Describes the contents of a PyTorch file, which gets no verdict: its tensors and plain values,
/// or the reason why there are none to show.
pub(super) fn inspect_torch(file: &Bytes, mut inspection: Inspection) -> Inspection {
    let source = Arc::clone(&file.source);
    match tensor_io::open_at(source, Path::new(&file.label), Some(Form::Torch)) {
        Ok(tensors) => {
            list(&*tensors, &mut inspection);
            show_values(&*tensors, &mut inspection);
        }
        Err(error) => {
            inspection.details.insert("not read".to_owned(), error.to_string());
        }
    }
    inspection
}

/// Adds the plain values between the tensors.
fn show_values(tensors: &dyn Source, inspection: &mut Inspection) {
    for (_, values) in tensors.metadata().iter().flatten() {
        let mut shown: String = values.chars().take(SHOWN_VALUES).collect();
        if shown.len() < values.len() {
            shown.push('\u{2026}');
        }
        inspection.details.insert("values".to_owned(), shown);
    }
}

/// Lists the tensors of a source.
pub(super) fn list(tensors: &dyn Source, inspection: &mut Inspection) {
    inspection.tensors = tensors
        .tensors()
        .iter()
        .enumerate()
        .map(|(position, info)| {
            let shape = info.shape.dims().to_vec();
            let pieces = tensors.pieces(position);
            let bytes = Some(info.bytes);
            let summary = TensorSummary::new(&info.name, info.dtype.name(), Some(shape), bytes);
            TensorSummary { pieces, ..summary }
        })
        .collect();
    for refused in tensors.refused().iter().take(LISTED) {
        inspection.details.insert(format!("not read {}", refused.name), refused.reason.clone());
    }
    for left_out in tensors.left_out().iter().take(LISTED) {
        let key = format!("not kept {}", left_out.name);
        let reasons = inspection.details.entry(key).or_default();
        if !reasons.is_empty() {
            reasons.push_str("; ");
        }
        reasons.push_str(&left_out.reason);
    }
}
