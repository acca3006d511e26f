//! Verdicts on serialized IFRT values: the consumer must know every version that is recorded in
//! them.

use serdes::{
    codec::{DecodeError, DeserializeOptions, EncodeError, ErrorKind, Serialized},
    ifrt::{self, AnyDevice, MessageType, MessageValue, with_devices},
    version::SerDesAnyVersionAccessor,
};

use super::{
    Findings, Inspection, NestedVersion, Options, Reason, Remedy, Rule, consumer::ArtifactLine,
    opened::Bytes, rule::messages,
};

/// Limit on the length of a value that is read, in bytes; larger ones are not shardings or
/// programs.
const LARGEST: u64 = 1 << 30;

pub(super) fn reason(error: &DecodeError) -> Reason {
    let rule = match error.kind() {
        ErrorKind::TooNew => Rule::TooNew,
        ErrorKind::TooOld => Rule::TooOld,
        ErrorKind::MissingType => Rule::MissingType,
        ErrorKind::Corrupt => Rule::Corrupt,
        _ => Rule::Unsupported,
    };
    let reason = Reason::new(rule, error.to_string());
    match error {
        DecodeError::TooNew { found, newest, .. } => {
            reason.with_numbers(found, format_args!("<= {newest}"))
        }
        DecodeError::TooOld { found, minimum, .. } => {
            reason.with_numbers(found, format_args!(">= {minimum}"))
        }
        DecodeError::UnknownTypeName { found, .. } => {
            reason.with_numbers(found, "a type name with a serializer")
        }
        _ => reason,
    }
}

/// Returns the verdict on a serialized value.
pub(super) fn check(file: &Bytes, options: &Options) -> Findings {
    let read = |bytes: Vec<u8>| {
        let options = DeserializeOptions::default();
        let value = Serialized::from_bytes(bytes.into(), &options)?;
        ifrt::global_registry().deserialize_any(&value, &options).map(drop)
    };
    judge(file, options, ifrt::Inspection::of_serialized, read)
}

/// Returns the verdict on a bare message, read as the type that the caller names.
pub(super) fn check_message(file: &Bytes, message: MessageType, options: &Options) -> Findings {
    let look = |bytes: &[u8]| ifrt::Inspection::of_message(&message.message(), bytes);
    let mut value = None;
    let read = |bytes: Vec<u8>| {
        value = Some(message.read(bytes.into(), &with_devices(AnyDevice))?);
        Ok(())
    };
    let mut findings = judge(file, options, look, read);
    if let Some(reason) = value.and_then(|value| unknown_feature(&value, options)) {
        findings.refuse(reason);
    }
    findings
}

/// Returns the reason for a feature of a value that is newer than the consumer's version. Features
/// such as element types do not have their own format, so no recorded version shows them.
fn unknown_feature(value: &MessageValue, options: &Options) -> Option<Reason> {
    let limit = options.consumer().line(ArtifactLine::Ifrt).version;
    let version = SerDesAnyVersionAccessor::get(limit).ok()?;
    match value.to_bytes(version).err()? {
        EncodeError::UnsupportedAtVersion { type_name, feature, first, .. } => {
            let text = format!("{type_name} has {feature}, which version {first} brought");
            Some(Reason::new(Rule::TooNew, text).with_numbers(first, format_args!("<= {limit}")))
        }
        _ => None,
    }
}

/// Returns the verdict on a value by its recorded versions, and by reading it.
fn judge(
    file: &Bytes,
    options: &Options,
    look: impl FnOnce(&[u8]) -> Result<ifrt::Inspection, DecodeError>,
    read: impl FnOnce(Vec<u8>) -> Result<(), DecodeError>,
) -> Findings {
    let looked = file.whole(LARGEST).and_then(|bytes| {
        let found = look(&bytes);
        Ok((found.map_err(|error| Box::new(reason(&error)))?, bytes))
    });
    let (inspection, bytes) = match looked {
        Ok(looked) => looked,
        Err(reason) => return reason.into(),
    };
    let mut findings = Findings::default();
    let limit = options.consumer().line(ArtifactLine::Ifrt).version;
    for value in inspection.values() {
        if let Some(recorded) = value.recorded
            && recorded > limit
        {
            let message = messages::value_is_too_new(&value.type_name, recorded, limit);
            findings.refuse(
                Reason::from(message)
                    .with_remedy(Remedy::WriteOlder)
                    .with_numbers(recorded, format_args!("<= {limit}"))
                    .at(value.location.clone()),
            );
        }
    }
    if !findings.reasons().is_empty() {
        return findings;
    }
    match read(bytes) {
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput) => {
            findings.refused(reason(&error))
        }
        // A lack of what only the caller could supply, such as devices, is not an error of the
        // value.
        _ => findings,
    }
}

/// Describes the contents of a serialized value.
pub(super) fn inspect(file: &Bytes, inspection: Inspection) -> Result<Inspection, Box<Reason>> {
    let bytes = file.whole(LARGEST)?;
    let found =
        ifrt::Inspection::of_serialized(&bytes).map_err(|error| Box::new(reason(&error)))?;
    let nested = found.values().iter().map(|value| {
        let recorded = value.recorded.map(i64::from);
        NestedVersion::new(value.location.clone(), value.type_name.clone(), recorded)
    });
    Ok(Inspection { nested: nested.collect(), ..inspection })
}
