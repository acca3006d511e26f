//! A plug-in with fault switches, which are set by options of a client.

use std::{sync::Mutex, thread, time::Duration};

use crate::{
    HostSource, HostTarget, Result, Status,
    pjrt::{
        ApiTable, BoxedExecutable, Buffer, Client, CompileOptions, Device, ElementType, Executable,
        ExecutableStats, Launch, Memory, Minor, NEWEST_MINOR, Options, Plugin, Program, Shape,
        Value,
    },
};

/// A plug-in whose table is in this program, as `export_pjrt!` puts it into a library.
pub(super) trait Loaded: Plugin {
    /// Returns the only table of the plug-in.
    fn table() -> &'static ApiTable;
}

macro_rules! loaded {
    ($($plugin:ty),*) => {$(
        impl Loaded for $plugin {
            fn table() -> &'static ApiTable {
                static TABLE: ApiTable = ApiTable::new();
                &TABLE
            }
        }
    )*};
}

loaded!(Switchable, OfMinor57, Newest);

/// Fault switches of its clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    panic_in_write: bool,
    /// Milliseconds that a write takes.
    slow: u64,
}

pub(super) struct Switchable;

impl Plugin for Switchable {
    type Client = Switches;

    fn attributes() -> Vec<(String, Value)> {
        vec![("answer".to_owned(), Value::Integer(42))]
    }

    fn create_client(options: &Options) -> Result<Switches> {
        options.only(&["panic", "panic_in_write", "slow"])?;
        assert!(options.integer("panic")?.is_none(), "in create_client");
        Ok(Switches {
            panic_in_write: options.integer("panic_in_write")?.is_some(),
            slow: options.integer("slow")?.unwrap_or(0).cast_unsigned(),
        })
    }
}

/// A plug-in that declares an older minor.
pub(super) struct OfMinor57;

impl Plugin for OfMinor57 {
    type Client = Switches;
    const MINOR: Minor = Minor::new(57);

    fn create_client(options: &Options) -> Result<Switches> {
        Switchable::create_client(options)
    }
}

/// A plug-in that declares the newest possible minor.
pub(super) struct Newest;

impl Plugin for Newest {
    type Client = Switches;
    const MINOR: Minor = NEWEST_MINOR;

    fn create_client(options: &Options) -> Result<Switches> {
        Switchable::create_client(options)
    }
}

impl Client for Switches {
    type Device = Self;

    fn platform_name(&self) -> &str {
        "switchable"
    }

    fn platform_version(&self) -> &str {
        "1"
    }

    fn devices(&self) -> Result<Vec<Self>> {
        Ok(vec![*self; 2])
    }

    /// Accepts programs that are the name of an action.
    fn compile(
        &self,
        program: &Program<'_>,
        options: &CompileOptions,
    ) -> Result<BoxedExecutable<Self>> {
        match program.format {
            "name" => self.load(program.code, options),
            "panic" => panic!("in compile"),
            format => Err(Status::unimplemented(format!("the format {format}"))),
        }
    }

    fn load(&self, bytes: &[u8], _options: &CompileOptions) -> Result<BoxedExecutable<Self>> {
        let name = String::from_utf8_lossy(bytes).into_owned();
        let four = Shape::new(ElementType::U8, vec![2, 2])?;
        Ok(Box::new(Named { name, parameters: [four.clone(), four.clone()], outputs: [four] }))
    }
}

/// A program that adds two arrays, or does what its name says.
struct Named {
    name: String,
    parameters: [Shape; 2],
    outputs: [Shape; 1],
}

impl Executable<Bytes> for Named {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> &[Shape] {
        &self.parameters
    }

    fn outputs(&self) -> &[Shape] {
        &self.outputs
    }

    fn execute(&self, launch: &Launch<'_, Bytes>) -> Result<()> {
        assert_ne!(self.name, "panic", "in execute");
        if self.name == "fail" {
            return Err(Status::not_found("the kernel"));
        }
        let [left, right] = launch.arguments else { panic!("two arguments") };
        let right = right.0.lock().unwrap().clone();
        let left = left.0.lock().unwrap().clone();
        let sums = left.iter().zip(right).map(|(left, right)| left + right);
        *launch.outputs[0].0.lock().unwrap() = sums.collect();
        Ok(())
    }

    fn fingerprint(&self) -> Option<&str> {
        (self.name == "add").then_some("sum")
    }

    fn memory_stats(&self) -> ExecutableStats {
        ExecutableStats { code: 5, temporary: 100 }
    }

    fn serialize(&self) -> Result<Vec<u8>> {
        Ok(self.name.clone().into_bytes())
    }
}

impl Device for Switches {
    type Memory = Self;

    fn kind(&self) -> &str {
        "vector"
    }

    fn memories(&self) -> Result<Vec<Self>> {
        Ok(vec![*self])
    }
}

impl Memory for Switches {
    type Buffer = Bytes;

    fn kind(&self) -> &str {
        "device"
    }

    fn allocate(&self, size: u64) -> Result<Bytes> {
        Ok(Bytes(Mutex::new(vec![0; usize::try_from(size).unwrap()]), *self))
    }
}

pub(super) struct Bytes(Mutex<Vec<u8>>, Switches);

impl Buffer for Bytes {
    fn write(&self, offset: u64, source: &HostSource) -> Result<()> {
        assert!(!self.1.panic_in_write, "in write");
        thread::sleep(Duration::from_millis(self.1.slow));
        let start = usize::try_from(offset).unwrap();
        source.read(&mut self.0.lock().unwrap()[start..start + source.len()])
    }

    fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()> {
        let start = usize::try_from(offset).unwrap();
        target.write(&self.0.lock().unwrap()[start..start + target.len()])
    }
}
