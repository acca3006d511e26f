//! Opens the shared library of a plug-in, and registers libraries and platforms in use.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::error::Error;

/// The identity of a library file by device and inode, so that links and other spellings of a path
/// are the same file.
type FileId = (u64, u64);

/// The libraries and platforms of this process.
#[derive(Debug)]
struct Registered {
    files: BTreeSet<FileId>,
    platforms: BTreeSet<String>,
}

static REGISTERED: Mutex<Registered> =
    Mutex::new(Registered { files: BTreeSet::new(), platforms: BTreeSet::new() });

/// Holds a library's file as registered until it is dropped.
#[derive(Debug)]
pub(crate) struct FileClaim(FileId);

impl FileClaim {
    /// Registers the file at `path`.
    pub(crate) fn new(path: &Path) -> Result<Self, Error> {
        let id = file_id(path)?;
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        if registered.files.insert(id) {
            Ok(Self(id))
        } else {
            Err(Error::AlreadyRegistered { what: "the library", name: path.display().to_string() })
        }
    }
}

impl Drop for FileClaim {
    fn drop(&mut self) {
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).files.remove(&self.0);
    }
}

/// Holds a platform's name as registered until it is dropped.
#[derive(Debug)]
pub(crate) struct PlatformClaim(String);

impl PlatformClaim {
    /// Registers the name.
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        if registered.platforms.insert(name.to_owned()) {
            Ok(Self(name.to_owned()))
        } else {
            Err(Error::AlreadyRegistered { what: "the platform", name: name.to_owned() })
        }
    }
}

impl Drop for PlatformClaim {
    fn drop(&mut self) {
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).platforms.remove(&self.0);
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> Result<FileId, Error> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Result<FileId, Error> {
    std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok((0, 0))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::NotLoadable { path: path.to_owned(), reason: format!("{error}; check the path") }
}

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod system {
    use std::path::Path;

    use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
    use serdes_abi::SE_InitPluginFn;

    use crate::{
        border::{enter, serve_status_functions},
        error::Error,
        load::elf,
    };

    /// An open library. Closed when it is dropped.
    #[derive(Debug)]
    pub(crate) struct Library {
        /// Set until the library is dropped.
        handle: Option<Handle>,
    }

    impl Drop for Library {
        fn drop(&mut self) {
            // This runs the library's own functions, which may not return.
            let _call = enter(&"dlclose");
            drop(self.handle.take());
        }
    }

    impl Library {
        /// Opens the library after inspecting its file: no code of a file that cannot be a plug-in
        /// is run.
        pub(crate) fn open(path: &Path) -> Result<Self, Error> {
            elf::check_is_plugin(path)?;
            serve_status_functions()?;
            // dlopen searches the system's folders, not the current one, for a name without a
            // slash.
            let absolute = std::path::absolute(path)
                .map_err(|error| Error::System { doing: "find the current folder", error })?;
            // RTLD_LOCAL, so that two plug-ins that export the same names do not bind to each
            // other.
            let handle = {
                let _call = enter(&"dlopen");
                // SAFETY: this runs the library's initialisers, which is what loading a plug-in
                // means; the caller asked for it.
                unsafe { Handle::open(Some(&absolute), RTLD_NOW | RTLD_LOCAL) }
            };
            let handle = handle.map_err(|error| {
                let said = source(&error);
                Error::NotLoadable {
                    path: path.to_owned(),
                    reason: format!("{said}; {}", remedy(&said)),
                }
            })?;
            Ok(Self { handle: Some(handle) })
        }

        /// Returns `SE_InitPlugin` of the library.
        pub(crate) fn entry(&self, path: &Path) -> Result<SE_InitPluginFn, Error> {
            let symbol = self.handle.as_ref().and_then(|handle| {
                // SAFETY: the C API gives the symbol of this name this type.
                unsafe { handle.get::<SE_InitPluginFn>(b"SE_InitPlugin\0") }.ok()
            });
            symbol
                .map(|symbol| *symbol)
                .ok_or_else(|| Error::NotAPlugin { path: path.to_owned(), hint: String::new() })
        }
    }

    /// Returns the remedy for a message of the dynamic loader.
    fn remedy(said: &str) -> &'static str {
        if said.contains("static TLS block") {
            "its thread-local variables need room that is set apart when a program starts: start this one with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=BYTES, or with the plug-in in LD_PRELOAD"
        } else {
            "install what is missing, or use a plug-in built for this machine"
        }
    }

    /// Returns the message of the dynamic loader, without the wrapper's prefix.
    fn source(error: &libloading::Error) -> String {
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod system {
    use std::path::Path;

    use serdes_abi::SE_InitPluginFn;

    use crate::error::Error;

    /// Cannot be constructed: loading is not supported on this platform.
    #[derive(Debug)]
    pub(crate) enum Library {}

    impl Library {
        pub(crate) fn open(_path: &Path) -> Result<Self, Error> {
            Err(Error::UnsupportedTarget { target: std::env::consts::OS })
        }

        pub(crate) fn entry(&self, _path: &Path) -> Result<SE_InitPluginFn, Error> {
            match *self {}
        }
    }
}

pub(crate) use system::Library;
