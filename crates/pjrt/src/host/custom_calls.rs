//! Functions that programs call by name, given to a plug-in from a library of somebody else's.

use std::path::Path;

use serdes_abi::pjrt::args::PJRT_FFI_Register_Handler_Args;

use super::{border, plugin::PjrtPlugin};
use crate::PjrtError;

impl PjrtPlugin {
    /// Gives the plug-in a function that programs call by `target`: the one of the name `symbol` in
    /// the library at `path`, which is a handler of XLA's foreign function interface. `platform` is
    /// XLA's name of the platform that it is for, such as `Host`. The library stays loaded.
    ///
    /// The library is native code, which is trusted as a plug-in is.
    ///
    /// # Errors
    /// [`PjrtError::NotLoadable`] if the library cannot be loaded, or does not export the function;
    /// [`PjrtError::NotInExtensions`] before 0.77, or if the plug-in takes no functions;
    /// [`PjrtError::Status`] as the plug-in's, such as that another function has the name.
    pub fn register_custom_call(
        &self,
        target: &str,
        platform: &str,
        path: impl AsRef<Path>,
        symbol: &str,
    ) -> Result<(), PjrtError> {
        // A plug-in without the extension needs no library to be loaded.
        self.table().require_extension::<PJRT_FFI_Register_Handler_Args>()?;
        let handler = border::symbol(path.as_ref(), symbol)?;
        // SAFETY: the names are there for the call; the function belongs to a library that is never
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
