//! Verdicts on device states: opening one reads its ends; with verification every byte of it is read.

use std::sync::Arc;

use super::artifact::{Artifact, Place};
use super::{Inspection, NestedVersion, Options, Reason, Rule, TensorSummary, Verdict};
use crate::device_state::{Error, Reader};
use crate::ifrt;

/// Damages that are listed before they are only counted.
const LISTED: usize = 100;

fn open(artifact: &Artifact) -> Result<Reader, Box<Reason>> {
    let opened = match &artifact.place {
        Place::Source(source) => Reader::from_source(Arc::clone(source), &artifact.label),
        Place::Prefix(path) | Place::Directory(path) => Reader::open(path),
    };
    opened.map_err(|error| Box::new(reason(&error)))
}

fn reason(error: &Error) -> Reason {
    let reason = |rule| Reason::new(rule, error.to_string(), "");
    match error {
        Error::TooNew { found, supported, .. } => {
            reason(Rule::TooNew).with_numbers(found, format_args!("<= {supported}"))
        }
        Error::TooNewFeature { .. } => reason(Rule::TooNew),
        Error::TooOld { found, supported } => {
            reason(Rule::TooOld).with_numbers(found, format_args!(">= {supported}"))
        }
        Error::ProducerTooOld { found, supported } => {
            reason(Rule::ProducerTooOld).with_numbers(found, format_args!(">= {supported}"))
        }
        Error::BadConsumer { number, .. } => reason(Rule::BadConsumer)
            .with_numbers(number, "a consumer that is not in bad_consumers"),
        Error::Spec { name, source } => super::ifrt::reason(source).at(name.clone()),
        Error::Corrupt { found, expected, .. } => {
            reason(Rule::Corrupt).with_numbers(found, expected)
        }
        Error::NotDeviceState { .. } => reason(Rule::Corrupt),
        Error::MissingPart { .. } => reason(Rule::NotFound),
        Error::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::UnexpectedEof => reason(Rule::Corrupt),
            std::io::ErrorKind::NotFound => reason(Rule::NotFound),
            _ => reason(Rule::Unsupported),
        },
        _ => reason(Rule::Unsupported),
    }
}

/// The verdict on a device state.
pub(super) fn check(artifact: &Artifact, options: &Options, verdict: &mut Verdict) {
    let reader = match open(artifact) {
        Ok(reader) => reader,
        Err(reason) => return verdict.refuse(*reason),
    };
    let versions = reader.versions();
    verdict.versions = Some((&versions).into());
    if let Some(consumer) = options.consumer.line("device_state")
        && let Err(rejection) = consumer.check(&versions)
    {
        return verdict.refuse(Reason::of_rejection(&rejection));
    }
    let recorded = reader.ifrt_version();
    if let Some(consumer) = options.consumer.line("ifrt_serdes")
        && recorded > consumer.version
    {
        let message = format!(
            "the specs of the state are written at IFRT version {recorded}, and the consumer reads up to {}",
            consumer.version
        );
        return verdict.refuse(
            Reason::new(
                Rule::TooNew,
                message,
                "upgrade the consumer, or save the state at an older version",
            )
            .with_numbers(recorded, format_args!("<= {}", consumer.version)),
        );
    }
    for tensor in reader.tensors() {
        if let Err(error) = tensor {
            verdict.refuse(reason(&error));
            if verdict.reasons().len() == LISTED {
                return;
            }
        }
    }
    if !options.verify_data {
        return;
    }
    match reader.verify(&options.watch) {
        Ok(damages) => {
            for damage in damages.iter().take(LISTED) {
                verdict.refuse(reason(&damage.error).at(damage.tensor.clone()));
            }
        }
        Err(error) => verdict.refuse(reason(&error)),
    }
}

/// What is in a device state.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let reader = open(artifact)?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    inspection.versions = Some((&reader.versions()).into());
    inspection.nested.push(NestedVersion::new(
        "header",
        "device_state",
        Some(reader.format().into()),
    ));
    inspection.nested.push(NestedVersion::new(
        "array specs",
        "ifrt_serdes",
        Some(reader.ifrt_version().into()),
    ));
    inspection.details.insert("written by".to_owned(), reader.producer_release().to_owned());
    for tensor in reader.tensors() {
        let tensor = tensor.map_err(|error| Box::new(reason(&error)))?;
        let spec: &ifrt::ArraySpec = tensor.spec();
        let shape = spec.shape().dims().to_vec();
        let dtype = spec.dtype().name();
        inspection.tensors.push(TensorSummary::new(
            tensor.name(),
            dtype,
            Some(shape),
            Some(tensor.bytes()),
        ));
    }
    Ok(inspection)
}
