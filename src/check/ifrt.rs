//! Verdicts on serialized IFRT values: every version that is recorded in them must be one that the consumer knows.

use super::artifact::{Artifact, Place};
use super::{Inspection, NestedVersion, Options, Reason, Rule, Verdict};
use crate::artifact::ReadAt;
use crate::codec::{DecodeError, DecodeErrorKind, DeserializeOptions, Serialized};
use crate::ifrt;

/// The largest value in bytes that is read; larger ones are no shardings or programs.
const LARGEST: u64 = 1 << 30;

fn read(artifact: &Artifact) -> Result<Vec<u8>, Box<Reason>> {
    let Place::Source(source) = &artifact.place else {
        return Err(Reason::new(
            Rule::Unsupported,
            "a serialized value is a single file",
            "name the file",
        )
        .into());
    };
    let failed = |error: std::io::Error| {
        Box::new(Reason::new(
            Rule::Unsupported,
            format!("cannot read the file: {error}"),
            "make the file readable",
        ))
    };
    let size = source.size().map_err(failed)?;
    if size > LARGEST {
        let message = format!("the value has {size} bytes, and at most {LARGEST} are read");
        return Err(
            Reason::new(Rule::Unsupported, message, "check where the file comes from").into()
        );
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    source.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}

pub(super) fn reason(error: &DecodeError) -> Reason {
    let rule = match error.kind() {
        DecodeErrorKind::TooNew => Rule::TooNew,
        DecodeErrorKind::TooOld => Rule::TooOld,
        DecodeErrorKind::MissingType => Rule::MissingType,
        DecodeErrorKind::Corrupt => Rule::Corrupt,
        _ => Rule::Unsupported,
    };
    let reason = Reason::new(rule, error.to_string(), "");
    match error {
        DecodeError::TooNew { found, newest, .. } => {
            reason.with_numbers(found, format_args!("<= {newest}"))
        }
        DecodeError::TooOld { found, minimum, .. } => {
            reason.with_numbers(found, format_args!(">= {minimum}"))
        }
        _ => reason,
    }
}

/// The verdict on a serialized value.
pub(super) fn check(artifact: &Artifact, options: &Options, verdict: &mut Verdict) {
    let bytes = match read(artifact) {
        Ok(bytes) => bytes,
        Err(reason) => return verdict.refuse(*reason),
    };
    let inspection = match ifrt::Inspection::of_serialized(&bytes) {
        Ok(inspection) => inspection,
        Err(error) => return verdict.refuse(reason(&error)),
    };
    if let Some(consumer) = options.consumer.line("ifrt_serdes") {
        for value in inspection.values() {
            if let Some(recorded) = value.recorded
                && recorded > consumer.version
            {
                let message = format!(
                    "{} records version {recorded}, and the consumer reads up to {}",
                    value.type_name, consumer.version
                );
                let remedy = "upgrade the consumer, or have the value written at an older version";
                verdict.refuse(
                    Reason::new(Rule::TooNew, message, remedy)
                        .with_numbers(recorded, format_args!("<= {}", consumer.version))
                        .at(value.location.clone()),
                );
            }
        }
    }
    if !verdict.is_acceptable() {
        return;
    }
    let options = DeserializeOptions::default();
    let value = Serialized::from_bytes(bytes.into(), &options)
        .and_then(|value| ifrt::global_registry().deserialize_any(&value, &options).map(drop));
    match value {
        Err(error) if !matches!(error.kind(), DecodeErrorKind::Caller) => {
            verdict.refuse(reason(&error))
        }
        // What only the caller could give, such as devices, is no fault of the value.
        _ => {}
    }
}

/// What is in a serialized value.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let bytes = read(artifact)?;
    let found =
        ifrt::Inspection::of_serialized(&bytes).map_err(|error| Box::new(reason(&error)))?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    inspection.nested = found
        .values()
        .iter()
        .map(|value| {
            NestedVersion::new(
                value.location.clone(),
                value.type_name.clone(),
                value.recorded.map(i64::from),
            )
        })
        .collect();
    Ok(inspection)
}
