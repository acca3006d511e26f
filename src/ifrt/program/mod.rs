//! Programs, the options they are compiled with, and what a compiled program carries with it.

mod custom_call;
mod executable_metadata;
mod executable_version;
mod hlo;
mod host_callback;
mod ifrt_ir;
mod plugin;
mod xla_compile_options;

use std::{fmt, sync::Arc};

pub use custom_call::{CustomCallCompileOptions, CustomCallProgram};
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

use super::{DeserializeShardingOptions, DeviceLookup};
use crate::codec::{DecodeError, DeserializeOptions};

/// The option without which no program that names devices is read: where to look devices up.
#[derive(Clone)]
pub struct DeserializeProgramOptions {
    devices: Arc<dyn DeviceLookup>,
}

impl DeserializeProgramOptions {
    /// Looks devices up in `devices`.
    pub fn new(devices: impl DeviceLookup + 'static) -> Self {
        Self { devices: Arc::new(devices) }
    }

    /// Where to look devices up.
    pub fn devices(&self) -> &dyn DeviceLookup {
        &*self.devices
    }

    /// The options for the shardings inside of the program `reader`.
    fn for_nested(
        options: &DeserializeOptions,
        reader: &'static str,
    ) -> Result<DeserializeOptions, DecodeError> {
        let program: &Self = options.require(reader)?;
        let sharding = DeserializeShardingOptions::new(Arc::clone(&program.devices));
        Ok(options.clone().with(sharding))
    }
}

impl fmt::Debug for DeserializeProgramOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeserializeProgramOptions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
