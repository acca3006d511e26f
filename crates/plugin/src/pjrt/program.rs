//! The interface of programs: what a host asks to be compiled, and what an author makes of it.

use super::Shape;
use crate::{Result, Status};

/// A program as a host hands it over.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Program<'a> {
    /// Format of the code: `mlir` for StableHLO, which frameworks write as a portable artifact of
    /// the version that the attribute `stablehlo_current_version` of the plug-in names.
    pub format: &'a str,
    /// Bytes of the code.
    pub code: &'a [u8],
}

impl<'a> Program<'a> {
    /// Creates a program in that format.
    #[must_use]
    pub fn new(format: &'a str, code: &'a [u8]) -> Self {
        Self { format, code }
    }
}

/// A compiled program, for buffers of the type `B`.
///
/// The SDK asks for shapes and names once. It checks the arguments of a run, allocates the results
/// in the default memory of the device, and calls [`execute`](Self::execute) on a thread of the
/// device when all arguments are there: runs of one device never overlap, those of several do.
pub trait Executable<B>: Send + Sync + 'static {
    /// Returns the name of the program.
    fn name(&self) -> &str;

    /// Shapes of the arguments of one device.
    fn parameters(&self) -> &[Shape];

    /// Shapes of the results of one device.
    fn outputs(&self) -> &[Shape];

    /// Runs the program, and returns when the results are written.
    ///
    /// # Errors
    /// Whatever keeps the device from it; the results have failed then, and say why.
    fn execute(&self, launch: &Launch<'_, B>) -> Result<()>;

    /// Returns the text that is the same for programs that compute the same.
    fn fingerprint(&self) -> Option<&str> {
        None
    }

    /// Returns the memory that the program takes. By default arguments and results alone.
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
    /// The arguments, each as large as its shape says. The same buffer may be there twice.
    pub arguments: &'a [&'a B],
    /// The results, to be written. None of them is an argument.
    pub outputs: &'a [&'a B],
    /// Place of the device among the client's.
    pub device: usize,
    /// Place of the device in [`CompileOptions::devices`](super::CompileOptions::devices).
    pub place: usize,
    /// Number of the launch, the same for all of its devices.
    pub launch_id: i32,
}

impl<'a, B> Launch<'a, B> {
    /// Creates a run on the first device.
    #[must_use]
    pub fn new(arguments: &'a [&'a B], outputs: &'a [&'a B]) -> Self {
        Self { arguments, outputs, device: 0, place: 0, launch_id: 0 }
    }
}

/// Memory that a program takes beside arguments and results, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutableStats {
    /// The program itself.
    pub code: u64,
    /// Most memory that a run takes for itself.
    pub temporary: u64,
}
