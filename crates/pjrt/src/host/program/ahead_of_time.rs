//! Compiling for devices that need not be here, and loading what was compiled so.

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
    /// Compiles a program for devices of the topology, none of which need be here. It is run where
    /// a client has loaded it ([`Client::load`]).
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for a program of no bytes, or options for more devices than
    /// the topology has; [`PjrtError::Status`] with the compiler's words, such as that the plug-in
    /// compiles for its own devices alone.
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
        // SAFETY: the topology is alive; the program and the options are there for the call, with
        // as many bytes as are said. A client need not be given.
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
        // SAFETY: a call that succeeds hands over this executable.
        unsafe { Executable::taken("PJRT_Compile", origin, made.executable) }
    }

    /// Returns the numbers of its first devices, one for each replica and partition.
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
        // It fits: it is no more than there are devices.
        devices.iter().take(count as usize).map(|device| device.id()).collect()
    }
}

impl Client {
    /// Loads a program that was compiled without a client onto its devices. A plug-in that has no
    /// call for that (before 0.95) gets the program as bytes.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for a program that another plug-in compiled;
    /// [`PjrtError::Status`] as the plug-in's, such as that it is for other devices.
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
        // SAFETY: the client and the executable are alive and of one plug-in.
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
            // SAFETY: a call that succeeds hands over this executable.
            made => unsafe {
                LoadedExecutable::taken(CALL, self.handle(), made?.loaded_executable)
            },
        }
    }
}
