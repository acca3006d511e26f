//! The traits that an author implements: a plug-in, its clients, their devices, the memories of
//! these, and buffers in them.

use std::{ffi::c_void, ptr::NonNull};

use serdes_abi::pjrt::Minor;

use super::{CompileOptions, Executable, Options, Program, Value};
use crate::{AllocatorStats, HostSource, HostTarget, Result, Status};

/// A plug-in. The type has no value: a process has it once.
pub trait Plugin: Send + Sync + Sized + 'static {
    /// Client that [`Plugin::create_client`] makes.
    type Client: Client;

    /// The minor of the C API that the plug-in says it was built with. See [`DEFAULT_MINOR`].
    ///
    /// It is between [`Minor::APPEND_ONLY`] and [`NEWEST_MINOR`], which is checked when the plug-in
    /// is compiled.
    const MINOR: Minor = DEFAULT_MINOR;

    /// Attributes of the plug-in, such as `stablehlo_current_version`.
    fn attributes() -> Vec<(String, Value)> {
        Vec::new()
    }

    /// Creates a client. There may be several at a time.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an option that is not understood (see [`Options::only`]), or whatever
    /// keeps the plug-in from it.
    fn create_client(options: &Options) -> Result<Self::Client>;
}

/// The minor that is said where a plug-in does not choose: that of jaxlib 0.8.0. Every framework
/// that takes plug-ins of other minors takes it, and it has all that arrays and copies need.
pub const DEFAULT_MINOR: Minor = Minor::new(80);

/// The newest minor that can be said: the newest whose layouts are known.
pub const NEWEST_MINOR: Minor = Minor::NEWEST;

/// Buffers in the memories of a client's devices.
pub type BufferOf<C> = <<<C as Client>::Device as Device>::Memory as Memory>::Buffer;

/// A program that [`Client::compile`] made.
pub type BoxedExecutable<C> = Box<dyn Executable<BufferOf<C>>>;

/// Answer of a plug-in that has no programs.
const NO_PROGRAMS: &str = "this plug-in holds and copies arrays; it compiles and runs no programs";

/// The devices of a plug-in, as one user of them sees them.
///
/// Hosts call all of it, and all of what it has, from any thread at any time. A panic becomes an
/// error of the call, or of the event of what was to be done.
pub trait Client: Send + Sync + 'static {
    /// Its devices.
    type Device: Device;

    /// Returns the kind of these devices: `cpu`, `cuda`. The name under which users find them.
    fn platform_name(&self) -> &str;

    /// Returns the platform's version, in words.
    fn platform_version(&self) -> &str;

    /// Returns its devices, all of them of this process. Asked once.
    ///
    /// # Errors
    /// Whatever keeps the client from them; there is no client then.
    fn devices(&self) -> Result<Vec<Self::Device>>;

    /// Compiles a program. It is called on the thread of the framework, which waits for it.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default; `INVALID_ARGUMENT` for what is no program, `UNIMPLEMENTED` for a
    /// format, an operation or a number of devices that the plug-in does not know.
    fn compile(
        &self,
        program: &Program<'_>,
        options: &CompileOptions,
    ) -> Result<BoxedExecutable<Self>>
    where
        Self: Sized,
    {
        let _ = (program, options);
        Err(Status::unimplemented(NO_PROGRAMS))
    }

    /// Loads a program that [`Executable::serialize`] wrote.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default; `INVALID_ARGUMENT` for bytes of another build.
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<BoxedExecutable<Self>>
    where
        Self: Sized,
    {
        let _ = (bytes, options);
        Err(Status::unimplemented(NO_PROGRAMS))
    }

    /// Makes memory of the host known, so that devices reach it by themselves.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default.
    fn map_host_memory(&self, memory: &HostTarget) -> Result<()> {
        let _ = memory;
        Err(Status::unimplemented("this plug-in maps no memory of the host"))
    }

    /// Forgets the memory of the host that begins there.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default.
    fn unmap_host_memory(&self, start: NonNull<c_void>) -> Result<()> {
        let _ = start;
        Err(Status::unimplemented("this plug-in maps no memory of the host"))
    }
}

/// A device.
pub trait Device: Send + Sync + 'static {
    /// Its memories.
    type Memory: Memory;

    /// Returns the kind of the device, in the vendor's words.
    fn kind(&self) -> &str;

    /// Returns its number on this machine; by default its place among the client's devices.
    fn local_hardware_id(&self) -> Option<i32> {
        None
    }

    /// Attributes of the device. Asked once.
    fn attributes(&self) -> Vec<(String, Value)> {
        Vec::new()
    }

    /// Returns its memories, the one that arrays are put into by default first; at least one. Asked
    /// once.
    ///
    /// # Errors
    /// Whatever keeps the device from them; there is no client then.
    fn memories(&self) -> Result<Vec<Self::Memory>>;

    /// Statistics of its memory, if it keeps any.
    fn memory_stats(&self) -> Option<AllocatorStats> {
        None
    }
}

/// A memory of a device.
pub trait Memory: Send + Sync + 'static {
    /// Buffer in this memory.
    type Buffer: Buffer;

    /// Returns the kind of the memory. Frameworks know `device`, `pinned_host` and `unpinned_host`.
    fn kind(&self) -> &str;

    /// Returns true if the host reads and writes it as its own.
    fn is_host(&self) -> bool {
        false
    }

    /// Allocates `size` bytes, which may be 0. Their contents may be anything.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not that much left.
    fn allocate(&self, size: u64) -> Result<Self::Buffer>;
}

/// Bytes in a memory. Dropping it gives them back.
///
/// Its calls return when the work is done: the SDK calls them on threads of its own, and so makes
/// asynchronous what they do. It keeps order: nothing is read before what was to be written is, and
/// what was read is not written any more. They lie inside of the buffer, and have at least one
/// byte.
pub trait Buffer: Send + Sync + 'static {
    /// Copies bytes of the host to `offset` and behind.
    ///
    /// # Errors
    /// Whatever keeps the device from it; the array has failed then.
    fn write(&self, offset: u64, source: &HostSource) -> Result<()>;

    /// Copies bytes from `offset` on to the host.
    ///
    /// # Errors
    /// Whatever keeps the device from it.
    fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()>;

    /// Copies all of another buffer of the same size, in whichever memory of the plug-in, over this
    /// one. `false` if the device cannot do it by itself, as by default; it is done through memory
    /// of the host then.
    ///
    /// # Errors
    /// Whatever keeps the device from it.
    fn copy_from(&self, source: &Self) -> Result<bool> {
        let _ = source;
        Ok(false)
    }

    /// Address of the first byte, in the device's own terms, for users who know them.
    fn address(&self) -> Option<NonNull<c_void>> {
        None
    }
}
