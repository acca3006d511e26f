//! PJRT plug-ins: checks if one fits a framework before it is loaded, and hosts them for access to
//! devices, memories, arrays and programs.
//!
//! ```
//! use serdes_pjrt::{Framework, PluginVersion, Minor};
//!
//! let framework = Framework::named("jaxlib-0.6.2").expect("it is in the table");
//! let plugin = PluginVersion::new(Minor::new(81));
//! let fit = framework.fit(&plugin);
//! assert!(!fit.fits());
//! // "… PJRT_Plugin_Attributes_Args … 24 bytes … 32 …"
//! println!("{}", fit.reasons()[0].message());
//! ```
//!
//! # Why they do not fit
//!
//! A framework and a plug-in are built on different days, and may disagree on the sizes of the
//! structs that they exchange. Three things decide:
//!
//! * the framework's gate: some releases require the same minor, later ones a minimum;
//! * the plug-in's check: it refuses a struct that is shorter than the one it was built with;
//! * functions that the framework needs and the plug-in does not have.
//!
//! [`inspect`] reads the version of a plug-in from its file, without running any of it. The layouts
//! on which the decision is based are in `serdes-abi`.
//!
//! # Devices, arrays and programs
//!
//! ```no_run
//! use serdes_pjrt::{
//!     Argument, CompileOptions, ElementType, ExecuteOptions, HostArray, PjrtPlugin, Program,
//!     ProgramFormat, Target,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = PjrtPlugin::load("xla_cpu_pjrt.so")?.create_client(&[])?;
//! let device = client.addressable_devices()?.remove(0);
//! let array = HostArray::new(ElementType::U8, &[4]);
//! let buffer = client.put(&array, &[1, 2, 3, 4], Target::Device(&device))?;
//!
//! let code = std::fs::read("plus_one.mlir")?;
//! let program = Program::new(&code, ProgramFormat::Mlir);
//! let loaded = client.compile(&program, &CompileOptions::new(1, 1)?)?;
//! // The buffer is kept. One that is given may become an output.
//! let run = loaded.execute(vec![vec![Argument::Kept(&buffer)]], &ExecuteOptions::new())?;
//! run.wait()?;
//! println!("{:?}", run.outputs()[0][0].read()?);
//! # Ok(())
//! # }
//! ```
//!
//! # What is trusted
//!
//! A plug-in is native code in this process. It is called only like a host of its own day would
//! call it: with structs of the size that its version declares, existing functions, and types that
//! it knows. Input on which real plug-ins end the process, or read outside memory, is refused
//! before the call. Results are checked: counts, NULLs, numbers. No check can prevent native code
//! from writing to the wrong memory.
//!
//! This crate does not depend on serialization, or on StreamExecutor plug-ins.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Plug-ins must not make the crate panic; each exception states its reason.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]
#![allow(unsafe_code, reason = "plug-ins are C: calls, pointers and memory of theirs")]

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod host;
mod inspect;
mod report;
mod skew;
mod state;

pub use error::PjrtError;
pub use host::{
    Argument, Buffer, Client, CompileOptions, DeferredRead, Device, DeviceDescription,
    ErrorPayload, Event, Executable, ExecuteOptions, Execution, Extension, ExternalReference,
    HostArray, HostBufferSemantics, HostMemory, HostStream, HostTransfers, IncomingBuffer,
    LoadedExecutable, Memory, MemoryLayout, MemoryStatistics, OptimizedProgram, PjrtPlugin,
    Program, ProgramFormat, ProgramMemory, SentPiece, Target, Topology, Transfer, Value,
};
pub use inspect::{Inspection, VersionInFile, inspect};
pub use report::{Examination, PluginReport};
pub use serdes_abi::pjrt::{ElementType, Minor};
pub use skew::{Fit, Framework, Gate, Mismatch, PluginVersion, SizeRule, SkewRule, Step};
pub use state::{Array, ArrayTransfer, IncomingArray, MemorySpace};
