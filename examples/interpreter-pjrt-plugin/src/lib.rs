//! A device that runs programs of JAX in host memory, with an interpreter of StableHLO in place of
//! a vendor's compiler and driver.
//!
//! | file | for |
//! |---|---|
//! | `lib.rs` | the plug-in: a client, its devices, their memory; what a framework sees |
//! | `executable.rs` | what the SDK asks of a compiled program |
//! | `compile/` | StableHLO becomes a list of steps, all of whose types were checked |
//! | `interpret/` | the steps are run |
//! | `array.rs`, `number.rs` | the values |
//!
//! Programs are for one device. Compilation refuses operations and types that the interpreter does
//! not have, and names them.

mod array;
mod compile;
mod executable;
mod interpret;
mod number;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serdes_plugin::{HostSource, HostTarget, Result, Status, pjrt};

struct Interpreter;

impl pjrt::Plugin for Interpreter {
    type Client = Client;

    /// Returns the version of StableHLO. A framework writes programs in the older one of this
    /// version and its own.
    fn attributes() -> Vec<(String, pjrt::Value)> {
        let version = |name: &str, version: [i64; 3]| {
            (name.to_owned(), pjrt::Value::Integers(version.to_vec()))
        };
        vec![
            version("stablehlo_current_version", [1, 9, 0]),
            version("stablehlo_minimum_version", [0, 9, 0]),
        ]
    }

    fn create_client(options: &pjrt::Options) -> Result<Client> {
        options.only(&["devices"])?;
        let devices = options.integer("devices")?.unwrap_or(1);
        let devices = usize::try_from(devices).ok().filter(|devices| (1..=64).contains(devices));
        let devices = devices.ok_or_else(|| Status::invalid_argument("1 to 64 devices"))?;
        Ok(Client { devices })
    }
}

struct Client {
    devices: usize,
}

impl pjrt::Client for Client {
    type Device = Device;

    fn platform_name(&self) -> &str {
        "interpreter"
    }
    fn platform_version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
    fn devices(&self) -> Result<Vec<Device>> {
        Ok((0..self.devices).map(|_| Device).collect())
    }

    /// Compiles a program. A vendor's compiler would be called here.
    fn compile(
        &self,
        program: &pjrt::Program<'_>,
        options: &pjrt::CompileOptions,
    ) -> Result<pjrt::BoxedExecutable<Self>> {
        if program.format != "mlir" {
            return Err(Status::unimplemented(format!(
                "found a program in the format {:?}, expected mlir",
                program.format
            )));
        }
        if options.devices().len() != 1 {
            return Err(Status::unimplemented(format!(
                "found a program for {} devices, expected one",
                options.devices().len()
            )));
        }
        Ok(Box::new(executable::Executable::new(program.code)?))
    }

    /// Compiles the program again: the bytes of an executable are those of its program.
    fn load(
        &self,
        bytes: &[u8],
        options: &pjrt::CompileOptions,
    ) -> Result<pjrt::BoxedExecutable<Self>> {
        self.compile(&pjrt::Program::new("mlir", bytes), options)
    }
}

struct Device;

impl pjrt::Device for Device {
    type Memory = Memory;

    fn kind(&self) -> &str {
        "interpreter"
    }
    fn memories(&self) -> Result<Vec<Memory>> {
        Ok(vec![Memory])
    }
}

struct Memory;

impl pjrt::Memory for Memory {
    type Buffer = Buffer;

    fn kind(&self) -> &str {
        "device"
    }
    fn allocate(&self, size: u64) -> Result<Buffer> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(size)
            .map_err(|_| Status::resource_exhausted(format!("no {size} bytes are left")))?;
        bytes.resize(size, 0);
        Ok(Buffer(Mutex::new(bytes)))
    }
}

/// Memory that the SDK writes, reads and copies, and that programs compute with.
struct Buffer(Mutex<Vec<u8>>);

impl Buffer {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl pjrt::Buffer for Buffer {
    fn write(&self, offset: u64, source: &HostSource) -> Result<()> {
        let start = offset as usize;
        source.read(&mut self.bytes()[start..start + source.len()])
    }
    fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()> {
        let start = offset as usize;
        target.write(&self.bytes()[start..start + target.len()])
    }
}

serdes_plugin::export_pjrt!(Interpreter);
