//! Programs: compilation, execution, and refusal of invalid programs.

use std::ptr;

use serdes_abi::pjrt::args::{
    Arguments, PJRT_Client_Compile_Args, PJRT_ExecuteOptions, PJRT_LoadedExecutable,
    PJRT_LoadedExecutable_Destroy_Args, PJRT_LoadedExecutable_Execute_Args, PJRT_Program,
};
use serdes_library_file::conformance::{Failure, Verdict, failed, same_bytes};

use super::{
    buffers::wait,
    subject::{Behaviour, Subject},
    transfers::RawBuffer,
};
use crate::{ElementType, HostArray, Target};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "pjrt_compile",
        demand: "a program of StableHLO can be compiled, as a portable artifact or in text",
        run: |subject| compile(subject).map(|(_, form)| format!("one addition, {}", form.words)),
    },
    Behaviour {
        name: "pjrt_execute",
        demand: "a compiled program computes what it says, and leaves its argument as it is",
        run: execute,
    },
    Behaviour {
        name: "pjrt_no_program",
        demand: "what is no program is refused",
        run: |subject| refused(subject, "mlir", b"no program", &options(0)),
    },
    Behaviour {
        name: "pjrt_unknown_format",
        demand: "a program of a format that it does not know is refused",
        run: |subject| refused(subject, "serdes_no_such_format", ARTIFACT.doubled, &options(0)),
    },
    Behaviour {
        name: "pjrt_no_compile_options",
        demand: "compile options that say nothing are refused or taken as usual ones",
        run: no_options,
    },
];

/// A format in which a program can be written.
#[derive(Clone, Copy)]
struct Form {
    words: &'static str,
    /// A program in this format that doubles its argument.
    doubled: &'static [u8],
}

/// The text below, written for StableHLO 1.0.0, which is the format that frameworks use.
const ARTIFACT: Form =
    Form { words: "as a portable artifact", doubled: include_bytes!("doubled.mlirbc") };

const TEXT: Form = Form { words: "in text", doubled: DOUBLED };

const DOUBLED: &[u8] = b"module @doubled {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = stablehlo.add %x, %x : tensor<4xf32>
    return %sum : tensor<4xf32>
  }
}
";

/// Returns a field with a nested message: key, length, content. Every content here is short.
fn nested(key: u8, content: &[u8]) -> Vec<u8> {
    [&[key, content.len() as u8], content].concat()
}

/// Returns the options of a compilation for one device as a serialized `xla.CompileOptionsProto`:
/// field 3 with one replica (4), one partition (5) and the assignment (9) of that device.
fn options(device: u8) -> Vec<u8> {
    let computation = nested(0x1a, &nested(0x0a, &[device & 0x7f]));
    let assignment = [&[0x08, 1, 0x10, 1], &computation[..]].concat();
    nested(0x1a, &[&[0x20, 1, 0x28, 1], &nested(0x4a, &assignment)[..]].concat())
}

/// A compiled program, which is destroyed on drop.
struct Executable<'a> {
    subject: &'a Subject,
    raw: *mut PJRT_LoadedExecutable,
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        let mut arguments = PJRT_LoadedExecutable_Destroy_Args::new();
        arguments.executable = self.raw;
        // SAFETY: it is alive, and is not used after this call.
        let _ = unsafe { self.subject.slots.call_with(&mut arguments) };
    }
}

fn compiled<'a>(
    subject: &'a Subject,
    format: &str,
    code: &[u8],
    options: &[u8],
) -> Result<Executable<'a>, Failure> {
    let client = subject.client()?;
    let mut code = code.to_vec();
    let program = PJRT_Program {
        struct_size: size_of::<PJRT_Program>(),
        extension_start: ptr::null_mut(),
        code: code.as_mut_ptr().cast(),
        code_size: code.len(),
        format: format.as_ptr().cast(),
        format_size: format.len(),
    };
    let mut arguments = PJRT_Client_Compile_Args::new();
    arguments.client = client.raw();
    arguments.program = &raw const program;
    arguments.compile_options = options.as_ptr().cast();
    arguments.compile_options_size = options.len();
    // SAFETY: the client is alive; program and options are valid for the call, with the declared
    // lengths.
    unsafe { subject.slots.call_with(&mut arguments) }?;
    if arguments.executable.is_null() {
        return failed("the program is NULL");
    }
    Ok(Executable { subject, raw: arguments.executable })
}

