//! Opening the shared library of a plug-in. It stays open: plug-ins keep threads and handlers that
//! run until the process ends.

use std::path::Path;

use crate::{
    pjrt::{PjrtError, inspect::ENTRY},
    stream_executor::elf,
};

/// Fails unless the file is a shared library for this machine that exports `GetPjrtApi`.
fn check(path: &Path) -> Result<(), PjrtError> {
    let found = elf::inspect(path).map_err(|error| PjrtError::of_elf(path, error))?;
    let refuse = |reason: String| Err(PjrtError::NotLoadable { path: path.to_owned(), reason });
    if !found.is_for_this_machine() {
        return refuse(format!(
            "it is for {}, and this machine is {}; use a plug-in built for this machine",
            found.architecture,
            std::env::consts::ARCH
        ));
    }
    if !found.shared {
        return refuse("it is an ELF file but no shared library; build it with -shared".to_owned());
    }
    if found.exports.iter().any(|name| name == ENTRY) {
        Ok(())
    } else {
        Err(PjrtError::NotAPlugin { path: path.to_owned() })
    }
}

/// Loads the library at `path` for good, and gives the address of its table.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(in crate::pjrt) fn open(path: &Path) -> Result<*const u8, PjrtError> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    use crate::stream_executor::enter;

    check(path)?;
    let refuse = |reason: String| PjrtError::NotLoadable { path: path.to_owned(), reason };
    // dlopen looks for a name without a slash in the system's folders, not here.
    let absolute = std::path::absolute(path)
        .map_err(|error| refuse(format!("{error}; check the current folder")))?;
    // Local, so that two plug-ins that export the same names do not bind to each other.
    let library = {
        let _call = enter(&"dlopen");
        // SAFETY: this runs the library's initialisers, which is what loading a plug-in means; the
        // caller asked for it.
        unsafe { Library::open(Some(&absolute), RTLD_NOW | RTLD_LOCAL) }
    };
    let library = library.map_err(|error| {
        let said = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        refuse(format!("{said}; install what is missing, or use a plug-in built for this machine"))
    })?;
    // Never closed, whatever comes of it.
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: the C API gives the symbol of this name this type; `check` saw that it is exported.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const u8>(b"GetPjrtApi\0") };
    let entry = entry.map_err(|_| PjrtError::NotAPlugin { path: path.to_owned() })?;
    let _call = enter(&"GetPjrtApi");
    // SAFETY: the function takes nothing, and answers the address of a table that lives as long as
    // the library, which is not closed.
    Ok(unsafe { entry() })
}

/// Loading is not supported here.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(in crate::pjrt) fn open(path: &Path) -> Result<*const u8, PjrtError> {
    check(path)?;
    Err(PjrtError::UnsupportedTarget { target: std::env::consts::OS })
}
