//! Tests of programs as a host in C compiles and runs them.

use std::{ptr, slice};

use serdes_abi::pjrt::{ElementType, args::*};

use super::{
    FAILED_PRECONDITION, INVALID_ARGUMENT, UNIMPLEMENTED,
    host::{Array, Client, Host, Wrong},
    plugin::{Newest, Switchable},
};

/// A program, destroyed when it is dropped.
#[derive(Debug)]
struct Program<'a> {
    client: &'a Client,
    raw: *mut PJRT_LoadedExecutable,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        let mut arguments = PJRT_LoadedExecutable_Destroy_Args::new();
        arguments.executable = self.raw;
        self.client.host.call(&mut arguments).unwrap();
    }
}

fn compile<'a>(
    client: &'a Client,
    format: &str,
    code: &str,
    options: &[u8],
) -> Result<Program<'a>, Wrong> {
    let program = PJRT_Program {
        struct_size: size_of::<PJRT_Program>(),
        extension_start: ptr::null_mut(),
        code: code.as_ptr().cast_mut().cast(),
        code_size: code.len(),
        format: format.as_ptr().cast(),
        format_size: format.len(),
    };
    let mut arguments = PJRT_Client_Compile_Args::new();
    (arguments.client, arguments.program) = (client.raw, &raw const program);
    arguments.compile_options = options.as_ptr().cast();
    arguments.compile_options_size = options.len();
    client.host.call(&mut arguments)?;
    Ok(Program { client, raw: arguments.executable })
}

impl Program<'_> {
    /// Begins a run on the first device with options of that size.
    fn begin(
        &self,
        arrays: &[&Array],
        options_size: usize,
    ) -> Result<(Array, *mut PJRT_Event), Wrong> {
        // SAFETY: it is made of numbers and pointers, for which zero is a value.
        let mut options: PJRT_ExecuteOptions = unsafe { std::mem::zeroed() };
        options.struct_size = options_size;
        let list: Vec<*mut PJRT_Buffer> = arrays.iter().map(|array| array.raw).collect();
        let (mut output, mut done) = ([ptr::null_mut()], [ptr::null_mut()]);
        let (lists, outputs) = ([list.as_ptr()], [output.as_mut_ptr()]);
        let mut arguments = PJRT_LoadedExecutable_Execute_Args::new();
        (arguments.executable, arguments.options) = (self.raw, &raw mut options);
        (arguments.argument_lists, arguments.output_lists) = (lists.as_ptr(), outputs.as_ptr());
        (arguments.num_devices, arguments.num_args) = (1, list.len());
        arguments.device_complete_events = done.as_mut_ptr();
        self.client.host.call(&mut arguments)?;
        Ok((Array { host: self.client.host, raw: output[0] }, done[0]))
    }

    fn run(&self, arrays: &[&Array]) -> Result<Vec<u8>, Wrong> {
        let (output, done) = self.begin(arrays, size_of::<PJRT_ExecuteOptions>())?;
        let read = output.read();
        assert_eq!(self.client.host.wait(done).err(), read.as_ref().err().cloned());
        read
    }

    fn executable(&self) -> *mut PJRT_Executable {
        let mut arguments = PJRT_LoadedExecutable_GetExecutable_Args::new();
        arguments.loaded_executable = self.raw;
        self.client.host.call(&mut arguments).unwrap();
        arguments.executable
    }
}

fn put(client: &Client, bytes: [u8; 4]) -> Array {
    client.put(ElementType::U8, &[2, 2], &bytes, 0).unwrap()
}

fn destroy(host: Host, executable: *mut PJRT_Executable) {
    let mut arguments = PJRT_Executable_Destroy_Args::new();
    arguments.executable = executable;
    host.call(&mut arguments).unwrap();
}

