//! Inspects the ELF file of a plug-in, without loading or running it.

use std::path::Path;

use serdes_library_file::elf::PJRT_ENTRY;
pub(super) use serdes_library_file::elf::is_of_tensorflow;
pub use serdes_library_file::elf::{Api, Inspection};

use crate::error::Error;

/// Inspects the file at `path`.
///
/// # Errors
/// [`Error::NotLoadable`] if it cannot be read, is not an ELF file, or is damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, Error> {
    Ok(serdes_library_file::elf::inspect(path)?)
}

/// Fails unless the file is a shared library for this machine that exports `SE_InitPlugin`.
pub(crate) fn check_is_plugin(path: &Path) -> Result<(), Error> {
    let inspection = inspect(path)?;
    let refuse = |reason: String| Err(Error::NotLoadable { path: path.to_owned(), reason });
    if !inspection.is_for_this_machine() {
        return refuse(format!(
            "it is for {}, and this machine is {}; use a plug-in built for this machine",
            inspection.architecture,
            std::env::consts::ARCH
        ));
    }
    if !inspection.shared {
        return refuse("it is an ELF file but no shared library; build it with -shared".to_owned());
    }
    if inspection.is_plugin() {
        return Ok(());
    }
    if inspection.entry_is_data {
        let hint = " as a function (it is a variable)".to_owned();
        return Err(Error::NotAPlugin { path: path.to_owned(), hint });
    }
    let others: Vec<&str> = inspection
        .exports
        .iter()
        .map(String::as_str)
        .filter(|name| OTHER_ENTRIES.contains(name))
        .collect();
    let hint = if others.contains(&PJRT_ENTRY) {
        format!(" (it exports {PJRT_ENTRY}: a plug-in of the PJRT interface, which is another one)")
    } else if others.is_empty() {
        String::new()
    } else {
        format!(
            " (it exports {}, which extends a system without adding a device)",
            others.join(", ")
        )
    };
    Err(Error::NotAPlugin { path: path.to_owned(), hint })
}

/// The entry points of other kinds of plug-ins, which users confuse with device plug-ins.
const OTHER_ENTRIES: [&str; 6] = [
    "TF_InitGraph",
    "TF_InitKernel",
    "TF_InitProfiler",
    "TF_InitPlugin",
    "TFNPD_InitPlugin",
    PJRT_ENTRY,
];
