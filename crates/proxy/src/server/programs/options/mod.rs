//! Options of XLA's compiler, as clients send them and as a plug-in gets them.
//!
//! A compiler's options can make it write and read files, run programs and end its process, which
//! is the server's; and clients send them unintentionally: `XLA_FLAGS` of the client's own
//! environment is in every program that it compiles. So a plug-in never gets a client's message: it
//! is rebuilt from known fields, with values known to be harmless. Everything else is refused by
//! its name.
//!
//! Source of the numbers and names: the descriptors of `xla.proto` and `compile_options.proto` in
//! jaxlib 0.8.0 to 0.12.0.1, and what these clients send.

mod debug;
mod fields;
mod overrides;
mod rules;
mod table;
mod wire;

pub(crate) use self::rules::{OptionRules, Target};
use self::{
    fields::{BUILD, MESSAGE, check},
    wire::{Fields, Value},
};
use crate::status::status;
use prost::Message as _;
use serdes::{codec::Status, proto::xla::DeviceAssignmentProto};

/// `executable_build_options` of `xla.CompileOptionsProto`, and `debug_options` in them.
const BUILD_OPTIONS: u32 = 3;
const DEBUG_OPTIONS: u32 = 3;
/// `env_option_overrides` of `xla.CompileOptionsProto`: options by name.
const OVERRIDES: u32 = 7;

/// Fields of `xla.ExecutableBuildOptionsProto` that select devices.
mod devices {
    pub(super) const ORDINAL: u32 = 1;
    pub(super) const REPLICAS: u32 = 4;
    pub(super) const PARTITIONS: u32 = 5;
    pub(super) const ASSIGNMENT: u32 = 9;
}

/// Rebuilds a client's serialized options (`xla.CompileOptionsProto`) for a plug-in.
///
/// If the client sends no debug options, none are added: with any of them, the plug-in uses zero
/// for all others instead of its own defaults, and some plug-ins do not compile then.
///
/// # Errors
/// INVALID_ARGUMENT with the name of a refused option, and for bytes that are no such message.
pub(super) fn for_plugin(
    options: &[u8],
    rules: &OptionRules,
    target: Target<'_>,
) -> Result<Vec<u8>, Status> {
    let mut message = Vec::with_capacity(options.len());
    // Occurrences of a repeated message field are merged.
    let mut build = None::<Vec<u8>>;
    for field in Fields(options) {
        match field? {
            (BUILD_OPTIONS, Value::Bytes(bytes)) => {
                build.get_or_insert_default().extend_from_slice(bytes);
            }
            (OVERRIDES, Value::Bytes(entry)) => {
                if let Some(entry) = overrides::rebuilt(entry, rules)? {
                    Value::Bytes(&entry).write(OVERRIDES, &mut message);
                }
            }
            (number, value) => check(&MESSAGE, number, value, rules)?.write(number, &mut message),
        }
    }
    if let Some(build) = build {
        let build = build_options(&build, rules, target)?;
        Value::Bytes(&build).write(BUILD_OPTIONS, &mut message);
    }
    Ok(message)
}

/// Rebuilds `xla.ExecutableBuildOptionsProto`.
fn build_options(
    options: &[u8],
    rules: &OptionRules,
    target: Target<'_>,
) -> Result<Vec<u8>, Status> {
    let mut message = Vec::with_capacity(options.len());
    let mut debug = None::<Vec<u8>>;
    let mut assignment = None::<DeviceAssignmentProto>;
    let (mut replicas, mut partitions) = (0, 0);
    for field in Fields(options) {
        match field? {
            (DEBUG_OPTIONS, Value::Bytes(bytes)) => {
                debug.get_or_insert_default().extend_from_slice(bytes);
            }
            (devices::ORDINAL, Value::Number(number)) => {
                check_ordinal(number.cast_signed(), target)?;
                Value::Number(number).write(devices::ORDINAL, &mut message);
            }
            (devices::REPLICAS, Value::Number(number)) => replicas = number.cast_signed(),
            (devices::PARTITIONS, Value::Number(number)) => partitions = number.cast_signed(),
            (devices::ASSIGNMENT, Value::Bytes(bytes)) => {
                assignment.get_or_insert_default().merge(bytes).map_err(|error| {
                    status!(
                        InvalidArgument,
                        "the device_assignment of the compile options cannot be read: {error}"
                    )
                })?;
            }
            (number, value) => check(&BUILD, number, value, rules)?.write(number, &mut message),
        }
    }
    check_counts(replicas, partitions, target)?;
    Value::Number(replicas.cast_unsigned()).write(devices::REPLICAS, &mut message);
    Value::Number(partitions.cast_unsigned()).write(devices::PARTITIONS, &mut message);
    if let Some(assignment) = assignment {
        check_assignment(&assignment, target)?;
        Value::Bytes(&assignment.encode_to_vec()).write(devices::ASSIGNMENT, &mut message);
    }
    if let Some(debug) = debug {
        let debug = debug::rebuilt(&debug, rules, target)?;
        Value::Bytes(&debug).write(DEBUG_OPTIONS, &mut message);
    }
    Ok(message)
}

/// # Errors
/// INVALID_ARGUMENT for an unknown device; -1 stands for any.
fn check_ordinal(ordinal: i64, target: Target<'_>) -> Result<(), Status> {
    let devices = target.devices.len();
    if ordinal == -1 || usize::try_from(ordinal).is_ok_and(|ordinal| ordinal < devices) {
        return Ok(());
    }
    Err(status!(
        InvalidArgument,
        "the device_ordinal of the compile options is {ordinal}; expected -1, or a number below {devices}, as many devices as this server has"
    ))
}

/// # Errors
/// INVALID_ARGUMENT for zero, and for more than there are devices.
fn check_counts(replicas: i64, partitions: i64, target: Target<'_>) -> Result<(), Status> {
    let devices = target.devices.len();
    let total = replicas.checked_mul(partitions).filter(|_| replicas > 0 && partitions > 0);
    if total.and_then(|total| usize::try_from(total).ok()).is_some_and(|total| total <= devices) {
        return Ok(());
    }
    Err(status!(
        InvalidArgument,
        "num_replicas and num_partitions of the compile options are {replicas} and {partitions}; expected 1 or more each, and together at most {devices}, as many devices as this server has"
    ))
}

/// # Errors
/// INVALID_ARGUMENT for a device that does not exist, or is named twice. The caller compares their
/// number with replicas and partitions.
fn check_assignment(assignment: &DeviceAssignmentProto, target: Target<'_>) -> Result<(), Status> {
    let ids = assignment.computation_devices.iter().flat_map(|of| &of.replica_device_ids);
    let mut seen = vec![false; target.devices.len()];
    for id in ids {
        let place = target.devices.iter().position(|device| i64::from(*device) == *id);
        let Some(seen) = place.and_then(|place| seen.get_mut(place)) else {
            return Err(status!(
                InvalidArgument,
                "the device_assignment of the compile options names the device {id}; expected devices of this server, which has {}",
                target.devices.len()
            ));
        };
        if std::mem::replace(seen, true) {
            return Err(status!(
                InvalidArgument,
                "the device_assignment of the compile options names the device {id} twice; expected each once"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
