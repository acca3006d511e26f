//! Verdicts on device states: opening one reads its ends; with verification every byte is read.

use std::{collections::HashMap, path::Path, sync::Arc};

use serdes::ifrt;
use serdes_device_state::{Damage, Error, Reader, Tensor};

use super::{
    Findings, Inspection, NestedVersion, Options, Reason, Remedy, Rule, TensorSummary,
    consumer::ArtifactLine, error::rule_of_io, ifrt::reason as reason_of_spec, opened::Bytes,
    rule::messages, state_summary::Summing,
};

/// Limit on the damages that are listed; further ones are only counted.
const LISTED: usize = 100;

fn open(file: &Bytes) -> Result<Reader, Box<Reason>> {
    let source = Arc::clone(&file.source);
    let opened = Reader::from_source_among(source, &file.label, file.tree.clone());
    opened.map_err(|error| Box::new(reason_in(file, error)))
}

/// Returns the reason for an error; its message names a part of the state, because each verdict
/// names the artifact.
fn reason_in(file: &Bytes, error: Error) -> Reason {
    Reason::from(&error.without_path(Path::new(&file.label)))
}

/// Converts an error of reading or writing a state into the reason of a verdict, for callers that
/// need its rule. An error of the caller, not of a state, is `unsupported`.
///
/// ```
/// use serdes_check::{Reason, Rule};
/// use serdes_device_state::Reader;
///
/// let error = Reader::from_source(b"something else".to_vec(), "a.sds").unwrap_err();
/// assert_eq!(Reason::from(&error).rule, Rule::Corrupt);
/// ```
impl From<&Error> for Reason {
    fn from(error: &Error) -> Self {
        let reason = |rule| Self::new(rule, error.to_string());
        match error {
            Error::TooNew { found, supported, .. } => {
                reason(Rule::TooNew).with_numbers(found, format_args!("<= {supported}"))
            }
            Error::TooNewFeature { .. } => reason(Rule::TooNew),
            Error::TooOld { found, supported, .. } => {
                reason(Rule::TooOld).with_numbers(found, format_args!(">= {supported}"))
            }
            Error::ProducerTooOld { found, supported, .. } => {
                reason(Rule::ProducerTooOld).with_numbers(found, format_args!(">= {supported}"))
            }
            Error::BadConsumer { number, .. } => reason(Rule::BadConsumer)
                .with_numbers(number, "a consumer that is not in bad_consumers"),
            Error::Spec { name, source, .. } => reason_of_spec(source).at(name.clone()),
            Error::Corrupt { found, expected, .. }
            | Error::NothingSalvaged { found, expected, .. } => {
                reason(Rule::Corrupt).with_numbers(found, expected)
            }
            Error::NotDeviceState { .. } => reason(Rule::Corrupt),
            Error::MissingPart { .. } => reason(Rule::NotFound),
            Error::Io { source, .. } => reason(rule_of_io(source)),
            _ => reason(Rule::Unsupported),
        }
    }
}

/// The versions of the specs in a state: those of IFRT's line that a reader must know to read them
/// all. The version that was requested when the state was saved does not decide: the writer may not
/// have used any of its features.
#[derive(Default)]
struct Specs {
    /// The required version, by the number of a spec.
    recorded: HashMap<u32, i32>,
    highest: i32,
    /// Number of tensors whose specs are too new, and the first of them.
    too_new: u64,
    first: Option<String>,
}

impl Specs {
    /// Adds the spec of a tensor, unless it is equal to an earlier one.
    fn add(&mut self, tensor: &Tensor, limit: i32) -> Result<(), Box<Reason>> {
        let (number, bytes) = tensor.spec_bytes();
        let recorded = match self.recorded.get(&number) {
            Some(recorded) => *recorded,
            None => {
                let found = ifrt::Inspection::of_message("xla.ifrt.ArraySpecProto", bytes)
                    .map_err(|error| reason_of_spec(&error).at(tensor.name()))?;
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
        let specs = match self.too_new {
            1 => "the spec of one tensor is".to_owned(),
            count => format!("the specs of {count} tensors are"),
        };
        let reason = Reason::from(messages::specs_are_too_new(specs, self.highest, limit))
            .with_remedy(Remedy::SaveOlder)
            .with_numbers(self.highest, format_args!("<= {limit}"));
        Some(reason.at(first.clone()))
    }
}

/// Returns the verdict on a device state.
pub(super) fn check(file: &Bytes, options: &Options) -> Findings {
    let reader = match open(file) {
        Ok(reader) => reader,
        Err(reason) => return reason.into(),
    };
    let versions = reader.versions();
    let mut findings = Findings::of_versions(&versions);
    if let Err(rejection) = options.consumer().line(ArtifactLine::DeviceState).check(&versions) {
        return findings.refused(Reason::of_rejection(&rejection));
    }
    let limit = options.consumer().line(ArtifactLine::Ifrt).version;
    let mut specs = Specs::default();
    for tensor in reader.tensors() {
        let found = tensor
            .map_err(|error| Box::new(reason_in(file, error)))
            .and_then(|tensor| specs.add(&tensor, limit));
        if let Err(reason) = found {
            findings.refuse(*reason);
            if findings.reasons().len() == LISTED {
                return findings;
            }
        }
    }
    if let Some(reason) = specs.too_new(limit) {
        return findings.refused(reason);
    }
    if options.verifies_data() {
        match reader.verify(options.monitor()) {
            Ok(damages) => {
                for Damage { tensor, error, .. } in damages.into_iter().take(LISTED) {
                    findings.refuse(reason_in(file, error).at(tensor));
                }
            }
            Err(error) => findings.refuse(reason_in(file, error)),
        }
    }
    findings
}

/// Describes the contents of a device state.
pub(super) fn inspect(file: &Bytes, mut inspection: Inspection) -> Result<Inspection, Box<Reason>> {
    let reader = open(file)?;
    inspection.versions = Some((&reader.versions()).into());
    let format = Some(reader.format().into());
    inspection.nested.push(NestedVersion::new("header", "device_state", format));
    inspection.details.insert("requested".to_owned(), reader.ifrt_version().to_string());
    inspection.details.insert("written by".to_owned(), reader.producer_release().to_owned());
    let mut specs = Specs::default();
    let mut state = Summing::of(&reader);
    for tensor in reader.tensors() {
        let tensor = tensor.map_err(|error| Box::new(reason_in(file, error)))?;
        specs.add(&tensor, i32::MAX)?;
        let sharding = state.add(&tensor);
        let spec: &ifrt::ArraySpec = tensor.spec();
        let shape = Some(spec.shape().dims().to_vec());
        let bytes = Some(tensor.bytes());
        let dtype = spec.dtype().name();
        let mut summary = TensorSummary::new(tensor.name(), dtype, shape, bytes);
        summary.sharding = Some(sharding);
        summary.pieces = Some(tensor.piece_devices().count() as u64);
        inspection.tensors.push(summary);
    }
    inspection.state = Some(state.finish());
    let highest = Some(specs.highest.into());
    inspection.nested.push(NestedVersion::new("array specs", "ifrt_serdes", highest));
    Ok(inspection)
}