/// Returns the program, and the format that the plug-in accepts. If it accepts neither, the error
/// is that of the first.
fn compile(subject: &Subject) -> Result<(Executable<'_>, Form), Failure> {
    let (_, devices) = subject.devices()?;
    let options = options(u8::try_from(devices[0].id()?).unwrap_or_default());
    match compiled(subject, "mlir", ARTIFACT.doubled, &options) {
        Ok(executable) => Ok((executable, ARTIFACT)),
        Err(failure) => match compiled(subject, "mlir", TEXT.doubled, &options) {
            Ok(executable) => Ok((executable, TEXT)),
            Err(_) => Err(failure),
        },
    }
}

fn execute(subject: &Subject) -> Verdict {
    let (client, devices) = subject.devices()?;
    let (executable, _) = compile(subject)?;
    let data: Vec<u8> = [1.0_f32, -2.5, 0.0, 1e30].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let array = HostArray::new(ElementType::F32, &[4]);
    let argument = client.put(&array, &data, Target::Device(&devices[0]))?;
    let history = PJRT_ExecuteOptions::HISTORY.handover(subject.plugin.minor());
    // SAFETY: it consists of numbers and pointers, for which zero is a value.
    let mut options: PJRT_ExecuteOptions = unsafe { std::mem::zeroed() };
    options.struct_size = history.map_or(0, |given| given.struct_size);
    let list = [argument.raw()];
    let (mut output, mut complete) = ([ptr::null_mut()], [ptr::null_mut()]);
    let (lists, outputs) = ([list.as_ptr()], [output.as_mut_ptr()]);
    let mut arguments = PJRT_LoadedExecutable_Execute_Args::new();
    arguments.executable = executable.raw;
    arguments.options = &raw mut options;
    arguments.argument_lists = lists.as_ptr();
    arguments.num_devices = 1;
    arguments.num_args = 1;
    arguments.output_lists = outputs.as_ptr();
    arguments.device_complete_events = complete.as_mut_ptr();
    // SAFETY: the program is alive, is for one device, takes one array and returns one; the
    // argument is such an array, and there is space for the output.
    unsafe { subject.slots.call_with(&mut arguments) }?;
    if output[0].is_null() {
        return failed("what it computes is NULL");
    }
    // SAFETY: the call returned it just now.
    let output = unsafe { RawBuffer::taken(subject, output[0]) };
    wait(subject, complete[0])?;
    let expected: Vec<u8> =
        [2.0_f32, -5.0, 0.0, 2e30].iter().flat_map(|x| x.to_ne_bytes()).collect();
    same_bytes("twice the argument", &output.read()?, &expected)?;
    same_bytes("the argument after it", &argument.read()?, &data)?;
    Ok("four numbers, doubled".to_owned())
}

/// Checks that a compilation fails; if compilation is unsupported, so is the behaviour.
fn refused(subject: &Subject, format: &str, code: &[u8], options: &[u8]) -> Verdict {
    compile(subject)?;
    match compiled(subject, format, code, options) {
        Ok(_) => failed("it is compiled"),
        Err(Failure::Failed(said) | Failure::Unsupported(said) | Failure::NoHardware(said)) => {
            Ok(said)
        }
    }
}

fn no_options(subject: &Subject) -> Verdict {
    let (_, form) = compile(subject)?;
    match compiled(subject, "mlir", form.doubled, &[]) {
        Ok(_) => Ok("they are taken".to_owned()),
        Err(Failure::Failed(said) | Failure::Unsupported(said) | Failure::NoHardware(said)) => {
            Ok(said)
        }
    }
}
