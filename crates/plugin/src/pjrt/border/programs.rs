//! Calls on programs: compilation, queries and execution.

use std::{ffi::c_int, ptr, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::{events, handles, pointers, values};
use crate::{
    Result, Status,
    panic::contain_drop,
    pjrt::{Plugin, Program, array::Array, loaded::Loaded},
};

/// The size in bytes of the execute options up to the end of the launch id, which all frameworks
/// have.
const LAUNCH_ID_END: usize = std::mem::offset_of!(PJRT_ExecuteOptions, launch_id) + 4;

/// Returns the launch id in the options of a run; 0 if they are NULL.
///
/// # Errors
/// `UNIMPLEMENTED` for transfers to and from the host within a program.
///
/// # Safety
/// `options` is NULL or options of the size that they declare.
unsafe fn launch_id(options: *const PJRT_ExecuteOptions) -> Result<c_int> {
    if options.is_null() {
        return Ok(0);
    }
    // SAFETY: every struct of options begins with its size.
    let size = unsafe { (&raw const (*options).struct_size).read() };
    if size < LAUNCH_ID_END {
        return Err(Status::invalid_argument(format!(
            "the options of a run have {size} bytes, expected at least {LAUNCH_ID_END}"
        )));
    }
    // SAFETY: the fields are within the size.
    let (sends, receives, launch_id) = unsafe {
        (
            (&raw const (*options).num_send_ops).read(),
            (&raw const (*options).num_recv_ops).read(),
            (&raw const (*options).launch_id).read(),
        )
    };
    match (sends, receives) {
        (0, 0) => Ok(launch_id),
        _ => Err(Status::unimplemented("a program that sends to the host or receives of it")),
    }
}

/// Returns the devices of a run, each with its position in the program.
///
/// # Errors
/// `INVALID_ARGUMENT` if the host passes lists for another number of devices.
fn devices_of<P: Plugin>(
    loaded: &Loaded<P>,
    arguments: &PJRT_LoadedExecutable_Execute_Args,
) -> Result<Vec<(usize, usize)>> {
    let own = loaded.options.devices();
    let devices = match arguments.execute_device.is_null() {
        true => own.iter().copied().enumerate().collect(),
        // The host selects a device instead of the program's.
        false => vec![(0, loaded.client().device_index(arguments.execute_device)?)],
    };
    if devices.len() == arguments.num_devices {
        return Ok(devices);
    }
    Err(Status::invalid_argument(format!(
        "found lists for {} devices, expected {}",
        arguments.num_devices,
        devices.len()
    )))
}

/// Returns the arguments of one device.
///
/// # Safety
/// `lists` has a list of `count` arrays at this position, which live as long as `'a`.
unsafe fn arguments_of<'a, P: Plugin>(
    lists: &[*const *mut PJRT_Buffer],
    place: usize,
    count: usize,
) -> Result<Vec<&'a Arc<Array<P>>>> {
    let list = lists.get(place).copied().unwrap_or(ptr::null());
    // SAFETY: the caller's promise.
    let list = unsafe { values::list(list, count, "arguments") }?;
    // SAFETY: the caller's promise.
    list.iter().map(|array| unsafe { handles::array::<P>(*array) }).collect()
}

/// Frees bytes that were handed out.
///
/// # Safety
/// [`pointers::give`] returned it for bytes, and it is freed once.
unsafe extern "C" fn free<T>(raw: *mut T) {
    // SAFETY: the caller's promise.
    contain_drop(unsafe { pointers::take::<Vec<u8>, _>(raw, "bytes") });
}

