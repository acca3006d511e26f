//! The interface to a converter outside this library.

use std::fmt;

use super::StableHloVersion;

/// A converter of programs for older readers: a framework that is at least as new as the program,
/// in its own process.
///
/// Implementations are called from several threads at a time, with untrusted bytes. They limit
/// their own run time.
pub trait ProgramBridge: fmt::Debug + Send + Sync {
    /// Converts a program of version `version` for a reader of version `target`.
    ///
    /// # Errors
    /// A message for the sender of the program: what was found, what was expected, what to do.
    fn write_for(
        &self,
        program: &[u8],
        version: StableHloVersion,
        target: StableHloVersion,
    ) -> Result<Vec<u8>, String>;
}
