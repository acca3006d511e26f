//! Programs: compilation, execution, and their properties.

mod ahead_of_time;
mod code;
mod compile;
mod compile_options;
mod device_assignment;
mod executable;
mod execute;
mod host_transfers;
mod loaded;
mod memory;
mod shardings;

pub use self::{
    code::{Program, ProgramFormat},
    compile_options::CompileOptions,
    executable::{Executable, OptimizedProgram},
    execute::{Argument, ExecuteOptions, Execution},
    host_transfers::{HostStream, HostTransfers, SentPiece},
    loaded::LoadedExecutable,
    memory::ProgramMemory,
};
