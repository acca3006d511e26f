//! Opens the shared library of a plug-in. It is never closed: plug-ins keep threads and handlers
//! that run until the process ends.

use std::{ffi::c_void, path::Path};

use serdes_library_file::elf;

use crate::{PjrtError, inspect::ENTRY};

/// Fails unless the file is a shared library for this machine; returns the names that it exports.
fn check_library(path: &Path) -> Result<Vec<String>, PjrtError> {
    let found = elf::inspect(path).map_err(PjrtError::of_elf)?;
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
    Ok(found.exports)
}

/// Fails unless the file is a shared library for this machine that exports `GetPjrtApi`.
fn check(path: &Path) -> Result<(), PjrtError> {
    if check_library(path)?.iter().any(|name| name == ENTRY) {
        Ok(())
    } else {
        Err(PjrtError::NotAPlugin { path: path.to_owned() })
    }
}

/// Loads the library at `path`, which is never unloaded, and returns the address of its table.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) fn open(path: &Path) -> Result<*const u8, PjrtError> {
    use serdes_library_file::enter;

    check(path)?;
    let library = opened(path)?;
    // SAFETY: the C API defines this type for this symbol; `check` verified that it is exported.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const u8>(b"GetPjrtApi\0") };
    let entry = entry.map_err(|_| PjrtError::NotAPlugin { path: path.to_owned() })?;
    let _call = enter(&"GetPjrtApi");
    // SAFETY: the function takes no arguments, and returns the address of a table that lives as
    // long as the library, which is never closed.
    Ok(unsafe { entry() })
}

/// Loads the library at `path`, which is never unloaded, and returns the address of the named
/// function.
///
/// # Errors
/// [`PjrtError::NotLoadable`].
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(in crate::host) fn symbol(path: &Path, name: &str) -> Result<*const c_void, PjrtError> {
    let without = || PjrtError::NotLoadable {
        path: path.to_owned(),
        reason: format!("it does not export {name}; use a library that does"),
    };
    // A look-up in a library also finds the symbols of its dependencies.
    if !check_library(path)?.iter().any(|found| found == name) {
        return Err(without());
    }
    let library = opened(path)?;
    // SAFETY: only the address is used, which any symbol has.
    let found = unsafe { library.get::<*const c_void>(name.as_bytes()) };
    let address = found.map_err(|_| without())?.as_raw_ptr().cast_const();
    if address.is_null() { Err(without()) } else { Ok(address) }
}

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn opened(path: &Path) -> Result<std::mem::ManuallyDrop<libloading::os::unix::Library>, PjrtError> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    use serdes_library_file::enter;

    let refuse = |reason: String| PjrtError::NotLoadable { path: path.to_owned(), reason };
    // dlopen searches the system's folders, not the current one, for a name without a slash.
    let absolute = std::path::absolute(path)
        .map_err(|error| refuse(format!("{error}; check the current folder")))?;
    // RTLD_LOCAL, so that two plug-ins that export the same names do not bind to each other.
    let library = {
        let _call = enter(&"dlopen");
        // SAFETY: this runs the library's initialisers, which is part of loading a plug-in; the
        // caller asked for it.
        unsafe { Library::open(Some(&absolute), RTLD_NOW | RTLD_LOCAL) }
    };
    let library = library.map_err(|error| {
        let said = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        refuse(format!("{said}; install what is missing, or use a plug-in built for this machine"))
    })?;
    // Never closed, even if a later step fails.
    Ok(std::mem::ManuallyDrop::new(library))
}

/// Returns an error: loading is not supported on this platform.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(crate) fn open(path: &Path) -> Result<*const u8, PjrtError> {
    check(path)?;
    Err(PjrtError::UnsupportedTarget { target: std::env::consts::OS })
}

/// Returns an error: loading is not supported on this platform.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(in crate::host) fn symbol(path: &Path, _name: &str) -> Result<*const c_void, PjrtError> {
    check_library(path)?;
    Err(PjrtError::UnsupportedTarget { target: std::env::consts::OS })
}
