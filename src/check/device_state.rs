//! Verdicts on device states: opening one reads its ends; with verification every byte of it is read.

use std::collections::HashMap;
use std::sync::Arc;

use super::artifact::{Artifact, Place};
use super::{Inspection, NestedVersion, Options, Reason, Rule, TensorSummary, Verdict};
use crate::device_state::{Error, Reader, Tensor};
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

/// What the specs of a state record: which of IFRT's numbers a reader must know to read them all. What was requested when the state
/// was saved does not decide: a build of that time may have written nothing that needs it.
#[derive(Default)]
struct Specs {
    /// By the number of a spec.
    recorded: HashMap<u32, i32>,
    highest: i32,
    /// How many tensors have specs that are too new, and the first of them.
    too_new: u64,
    first: Option<String>,
}

impl Specs {
    /// Looks into the spec of a tensor, unless another one with the same was there before.
    fn add(&mut self, tensor: &Tensor, limit: i32) -> Result<(), Box<Reason>> {
        let (number, bytes) = tensor.spec_bytes();
        let recorded = match self.recorded.get(&number) {
            Some(recorded) => *recorded,
            None => {
                let found = ifrt::Inspection::of_message("xla.ifrt.ArraySpecProto", bytes)
                    .map_err(|error| super::ifrt::reason(&error).at(tensor.name()))?;
                let recorded = found.minimum_reader_version();
                self.recorded.insert(number, recorded);
                recorded
            }
        };
        self.highest = self.highest.max(recorded);
        if recorded > limit {
            self.too_new += 1;
            self.first.get_or_insert_with(|| tensor.name().to_owned());
        }
        Ok(())
    }

    fn too_new(&self, limit: i32) -> Option<Reason> {
        let first = self.first.as_ref()?;
        let tensors = match self.too_new {
            1 => "the spec of one tensor is written".to_owned(),
            count => format!("the specs of {count} tensors are written"),
        };
        let message = format!(
            "{tensors} at IFRT version {}, and the consumer reads up to {limit}",
            self.highest
        );
        let remedy = "upgrade the consumer, or save the state at an older version";
        let reason = Reason::new(Rule::TooNew, message, remedy)
            .with_numbers(self.highest, format_args!("<= {limit}"));
        Some(reason.at(first.clone()))
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
    let limit = options.consumer.line("ifrt_serdes").map_or(i32::MAX, |consumer| consumer.version);
    let mut specs = Specs::default();
    for tensor in reader.tensors() {
        let found = tensor
            .map_err(|error| Box::new(reason(&error)))
            .and_then(|tensor| specs.add(&tensor, limit));
        if let Err(reason) = found {
            verdict.refuse(*reason);
            if verdict.reasons().len() == LISTED {
                return;
            }
        }
    }
    if let Some(reason) = specs.too_new(limit) {
        return verdict.refuse(reason);
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
    inspection.details.insert("requested".to_owned(), reader.ifrt_version().to_string());
    inspection.details.insert("written by".to_owned(), reader.producer_release().to_owned());
    let mut specs = Specs::default();
    for tensor in reader.tensors() {
        let tensor = tensor.map_err(|error| Box::new(reason(&error)))?;
        specs.add(&tensor, i32::MAX)?;
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
    inspection.nested.push(NestedVersion::new(
        "array specs",
        "ifrt_serdes",
        Some(specs.highest.into()),
    ));
    Ok(inspection)
}
