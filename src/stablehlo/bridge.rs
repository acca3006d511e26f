//! Whoever else can write a program for an older reader.

use std::fmt;

use super::StableHloVersion;

/// Writes programs for older readers by means of its own: a framework that is at least as new as
/// the program, in a process of its own.
///
/// Implementations are called from several threads at a time, with bytes of strangers. They bound
/// the time that they take.
pub trait ProgramBridge: fmt::Debug + Send + Sync {
    /// The program, which is of `version`, for a reader of `target`.
    ///
    /// # Errors
    /// In words for whoever sent the program: what was found, what was expected, what to do.
    fn write_for(
        &self,
        program: &[u8],
        version: StableHloVersion,
        target: StableHloVersion,
    ) -> Result<Vec<u8>, String>;
}
