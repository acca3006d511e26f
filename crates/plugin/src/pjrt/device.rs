//! The traits that an author implements: a plug-in, its clients, their devices, the memories of
//! devices, and the buffers in memories.

use std::{ffi::c_void, ptr::NonNull};

use serdes_abi::pjrt::Minor;

use super::{CompileOptions, Executable, Options, Program, Value};
use crate::{AllocatorStats, HostSource, HostTarget, Result, Status};

/// A plug-in. The type has no values: a process has the plug-in once.
pub trait Plugin: Send + Sync + Sized + 'static {
    /// The client that [`Plugin::create_client`] creates.
    type Client: Client;

    /// The minor of the C API that the plug-in declares. See [`DEFAULT_MINOR`].
    ///
    /// It is between [`Minor::APPEND_ONLY`] and [`NEWEST_MINOR`], which is checked at compile time.
    const MINOR: Minor = DEFAULT_MINOR;

    /// Returns the attributes of the plug-in, such as `stablehlo_current_version`.
    fn attributes() -> Vec<(String, Value)> {
        Vec::new()
    }

    /// Creates a client. Several may exist at a time.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an unknown option (see [`Options::only`]), or any other error that
    /// prevents it.
    fn create_client(options: &Options) -> Result<Self::Client>;
}

/// The minor that a plug-in declares by default: that of jaxlib 0.8.0. Every framework that accepts
/// plug-ins of other minors accepts it, and it has all functions that arrays and copies need.
pub const DEFAULT_MINOR: Minor = Minor::new(80);

/// The newest minor that can be declared: the newest one with known layouts.
pub const NEWEST_MINOR: Minor = Minor::NEWEST;

/// Buffers in the memories of a client's devices.
pub type BufferOf<C> = <<<C as Client>::Device as Device>::Memory as Memory>::Buffer;

/// A program that [`Client::compile`] returned.
pub type BoxedExecutable<C> = Box<dyn Executable<BufferOf<C>>>;

/// The message of a plug-in without programs.
const NO_PROGRAMS: &str = "this plug-in holds and copies arrays; it compiles and runs no programs";

/// The devices of a plug-in, as one of its users sees them.
///
/// Hosts call all methods, of the client and its objects, from any thread at any time. A panic
/// becomes an error of the call, or of the event of the operation.
pub trait Client: Send + Sync + 'static {
    /// Its devices.
    type Device: Device;

    /// Returns the kind of the devices, such as `cpu` or `cuda`. Users find them under this name.
    fn platform_name(&self) -> &str;

    /// Returns the platform's version, as text for people.
    fn platform_version(&self) -> &str;

    /// Returns the devices, all of them of this process. Called once.
    ///
    /// # Errors
    /// Any error that prevents it; there is no client then.
    fn devices(&self) -> Result<Vec<Self::Device>>;

    /// Compiles a program. Called on the thread of the framework, which waits for it.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default; `INVALID_ARGUMENT` for an invalid program, `UNIMPLEMENTED` for a
    /// format, an operation or a number of devices that the plug-in does not support.
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

    /// Registers host memory, so that devices can access it directly.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default.
    fn map_host_memory(&self, memory: &HostTarget) -> Result<()> {
        let _ = memory;
        Err(Status::unimplemented("this plug-in maps no memory of the host"))
    }

    /// Unregisters the host memory that begins at `start`.
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

    /// Returns the kind of the device, as its vendor names it.
    fn kind(&self) -> &str;

    /// Returns its number on this machine; by default its index in the client.
    fn local_hardware_id(&self) -> Option<i32> {
        None
    }

    /// Returns the attributes of the device. Called once.
    fn attributes(&self) -> Vec<(String, Value)> {
        Vec::new()
    }

    /// Returns its memories, the default one for arrays first; at least one. Called once.
    ///
    /// # Errors
    /// Any error that prevents it; there is no client then.
    fn memories(&self) -> Result<Vec<Self::Memory>>;

    /// Returns the statistics of its memory, if it has any.
    fn memory_stats(&self) -> Option<AllocatorStats> {
        None
    }
}

/// A memory of a device.
pub trait Memory: Send + Sync + 'static {
    /// A buffer in this memory.
    type Buffer: Buffer;

    /// Returns the kind of the memory. Frameworks know `device`, `pinned_host` and `unpinned_host`.
    fn kind(&self) -> &str;

    /// Returns true if the host accesses it like its own memory.
    fn is_host(&self) -> bool {
        false
    }

    /// Allocates `size` bytes, which may be 0. Their content is unspecified.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough left.
    fn allocate(&self, size: u64) -> Result<Self::Buffer>;
}

/// Bytes in a memory, which are freed on drop.
///
/// The methods return when the work is done; the SDK makes them asynchronous by calling them on its
/// own threads. It keeps the order: no byte is read before it was written, or overwritten before it
/// was read. All ranges are inside the buffer, and have at least one byte.
pub trait Buffer: Send + Sync + 'static {
    /// Copies bytes of the host to `offset`.
    ///
    /// # Errors
    /// Any error that prevents it; the array has failed then.
    fn write(&self, offset: u64, source: &HostSource) -> Result<()>;

    /// Copies the bytes from `offset` to the host.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()>;

    /// Copies the whole of another buffer of the same size, in any memory of the plug-in, over this
    /// one. Returns `false` if the device cannot do it directly, which is the default; the SDK then
    /// copies through host memory.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn copy_from(&self, source: &Self) -> Result<bool> {
        let _ = source;
        Ok(false)
    }

    /// Returns the address of the first byte on the device, for users who know its address space.
    fn address(&self) -> Option<NonNull<c_void>> {
        None
    }
}
