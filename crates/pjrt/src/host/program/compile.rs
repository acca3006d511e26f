//! Compiles programs, and loads programs that were compiled before.

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    code::{Program, check_code, handed_program},
    compile_options::CompileOptions,
    loaded::LoadedExecutable,
};
use crate::{PjrtError, host::client::Client};

/// The first minor that accepts other options for a program that was compiled before.
const OVERRIDDEN_SINCE: Minor = Minor::new(71);

impl Client {
    /// Compiles a program for devices of the client.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for an empty program; [`PjrtError::Status`] from the
    /// compiler.
    pub fn compile(
        &self,
        program: &Program<'_>,
        options: &CompileOptions,
    ) -> Result<LoadedExecutable, PjrtError> {
        check_code("the program", program.code())?;
        let options = self.serialized(options)?;
        let handed = handed_program(program, self.minor());
        let client = self.handle().raw();
        // SAFETY: the client is alive; the program and the options are valid for the call, with the
        // declared lengths.
        let made = unsafe {
            self.handle().table().ask(|call: &mut PJRT_Client_Compile_Args| {
                call.client = client;
                call.program = &raw const *handed;
                call.compile_options = options.as_ptr().cast();
                call.compile_options_size = options.len();
            })
        }?;
        // SAFETY: a successful call returns ownership of this executable.
        unsafe { LoadedExecutable::taken("PJRT_Client_Compile", self.handle(), made.executable) }
    }

    /// Loads a program that was compiled before: the result of [`Executable::serialize`] from a
    /// plug-in of the same build.
    ///
    /// [`Executable::serialize`]: super::Executable::serialize
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for no bytes, and for options that the plug-in's version does
    /// not accept here; [`PjrtError::Status`] from the plug-in, for example if the bytes are from
    /// another build.
    pub fn load_serialized(
        &self,
        serialized: &[u8],
        options: Option<&CompileOptions>,
    ) -> Result<LoadedExecutable, PjrtError> {
        check_code("the serialized executable", serialized)?;
        let minor = self.minor();
        if options.is_some() && minor < OVERRIDDEN_SINCE {
            return Err(PjrtError::InvalidArgument {
                what: "other options for a serialized executable",
                found: "some".to_owned(),
                expected: format!("none: they came with {OVERRIDDEN_SINCE}, and this is {minor}"),
            });
        }
        let options = options.map(|options| self.serialized(options)).transpose()?;
        let client = self.handle().raw();
        // SAFETY: the client is alive; the bytes and the options are valid for the call.
        let made = unsafe {
            self.handle().table().ask(|call: &mut PJRT_Executable_DeserializeAndLoad_Args| {
                call.client = client;
                call.serialized_executable = serialized.as_ptr().cast();
                call.serialized_executable_size = serialized.len();
                if let Some(options) = &options {
                    call.overridden_serialized_compile_options = options.as_ptr().cast();
                    call.overridden_serialized_compile_options_size = options.len();
                }
            })
        }?;
        let call = "PJRT_Executable_DeserializeAndLoad";
        // SAFETY: a successful call returns ownership of this executable.
        unsafe { LoadedExecutable::taken(call, self.handle(), made.loaded_executable) }
    }

    /// Returns options in the form that the plug-in takes; the client chooses devices if none were
    /// set.
    fn serialized(&self, options: &CompileOptions) -> Result<Vec<u8>, PjrtError> {
        options
            .serialize(|replicas, partitions| self.default_device_assignment(replicas, partitions))
    }
}
