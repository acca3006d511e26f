//! Programs, the options for compiling them, and the metadata of compiled programs.

mod custom_call;
mod deserialize_options;
mod executable_metadata;
mod executable_version;
mod hlo;
mod host_callback;
mod ifrt_ir;
mod plugin;
mod xla_compile_options;

pub use custom_call::{CustomCallCompileOptions, CustomCallProgram};
pub use deserialize_options::DeserializeProgramOptions;
pub use executable_metadata::{
    OutputSpec, ParameterSpec, SerializedXlaExecutable, XlaExecutableMetadata,
};
pub use executable_version::{RuntimeAbiVersion, XlaExecutableVersion};
pub use hlo::HloProgram;
pub use host_callback::{HostCallbackArgument, XlaHostCallback};
pub use ifrt_ir::{
    AtomExecutableVersion, IfrtIrAtomProgram, IfrtIrCompileOptions, IfrtIrExecutableVersion,
    IfrtIrExecutableVersionDeserializeOptions, IfrtIrProgram,
};
pub use plugin::{PluginCompileOptions, PluginProgram};
pub use xla_compile_options::XlaCompileOptions;

#[cfg(test)]
mod tests;
