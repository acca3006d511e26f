//! Programs: compiled, run, and asked what they are.

mod ahead;
mod compile;
mod compile_options;
mod executable;
mod execute;
mod host_transfers;
mod loaded;
mod memory;
mod shardings;

pub use self::{
    compile::{Program, ProgramFormat},
    compile_options::CompileOptions,
    executable::{Executable, OptimizedProgram},
    execute::{Argument, ExecuteOptions, Execution},
    host_transfers::{HostStream, HostTransfers, SentPiece},
    loaded::LoadedExecutable,
    memory::ProgramMemory,
};
