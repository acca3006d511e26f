//! Programs: compiled, run, and asked what they are.

mod compile;
mod compile_options;
mod executable;
mod execute;
mod loaded;
mod memory;

pub use self::{
    compile::{Program, ProgramFormat},
    compile_options::CompileOptions,
    executable::{Executable, OptimizedProgram},
    execute::{Argument, ExecuteOptions, Execution},
    loaded::LoadedExecutable,
    memory::ProgramMemory,
};
