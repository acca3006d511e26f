//! `serdes convert --to-serdes`: writes a message of IFRT for readers of another version.

use std::path::{Path, PathBuf};

use serde_json::json;
use serdes::{
    codec::{DecodeError, DeserializeOptions, EncodeError, SerializeOptions, Serialized},
    ifrt::{AnyDevice, MessageType, global_registry, with_devices},
    version::SerDesVersion,
};
use serdes_check::{self as check, Kind};
use serdes_device_state::files::ProgressMonitor;

use crate::{
    arguments::ConvertArguments,
    commands::{
        convert_output, inspect_message, locations, save, streams, walk_options::named_kind,
    },
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, json_of_path, shown_path},
};

/// Writes the message at a path for readers of this version.
pub(super) fn run(
    arguments: &ConvertArguments,
    version: &str,
    from: &[PathBuf],
    to: &Path,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let version = save::versions("--to-serdes", version, terminal)?.specs();
    let [from] = from else {
        return Err(Failure::new("--to-serdes: expected one message, and what is written"));
    };
    let named = named_kind(arguments.kind.as_deref())?;
    let storage = locations::storage(&ProgressMonitor::new());
    let bytes = streams::read_whole(&storage, from, inspect_message::LONGEST, "a message")?;
    let options = with_devices(AnyDevice);
    let refused = |failure: Failure| failure.about(shown_path(from));
    let (name, written) = match named {
        (_, Some(message)) => bare(message, bytes, &options, version),
        (None | Some(Kind::IfrtSerialized), None) => serialized(bytes, &options, version),
        (Some(kind), None) => Err(Failure::new(format_args!(
            "--to-serdes writes messages of IFRT, and --kind says that this is {}",
            kind.words()
        ))),
    }
    .map_err(refused)?;
    convert_output::write(arguments, &storage, to, &written, terminal)?;
    if terminal.json() {
        terminal.object(&json!({
            "target": json_of_path(to),
            "type": name,
            "bytes": written.len(),
            "serdes_version": version.number(),
        }))?;
        return Ok(ExitStatus::Success);
    }
    terminal.line(format_args!(
        "{GOOD}converted{GOOD:#} {name} to {NAME}{}{NAME:#}, {version}",
        shown_path(to)
    ))?;
    Ok(ExitStatus::Success)
}

/// Returns the name of the type of a bare message, and its bytes for this version.
fn bare(
    message: MessageType,
    bytes: Vec<u8>,
    options: &DeserializeOptions,
    version: SerDesVersion,
) -> Result<(String, Vec<u8>), Failure> {
    let value = message.read(bytes.into(), options).map_err(|error| unread(&error))?;
    let written = value.to_bytes(version).map_err(|error| inexpressible(&error))?;
    Ok((message.name().to_owned(), written.to_vec()))
}

/// Like [`bare`], for a value that names its type.
fn serialized(
    bytes: Vec<u8>,
    options: &DeserializeOptions,
    version: SerDesVersion,
) -> Result<(String, Vec<u8>), Failure> {
    let kind = check::bytes(bytes.clone()).kind();
    if kind != Kind::IfrtSerialized {
        let found = match kind {
            // Bytes without a magic number count as a graph, but may be one of the messages.
            Kind::IfrtMessage | Kind::GraphDef => {
                "nothing in these bytes says which message of IFRT they are".to_owned()
            }
            kind => format!("--to-serdes writes messages of IFRT, and this is {}", kind.words()),
        };
        let failure = Failure::new(found);
        return Err(failure.with_hint("name the type of a bare message, such as --kind ArraySpec"));
    }
    let value = Serialized::from_bytes(bytes.into(), options).map_err(|error| unread(&error))?;
    let registry = global_registry();
    let read = registry.deserialize_any(&value, options).map_err(|error| unread(&error))?;
    let written = registry
        .serialize_any(&*read, &SerializeOptions::new(version))
        .map_err(|error| inexpressible(&error))?;
    Ok((value.type_name().to_owned(), written.to_bytes().to_vec()))
}

fn unread(error: &DecodeError) -> Failure {
    Failure::new(error)
}

/// Returns the failure for a value that a version cannot express: status 1, since another version
/// may be able to.
fn inexpressible(error: &EncodeError) -> Failure {
    match error {
        EncodeError::UnsupportedAtVersion { .. } | EncodeError::NotSerializable { .. } => {
            Failure::no(error)
        }
        error => Failure::new(error),
    }
}