#[test]
fn a_program_adds_arrays_and_leaves_them_as_they_are() {
    let client = Host::of::<Switchable>().client_with(&[]).unwrap();
    let program = compile(&client, "name", "add", &[]).unwrap();
    let (left, right) = (put(&client, [1, 2, 3, 4]), put(&client, [10, 20, 30, 40]));
    assert_eq!(program.run(&[&left, &right]).unwrap(), [11, 22, 33, 44]);
    assert_eq!(program.run(&[&left, &left]).unwrap(), [2, 4, 6, 8]);
    assert_eq!(
        (left.read().unwrap(), right.read().unwrap()),
        (vec![1, 2, 3, 4], vec![10, 20, 30, 40])
    );
}

#[test]
fn options_of_the_oldest_frameworks_are_long_enough() {
    let client = Host::of::<Switchable>().client_with(&[]).unwrap();
    let program = compile(&client, "name", "add", &[]).unwrap();
    let array = put(&client, [1; 4]);
    let (output, done) = program.begin(&[&array, &array], 52).unwrap();
    client.host.wait(done).unwrap();
    assert_eq!(output.read().unwrap(), [2; 4]);
    assert_eq!(program.begin(&[&array, &array], 51).unwrap_err().code, INVALID_ARGUMENT);
}

#[test]
fn a_run_waits_for_its_arguments_and_fails_with_them() {
    let slow = Host::of::<Switchable>().client_with(&[("slow", 50)]).unwrap();
    let program = compile(&slow, "name", "add", &[]).unwrap();
    let bytes = [7_u8; 40_000];
    let (late, taken) = slow.begin_put(&bytes);
    let four = put(&slow, [1; 4]);
    assert_eq!(program.run(&[&late, &four]).unwrap_err().code, INVALID_ARGUMENT, "its shape");
    slow.host.wait(taken).unwrap();

    let broken = Host::of::<Switchable>().client_with(&[("panic_in_write", 1)]).unwrap();
    let program = compile(&broken, "name", "add", &[]).unwrap();
    let failed = broken.put(ElementType::U8, &[2, 2], &[1; 4], 1).unwrap();
    let wrong = program.run(&[&failed, &failed]).unwrap_err();
    assert!(wrong.message.contains("an argument of the program had failed"), "{wrong:?}");
    assert!(wrong.message.contains("in write"), "{wrong:?}");
}

#[test]
fn wrong_arguments_are_named() {
    let client = Host::of::<Switchable>().client_with(&[]).unwrap();
    let program = compile(&client, "name", "add", &[]).unwrap();
    let array = put(&client, [1; 4]);
    let wrong = program.run(&[&array]).unwrap_err();
    assert_eq!(
        wrong,
        Wrong::new(INVALID_ARGUMENT, "found 1 arguments, expected 2 for the program add")
    );
    let flat = client.put(ElementType::U8, &[4], &[1; 4], 0).unwrap();
    let wrong = program.run(&[&array, &flat]).unwrap_err();
    assert!(
        wrong.message.contains("found U8[4] as argument 1 of the program add, expected U8[2, 2]")
    );
    let elsewhere = array.copy_to(client.device(1)).unwrap();
    let wrong = program.run(&[&array, &elsewhere]).unwrap_err();
    assert!(wrong.message.contains("lies on another device than device 0"), "{wrong:?}");
    array.delete();
    let wrong = program.run(&[&array, &array]).unwrap_err();
    assert!(wrong.message.contains("was deleted"), "{wrong:?}");
}

#[test]
fn failures_and_panics_of_a_program_are_those_of_its_results() {
    let client = Host::of::<Switchable>().client_with(&[]).unwrap();
    let array = put(&client, [1; 4]);
    for (name, words) in [("fail", "the kernel"), ("panic", "the plug-in panicked")] {
        let program = compile(&client, "name", name, &[]).unwrap();
        let wrong = program.run(&[&array, &array]).unwrap_err();
        assert!(wrong.message.contains(words), "{wrong:?}");
    }
    let wrong = compile(&client, "panic", "", &[]).unwrap_err();
    assert!(wrong.message.contains("in compile"), "{wrong:?}");
    assert_eq!(compile(&client, "other", "", &[]).unwrap_err().code, UNIMPLEMENTED);
}

