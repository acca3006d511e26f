//! Compiles programs for devices that may be absent, and loads the results.

use std::ptr;

use serdes_abi::pjrt::args::*;

use super::{
    code::{Program, check_code, handed_program},
    compile_options::CompileOptions,
    executable::Executable,
    loaded::LoadedExecutable,
};
use crate::{Client, PjrtError, Topology};

impl Topology {
    /// Compiles a program for devices of the topology, which may all be absent. The program can be
    /// run once a client has loaded it ([`Client::load`]).
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for an empty program, or options for more devices than the
    /// topology has; [`PjrtError::Status`] from the compiler, for example if the plug-in compiles
    /// only for its own devices.
    pub fn compile(
        &self,
        program: &Program<'_>,
        options: &CompileOptions,
    ) -> Result<Executable, PjrtError> {
        check_code("the program", program.code())?;
        let options = options.serialize(|replicas, partitions| self.first(replicas, partitions))?;
        let table = self.origin().table();
        let handed = handed_program(program, table.minor());
        let raw = self.raw();
        // SAFETY: the topology is alive; the program and the options are valid for the call, with
        // the declared lengths. A client is not required.
        let made = unsafe {
            table.ask(|call: &mut PJRT_Compile_Args| {
                call.topology = raw;
                call.program = &raw const *handed;
                call.compile_options = options.as_ptr().cast();
                call.compile_options_size = options.len();
                call.client = ptr::null_mut();
            })
        }?;
        let origin = self.origin().clone();
        // SAFETY: a successful call returns ownership of this executable.
        unsafe { Executable::taken("PJRT_Compile", origin, made.executable) }
    }

    /// Returns the ids of the first devices, one for each replica and partition.
    fn first(&self, replicas: u32, partitions: u32) -> Result<Vec<i32>, PjrtError> {
        let devices = self.devices()?;
        let count = u64::from(replicas) * u64::from(partitions);
        if count > devices.len() as u64 {
            return Err(PjrtError::InvalidArgument {
                what: "the number of devices that a program is compiled for",
                found: count.to_string(),
                expected: format!("{} at most, which the topology has", devices.len()),
            });
        }
        // The cast is lossless: the count is at most the number of devices.
        devices.iter().take(count as usize).map(|device| device.id()).collect()
    }
}

impl Client {
    /// Loads a program that was compiled without a client onto the client's devices. A plug-in
    /// without a call for that (before 0.95) gets the program as bytes.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for a program that another plug-in compiled;
    /// [`PjrtError::Status`] from the plug-in, for example if it is for other devices.
    pub fn load(&self, executable: &Executable) -> Result<LoadedExecutable, PjrtError> {
        const CALL: &str = "PJRT_Client_Load";
        let table = self.handle().table();
        if !ptr::eq(table, executable.table()) {
            return Err(PjrtError::InvalidArgument {
                what: "the program that is loaded",
                found: "one of another plug-in".to_owned(),
                expected: "one that the client's own plug-in compiled".to_owned(),
            });
        }
        let (client, raw) = (self.handle().raw(), executable.raw());
        // SAFETY: the client and the executable are alive and belong to one plug-in.
        let made = unsafe {
            table.ask(|call: &mut PJRT_Client_Load_Args| {
                call.client = client;
                call.executable = raw;
            })
        };
        match made {
            Err(error) if error.is_unsupported() => {
                self.load_serialized(&executable.serialize()?, None)
            }
            // SAFETY: a successful call returns ownership of this executable.
            made => unsafe {
                LoadedExecutable::taken(CALL, self.handle(), made?.loaded_executable)
            },
        }
    }
}
