//! Registers functions from third-party libraries with a plug-in, for programs to call by name.

use std::path::Path;

use serdes_abi::pjrt::args::PJRT_FFI_Register_Handler_Args;

use super::{border, plugin::PjrtPlugin};
use crate::PjrtError;

impl PjrtPlugin {
    /// Registers a function that programs call by `target`: the function `symbol` in the library at
    /// `path`, which is a handler of XLA's foreign function interface. `platform` is XLA's name of
    /// the platform that the function is for, such as `Host`. The library is never unloaded.
    ///
    /// The library is native code, which is trusted like a plug-in.
    ///
    /// # Errors
    /// [`PjrtError::NotLoadable`] if the library cannot be loaded, or does not export the function;
    /// [`PjrtError::NotInExtensions`] before 0.77, or if the plug-in does not support it;
    /// [`PjrtError::Status`] from the plug-in, for example if the name is taken.
    pub fn register_custom_call(
        &self,
        target: &str,
        platform: &str,
        path: impl AsRef<Path>,
        symbol: &str,
    ) -> Result<(), PjrtError> {
        // If the plug-in lacks the extension, no library needs to be loaded.
        self.table().require_extension::<PJRT_FFI_Register_Handler_Args>()?;
        let handler = border::symbol(path.as_ref(), symbol)?;
        // SAFETY: the names are valid for the call; the function belongs to a library that is never
        // closed.
        unsafe {
            self.table().ask_extension(|call: &mut PJRT_FFI_Register_Handler_Args| {
                call.target_name = target.as_ptr().cast();
                call.target_name_size = target.len();
                call.handler = handler.cast_mut();
                call.platform_name = platform.as_ptr().cast();
                call.platform_name_size = platform.len();
            })
        }?;
        Ok(())
    }
}