#[test]
fn a_deleted_program_is_not_run() {
    let client = Host::of::<Switchable>().client_with(&[]).unwrap();
    let program = compile(&client, "name", "add", &[]).unwrap();
    let mut arguments = PJRT_LoadedExecutable_Delete_Args::new();
    arguments.executable = program.raw;
    client.host.call(&mut arguments).unwrap();
    client.host.call(&mut arguments).unwrap();
    let mut asked = PJRT_LoadedExecutable_IsDeleted_Args::new();
    asked.executable = program.raw;
    client.host.call(&mut asked).unwrap();
    assert_eq!(asked.is_deleted, 1);
    let array = put(&client, [1; 4]);
    assert_eq!(program.run(&[&array, &array]).unwrap_err().code, FAILED_PRECONDITION);
}

#[test]
fn a_program_says_what_it_is() {
    let client = Host::of::<Newest>().client_with(&[]).unwrap();
    let host = client.host;
    let program = compile(&client, "name", "add", &[0x1a, 2, 8, 1]).unwrap();
    let executable = program.executable();
    let mut name = PJRT_Executable_Name_Args::new();
    name.executable = executable;
    host.call(&mut name).unwrap();
    // SAFETY: there are as many bytes as were said.
    let text = unsafe {
        slice::from_raw_parts(name.executable_name.cast::<u8>(), name.executable_name_size)
    };
    assert_eq!(text, b"add");
    let mut outputs = PJRT_Executable_OutputDimensions_Args::new();
    outputs.executable = executable;
    host.call(&mut outputs).unwrap();
    // SAFETY: one result of two dimensions.
    let dimensions = unsafe { slice::from_raw_parts(outputs.dims, *outputs.dim_sizes) };
    assert_eq!((outputs.num_outputs, dimensions), (1, &[2, 2][..]));
    let mut kinds = PJRT_Executable_ParameterMemoryKinds_Args::new();
    kinds.executable = executable;
    host.call(&mut kinds).unwrap();
    // SAFETY: there are two, each with as many bytes as it says.
    let kind = unsafe {
        slice::from_raw_parts((*kinds.memory_kinds).cast::<u8>(), *kinds.memory_kind_sizes)
    };
    assert_eq!((kinds.num_parameters, kind), (2, &b"device"[..]));
    let mut stats = PJRT_Executable_GetCompiledMemoryStats_Args::new();
    stats.executable = executable;
    host.call(&mut stats).unwrap();
    assert_eq!((stats.argument_size_in_bytes, stats.output_size_in_bytes), (8, 4));
    assert_eq!(stats.peak_memory_in_bytes, 112);
    let mut devices = PJRT_LoadedExecutable_AddressableDevices_Args::new();
    devices.executable = program.raw;
    host.call(&mut devices).unwrap();
    // SAFETY: there is one.
    let device = unsafe { *devices.addressable_devices };
    assert_eq!((devices.num_addressable_devices, device), (1, client.device(1)));
    destroy(host, executable);
}

#[test]
fn a_program_is_written_and_loaded_for_its_device() {
    let client = Host::of::<Switchable>().client_with(&[]).unwrap();
    let host = client.host;
    let program = compile(&client, "name", "add", &[0x1a, 2, 8, 1]).unwrap();
    let mut written = PJRT_Executable_Serialize_Args::new();
    written.executable = program.executable();
    host.call(&mut written).unwrap();
    let load = |size: usize| {
        let mut arguments = PJRT_Executable_DeserializeAndLoad_Args::new();
        arguments.client = client.raw;
        arguments.serialized_executable = written.serialized_bytes;
        arguments.serialized_executable_size = size;
        host.call(&mut arguments)?;
        Ok::<_, Wrong>(Program { client: &client, raw: arguments.loaded_executable })
    };
    let again = load(written.serialized_bytes_size).unwrap();
    let array = put(&client, [3; 4]).copy_to(client.device(1)).unwrap();
    assert_eq!(again.run(&[&array, &array]).unwrap(), [6; 4]);
    assert_eq!(load(9).unwrap_err().code, INVALID_ARGUMENT);
    // SAFETY: what was handed over is freed once.
    unsafe { written.serialized_executable_deleter.unwrap()(written.serialized_executable) };
    destroy(host, written.executable.cast_mut());
}
