//! Shardings of a program's parameters and outputs, from the extension of shardings.

use std::ffi::c_char;

use serdes_abi::pjrt::args::*;

use super::executable::Executable;
use crate::{
    PjrtError,
    host::border::{bytes, list},
};

impl Executable {
    /// Returns the shardings of the parameters, each as a message `xla.OpSharding`; `None` if the
    /// program does not have them.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::NotInExtensions`] before 0.91, or if it does not have the
    /// extension of shardings; [`PjrtError::BadAnswer`].
    pub fn parameter_shardings(&self) -> Result<Option<Vec<Vec<u8>>>, PjrtError> {
        const CALL: &str = "PJRT_Shardings_PJRT_Executable_ParameterShardings";
        let raw = self.raw();
        let ask = |call: &mut PJRT_Shardings_PJRT_Executable_ParameterShardings_Args| {
            call.executable = raw;
        };
        // SAFETY: the executable is alive.
        let found = unsafe { self.table().ask_extension(ask) }?;
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        unsafe { messages(CALL, found.shardings, found.sharding_sizes, found.num_parameters) }
    }

    /// Returns the shardings of the outputs, each as a message `xla.OpSharding`; `None` if the
    /// program does not have them.
    ///
    /// # Errors
    /// As for [`Self::parameter_shardings`]; also if their number differs from that of the outputs.
    pub fn output_shardings(&self) -> Result<Option<Vec<Vec<u8>>>, PjrtError> {
        const CALL: &str = "PJRT_Shardings_PJRT_Executable_OutputShardings";
        let raw = self.raw();
        let ask = |call: &mut PJRT_Shardings_PJRT_Executable_OutputShardings_Args| {
            call.executable = raw;
        };
        // SAFETY: the executable is alive.
        let found = unsafe { self.table().ask_extension(ask) }?;
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        let messages =
            unsafe { messages(CALL, found.shardings, found.sharding_sizes, found.num_outputs) }?;
        if let Some(messages) = &messages {
            self.check_count(CALL, messages.len())?;
        }
        Ok(messages)
    }
}

/// # Safety
/// `start` and `sizes` point to `count` entries, the messages and their lengths in bytes, or either
/// is NULL.
unsafe fn messages(
    call: &'static str,
    start: *const *const c_char,
    sizes: *const usize,
    count: usize,
) -> Result<Option<Vec<Vec<u8>>>, PjrtError> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    let (starts, sizes) =
        unsafe { (list(call, "its list", start, count)?, list(call, "its list", sizes, count)?) };
    let messages = starts.iter().zip(sizes).map(|(&start, &size)| {
        // SAFETY: guaranteed by the caller.
        unsafe { bytes(call, "a sharding", start, size) }.map(<[u8]>::to_vec)
    });
    messages.collect::<Result<_, _>>().map(Some)
}
