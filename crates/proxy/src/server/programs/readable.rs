//! Converts a program to a version that the plug-in can read: clients and plug-ins may be newer
//! than each other.

use std::borrow::Cow;

use serdes::{
    codec::{Status, StatusCode},
    stablehlo::{Program, ProgramBridge, StableHloError, StableHloVersion},
};
use serdes_pjrt::{Client, Value};

use super::{called::CallRules, sorts, waiting};
use crate::status::status;

/// Returns the program unchanged, or converted for the plug-in, if that reports its version.
///
/// With `portable_only` the structure of the artifact, its calls and its operations are checked
/// before the plug-in sees it, and its sorts become stable: parsers of MLIR text and of other
/// bytecode, and comparators of sorts, were made for trusted input. `callbacks` is the number of
/// client functions that came with it.
///
/// # Errors
/// INVALID_ARGUMENT for bytes that are no such artifact, calls that the rules do not permit, or
/// sorts with a comparator that may contradict itself; UNIMPLEMENTED for operations that would wait
/// forever; with the versions of the program and the plug-in, for operations that the plug-in does
/// not know, or for bytecode of another encoding.
pub(super) fn readable<'a>(
    artifact: &'a [u8],
    client: &Client,
    bridge: Option<&dyn ProgramBridge>,
    portable_only: Option<&CallRules>,
    callbacks: usize,
) -> Result<Cow<'a, [u8]>, Status> {
    let mut artifact = Cow::Borrowed(artifact);
    if let Some(rules) = portable_only {
        let program = Program::read(&artifact).map_err(|error| {
            let code = match error {
                StableHloError::UnknownEncoding { .. } => StatusCode::Unimplemented,
                _ => StatusCode::InvalidArgument,
            };
            Status::new(code, format!("the program cannot be taken: {error}"))
        })?;
        rules.check(&program)?;
        waiting::check(&program, callbacks)?;
        if let Some(stable) = sorts::made_stable(&program)? {
            artifact = Cow::Owned(stable);
        }
    }
    let Some(reader) = newest(client) else { return Ok(artifact) };
    let readable = Program::for_reader(&artifact, reader, bridge);
    if let Ok(Cow::Owned(written)) = &readable {
        tracing::debug!(
            "a program was written for StableHLO {reader}: {} bytes instead of {}",
            written.len(),
            artifact.len()
        );
    }
    match readable {
        Ok(Cow::Owned(written)) => Ok(Cow::Owned(written)),
        Ok(Cow::Borrowed(_)) => Ok(artifact),
        Err(error) => Err(unreadable(&error, client, bridge.is_some())),
    }
}

/// Returns the error for a program that cannot be converted to a version that the plug-in reads.
fn unreadable(error: &StableHloError, client: &Client, has_bridge: bool) -> Status {
    let bridge = if has_bridge { "" } else { ", or a bridge for programs" };
    status!(
        Unimplemented,
        "the plug-in (PJRT {}, {}) cannot read the program: {error}; here that is a server with a newer plug-in, or a client of an older release{bridge}",
        client.minor(),
        client.platform_name(),
    )
}

/// Returns the error for a program that the plug-in does not compile: adds if the program is newer
/// than the plug-in, which may be the reason.
pub(super) fn refused(status: Status, artifact: &[u8], client: &Client) -> Status {
    let Ok(program) = Program::read(artifact) else { return status };
    let Some(newest) = newest(client) else { return status };
    let version = program.version();
    if version <= newest || status.code() == StatusCode::ResourceExhausted {
        return status;
    }
    let message = format!(
        "{}; the program is of StableHLO {version}, and the plug-in (PJRT {}, {}) reads up to {newest}: use a client of an older release, or a server with a newer plug-in",
        status.message(),
        client.minor(),
        client.platform_name(),
    );
    Status::new(status.code(), message)
}

/// Returns the newest StableHLO that a plug-in reads, if it reports that.
fn newest(client: &Client) -> Option<StableHloVersion> {
    let said = client.plugin().attributes().iter();
    let mut said = said.filter(|(name, _)| name == "stablehlo_current_version");
    let (_, Value::Integers(numbers)) = said.next()? else { return None };
    let numbers: Vec<u32> =
        numbers.iter().map(|number| u32::try_from(*number)).collect::<Result<_, _>>().ok()?;
    let [major, minor, patch] = *numbers else { return None };
    Some(StableHloVersion::new(major, minor, patch))
}
