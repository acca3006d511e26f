//! The interface of programs: the code that a host has compiled, and the executable that an author
//! makes of it.

use super::Shape;
use crate::{Result, Status};

/// A program that a host passes for compilation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Program<'a> {
    /// The format of the code: `mlir` for StableHLO, which frameworks write as a portable artifact
    /// of the version in the plug-in's attribute `stablehlo_current_version`.
    pub format: &'a str,
    /// The bytes of the code.
    pub code: &'a [u8],
}

impl<'a> Program<'a> {
    /// Creates a program in this format.
    #[must_use]
    pub fn new(format: &'a str, code: &'a [u8]) -> Self {
        Self { format, code }
    }
}

/// A compiled program, for buffers of the type `B`.
///
/// The SDK queries shapes and names once. It checks the arguments of a run, allocates the results
/// in the default memory of the device, and calls [`execute`](Self::execute) on a thread of the
/// device when all arguments are written. Runs on one device never overlap; those on several do.
pub trait Executable<B>: Send + Sync + 'static {
    /// Returns the name of the program.
    fn name(&self) -> &str;

    /// Returns the shapes of the arguments of one device.
    fn parameters(&self) -> &[Shape];

    /// Returns the shapes of the results of one device.
    fn outputs(&self) -> &[Shape];

    /// Runs the program, and returns when the results are written.
    ///
    /// # Errors
    /// Any error that prevents it; the results then have the same failure.
    fn execute(&self, launch: &Launch<'_, B>) -> Result<()>;

    /// Returns a text that is equal for programs that compute the same.
    fn fingerprint(&self) -> Option<&str> {
        None
    }

    /// Returns the memory that the program takes. The default counts only arguments and results.
    fn memory_stats(&self) -> ExecutableStats {
        ExecutableStats::default()
    }

    /// Returns the program as bytes, for [`Client::load`](super::Client::load) of the same build.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` by default.
    fn serialize(&self) -> Result<Vec<u8>> {
        Err(Status::unimplemented("this plug-in writes no compiled programs"))
    }
}

/// One run of a program on one device.
#[derive(Debug)]
#[non_exhaustive]
pub struct Launch<'a, B> {
    /// The arguments, each of the size of its shape. The same buffer may occur twice.
    pub arguments: &'a [&'a B],
    /// The results, to be written. None of them is an argument.
    pub outputs: &'a [&'a B],
    /// The index of the device in the client.
    pub device: usize,
    /// The index of the device in [`CompileOptions::devices`](super::CompileOptions::devices).
    pub place: usize,
    /// The number of the launch, the same on all of its devices.
    pub launch_id: i32,
}

impl<'a, B> Launch<'a, B> {
    /// Creates a run on the first device.
    #[must_use]
    pub fn new(arguments: &'a [&'a B], outputs: &'a [&'a B]) -> Self {
        Self { arguments, outputs, device: 0, place: 0, launch_id: 0 }
    }
}

/// The memory that a program takes in addition to arguments and results, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutableStats {
    /// The program itself.
    pub code: u64,
    /// The largest amount of temporary memory of a run.
    pub temporary: u64,
}