/// Hands out bytes: returns their address, their number, and the pointer that frees them.
fn give_bytes<T>(bytes: Vec<u8>) -> (*const std::ffi::c_char, usize, *mut T) {
    let bytes = Box::new(bytes);
    let (start, length) = (bytes.as_ptr().cast(), bytes.len());
    (start, length, Box::into_raw(bytes).cast())
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

calls! {
    compile<P>(PJRT_Client_Compile_Args: arguments, client: client::<P>) {
        // SAFETY: the caller's promise.
        let program = unsafe { arguments.program.as_ref() };
        let program = program
            .ok_or_else(|| Status::invalid_argument("found NULL, expected a program"))?;
        // SAFETY: the caller's promise.
        let format = unsafe { values::text(program.format, program.format_size) };
        // SAFETY: the caller's promise.
        let code =
            unsafe { values::bytes(program.code.cast_const(), program.code_size, "a program") }?;
        let (start, length) = (arguments.compile_options, arguments.compile_options_size);
        // SAFETY: the caller's promise.
        let options = unsafe { values::bytes(start, length, "compile options") }?;
        let loaded = Loaded::compile(client, &Program::new(&format, code), options)?;
        arguments.executable = pointers::give(Arc::new(loaded));
    }

    load<P>(PJRT_Executable_DeserializeAndLoad_Args: arguments, client: client::<P>) {
        let (start, length) =
            (arguments.serialized_executable, arguments.serialized_executable_size);
        // SAFETY: the caller's promise.
        let bytes = unsafe { values::bytes(start, length, "a program") }?;
        let (start, length) = (
            arguments.overridden_serialized_compile_options,
            arguments.overridden_serialized_compile_options_size,
        );
        // SAFETY: the caller's promise.
        let options = unsafe { values::bytes(start, length, "compile options") }?;
        let options = (!start.is_null()).then_some(options);
        arguments.loaded_executable = pointers::give(Arc::new(Loaded::load(client, bytes, options)?));
    }

    destroy_loaded<P>(PJRT_LoadedExecutable_Destroy_Args: arguments) {
        let executable = arguments.executable;
        // SAFETY: the host destroys a program once.
        drop(unsafe { pointers::take::<Arc<Loaded<P>>, _>(executable, "a program") }?);
    }

    destroy<P>(PJRT_Executable_Destroy_Args: arguments) {
        let executable = arguments.executable;
        // SAFETY: as above; each program has its own handle.
        drop(unsafe { pointers::take::<Arc<Loaded<P>>, _>(executable, "a program") }?);
    }

    executable<P>(PJRT_LoadedExecutable_GetExecutable_Args: arguments, loaded_executable: loaded::<P>) {
        arguments.executable = pointers::give(Arc::clone(loaded_executable));
    }

    addressable_devices<P>(PJRT_LoadedExecutable_AddressableDevices_Args: arguments, executable: loaded::<P>) {
        let devices = executable.devices.all();
        arguments.addressable_devices = devices.as_ptr();
        arguments.num_addressable_devices = devices.len();
    }

    logical_ids<P>(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args: arguments, executable: loaded::<P>) {
        arguments.addressable_device_logical_ids = executable.logical_ids.as_ptr().cast_mut();
        arguments.num_addressable_device_logical_ids = executable.logical_ids.len();
    }

    device_assignment<P>(PJRT_LoadedExecutable_GetDeviceAssignment_Args: arguments, executable: loaded::<P>) {
        let (start, length, owner) = give_bytes(executable.options.device_assignment());
        (arguments.serialized_bytes, arguments.serialized_bytes_size) = (start, length);
        arguments.serialized_device_assignment = owner;
        arguments.serialized_device_assignment_deleter = Some(free);
    }

    delete<P>(PJRT_LoadedExecutable_Delete_Args: arguments, executable: loaded::<P>) {
        executable.delete();
    }

    is_deleted<P>(PJRT_LoadedExecutable_IsDeleted_Args: arguments, executable: loaded::<P>) {
        arguments.is_deleted = u8::from(executable.is_deleted());
    }

    /// Starts the runs of all devices. Nothing is handed out if one of them cannot start.
    execute<P>(PJRT_LoadedExecutable_Execute_Args: arguments, executable: loaded::<P>) {
        // SAFETY: the caller's promise.
        let launch_id = unsafe { launch_id(arguments.options) }?;
        let devices = devices_of(executable, arguments)?;
        let count = arguments.num_devices;
        // SAFETY: the caller's promise.
        let lists = unsafe { values::list(arguments.argument_lists, count, "argument lists") };
        let lists = if arguments.num_args == 0 { &[] } else { lists? };
        // SAFETY: the caller's promise.
        let targets = unsafe { values::list(arguments.output_lists, count, "output lists") };
        let targets = if executable.outputs.shapes.is_empty() { &[] } else { targets? };
        let mut begun = Vec::with_capacity(devices.len());
        for (place, device) in devices.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            let given = unsafe { arguments_of::<P>(lists, place, arguments.num_args) }?;
            begun.push(executable.launch(device, launch_id, &given)?);
        }
        if targets.iter().any(|list| list.is_null()) {
            return Err(Status::invalid_argument("found NULL, expected room for results"));
        }
        for (place, (outputs, done)) in begun.into_iter().enumerate() {
            if let Some(list) = targets.get(place) {
                for (index, array) in outputs.into_iter().enumerate() {
                    // SAFETY: the host provides space for as many results as the program has.
                    unsafe { list.add(index).write(pointers::give(Arc::new(array))) };
                }
            }
            if !arguments.device_complete_events.is_null() {
                // SAFETY: the host provides space for an event per device.
                unsafe { arguments.device_complete_events.add(place).write(events::give(done)) };
            }
        }
    }

    name<P>(PJRT_Executable_Name_Args: arguments, executable: executable::<P>) {
        arguments.executable_name = executable.name.as_ptr().cast();
        arguments.executable_name_size = executable.name.len();
    }

    replicas<P>(PJRT_Executable_NumReplicas_Args: arguments, executable: executable::<P>) {
        arguments.num_replicas = executable.options.replicas();
    }

    partitions<P>(PJRT_Executable_NumPartitions_Args: arguments, executable: executable::<P>) {
        arguments.num_partitions = executable.options.partitions();
    }

    output_count<P>(PJRT_Executable_NumOutputs_Args: arguments, executable: executable::<P>) {
        arguments.num_outputs = executable.outputs.shapes.len();
    }

    code_size<P>(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args: arguments, executable: executable::<P>) {
        arguments.size_in_bytes = number(executable.stats.code);
    }

    memory_stats<P>(PJRT_Executable_GetCompiledMemoryStats_Args: arguments, executable: executable::<P>) {
        let (inputs, outputs) = (executable.parameters.bytes(), executable.outputs.bytes());
        let temporary = number(executable.stats.temporary);
        arguments.generated_code_size_in_bytes = number(executable.stats.code);
        arguments.argument_size_in_bytes = inputs;
        arguments.output_size_in_bytes = outputs;
        arguments.temp_size_in_bytes = temporary;
        let most = inputs.saturating_add(outputs).saturating_add(temporary);
        arguments.peak_memory_in_bytes = most;
        arguments.total_size_in_bytes = most;
    }

    output_types<P>(PJRT_Executable_OutputElementTypes_Args: arguments, executable: executable::<P>) {
        let types = &executable.outputs.types;
        (arguments.output_types, arguments.num_output_types) =
            (types.as_ptr().cast_mut(), types.len());
    }

    output_dimensions<P>(PJRT_Executable_OutputDimensions_Args: arguments, executable: executable::<P>) {
        let outputs = &executable.outputs;
        arguments.num_outputs = outputs.ranks.len();
        (arguments.dims, arguments.dim_sizes) =
            (outputs.dimensions.as_ptr(), outputs.ranks.as_ptr());
    }

    output_kinds<P>(PJRT_Executable_OutputMemoryKinds_Args: arguments, executable: executable::<P>) {
        let outputs = &executable.outputs;
        arguments.num_outputs = outputs.kind_sizes.len();
        arguments.memory_kinds = outputs.kinds.all().as_ptr().cast();
        arguments.memory_kind_sizes = outputs.kind_sizes.as_ptr();
    }

    parameter_kinds<P>(PJRT_Executable_ParameterMemoryKinds_Args: arguments, executable: executable::<P>) {
        let parameters = &executable.parameters;
        arguments.num_parameters = parameters.kind_sizes.len();
        arguments.memory_kinds = parameters.kinds.all().as_ptr().cast();
        arguments.memory_kind_sizes = parameters.kind_sizes.as_ptr();
    }

    fingerprint<P>(PJRT_Executable_Fingerprint_Args: arguments, executable: executable::<P>) {
        let text = fingerprint_of(executable)?;
        (arguments.executable_fingerprint, arguments.executable_fingerprint_size) =
            (text.as_ptr().cast(), text.len());
    }

    loaded_fingerprint<P>(PJRT_LoadedExecutable_Fingerprint_Args: arguments, executable: loaded::<P>) {
        let text = fingerprint_of(executable)?;
        (arguments.executable_fingerprint, arguments.executable_fingerprint_size) =
            (text.as_ptr().cast(), text.len());
    }

    compile_options<P>(PJRT_Executable_GetCompileOptions_Args: arguments, executable: executable::<P>) {
        let (start, length, owner) = give_bytes(executable.options.as_bytes().to_vec());
        (arguments.serialized_bytes, arguments.serialized_bytes_size) = (start, length);
        arguments.serialized_compile_options = owner;
        arguments.serialized_compile_options_deleter = Some(free);
    }

    serialize<P>(PJRT_Executable_Serialize_Args: arguments, executable: executable::<P>) {
        let (start, length, owner) = give_bytes(executable.serialize()?);
        (arguments.serialized_bytes, arguments.serialized_bytes_size) = (start, length);
        arguments.serialized_executable = owner;
        arguments.serialized_executable_deleter = Some(free);
    }
}

fn fingerprint_of<P: Plugin>(loaded: &Loaded<P>) -> Result<&str> {
    let fingerprint = loaded.fingerprint.as_deref();
    fingerprint
        .ok_or_else(|| Status::unimplemented("the programs of this plug-in have no fingerprint"))
}
