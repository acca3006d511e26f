//! A loaded plug-in: its version and its attributes.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use serdes_abi::pjrt::{
    Minor, OLDEST_FRAMEWORK_ATTRIBUTE,
    args::{PJRT_Error, PJRT_Plugin_Attributes_Args, PJRT_Plugin_Initialize_Args},
};

use super::{
    border::{self, Extension, Table},
    options::{self, Value},
};
use crate::{PjrtError, PluginVersion, SizeRule};

/// A PJRT plug-in. It stays loaded until the process ends.
#[derive(Clone, Debug)]
pub struct PjrtPlugin(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    table: Table,
    /// `None` if the plug-in has no function for them.
    attributes: Option<Vec<(String, Value)>>,
}

/// The identity of a file by device and inode, so that links are the same file.
type FileId = (u64, u64);

/// The plug-ins of this process; each is initialised once.
static LOADED: Mutex<Option<HashMap<FileId, PjrtPlugin>>> = Mutex::new(None);

impl PjrtPlugin {
    /// Loads the library at `path` and initialises its plug-in. A library that is already loaded is
    /// not loaded again.
    ///
    /// # Errors
    /// [`PjrtError::NotLoadable`] and [`PjrtError::NotAPlugin`] for an unsuitable file, of which
    /// nothing has been run then. [`PjrtError::BadTable`], [`PjrtError::OtherMajor`],
    /// [`PjrtError::TooOld`] for its table, [`PjrtError::Status`] if it fails to initialise.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PjrtError> {
        let path = path.as_ref();
        let id = file_id(path)?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_default();
        if let Some(plugin) = loaded.get(&id) {
            return Ok(plugin.clone());
        }
        // SAFETY: `GetPjrtApi` returned the address, and `open` never closes the library.
        let table = unsafe { Table::read(border::open(path)?) }?;
        initialise(&table)?;
        let attributes = attributes(&table)?;
        let plugin = Self(Arc::new(Loaded { table, attributes }));
        loaded.insert(id, plugin.clone());
        Ok(plugin)
    }

    pub(super) fn table(&self) -> &Table {
        &self.0.table
    }

    /// Takes ownership of an error that a call to the plug-in outside this module returned; NULL is
    /// no error.
    pub(crate) fn taken(
        &self,
        call: &'static str,
        error: *mut PJRT_Error,
    ) -> Result<(), PjrtError> {
        self.0.table.taken(call, error)
    }

    /// Returns the version of the interface that the plug-in was built with.
    #[must_use]
    pub fn minor(&self) -> Minor {
        self.0.table.minor()
    }

    /// Returns the size that its table declares, in bytes.
    #[must_use]
    pub fn struct_size(&self) -> usize {
        self.0.table.struct_size()
    }

    /// Returns its extensions, in the order of the chain.
    #[must_use]
    pub fn extensions(&self) -> &[Extension] {
        self.0.table.extensions()
    }

    /// Returns irregularities of its table, for people.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        self.0.table.warnings()
    }

    /// Returns the functions that this host calls and the plug-in does not have.
    pub fn missing_functions(&self) -> impl Iterator<Item = &'static str> {
        self.0.table.missing()
    }

    /// Returns true if the plug-in has the function `name` (`PJRT_Buffer_CopyRawToHost`), for
    /// functions that this host calls. The function may still return UNIMPLEMENTED.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.0.table.has(name)
    }

    /// Returns the attributes of the plug-in, such as `stablehlo_current_version`; empty if it has
    /// none.
    #[must_use]
    pub fn attributes(&self) -> &[(String, Value)] {
        self.0.attributes.as_deref().unwrap_or_default()
    }

    /// Returns true if the plug-in has the function for its attributes, which may return none.
    #[must_use]
    pub fn answers_attributes(&self) -> bool {
        self.0.attributes.is_some()
    }

    /// Returns its version and size rules, for [`Framework::fit`](crate::Framework::fit).
    #[must_use]
    pub fn version(&self) -> PluginVersion {
        let mut version = PluginVersion::new(self.minor()).without(self.missing_functions());
        let mut said = self.attributes().iter();
        if let Some((_, Value::Integer(oldest))) =
            said.find(|(found, _)| found == OLDEST_FRAMEWORK_ATTRIBUTE)
            && let Ok(oldest) = u32::try_from(*oldest)
        {
            version = version.with_size_rule(SizeRule::Since(Minor::new(oldest)));
        }
        let number = |name: &str| {
            let (_, value) = self.attributes().iter().find(|(found, _)| found == name)?;
            let Value::Integers(numbers) = value else { return None };
            let numbers = numbers.iter().map(|&number| u32::try_from(number).ok());
            numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
        };
        match (number("stablehlo_minimum_version"), number("stablehlo_current_version")) {
            (Some(minimum), Some(current)) => version.with_stablehlo(minimum, current),
            _ => version,
        }
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> Result<FileId, PjrtError> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Result<FileId, PjrtError> {
    std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok((0, 0))
}

fn unreadable(path: &Path, error: &std::io::Error) -> PjrtError {
    PjrtError::NotLoadable { path: path.to_owned(), reason: format!("{error}; check the path") }
}

/// Initialises the plug-in, if it has a function for that.
fn initialise(table: &Table) -> Result<(), PjrtError> {
    // SAFETY: the call has no inputs.
    match unsafe { table.ask(|_: &mut PJRT_Plugin_Initialize_Args| ()) } {
        Err(error) if !error.is_unsupported() => Err(error),
        _ => Ok(()),
    }
}

/// Returns the plug-in's attributes; `None` if it has no function for them.
fn attributes(table: &Table) -> Result<Option<Vec<(String, Value)>>, PjrtError> {
    // SAFETY: the call has no inputs.
    let found = match unsafe { table.ask(|_: &mut PJRT_Plugin_Attributes_Args| ()) } {
        Err(error) if error.is_unsupported() => return Ok(None),
        found => found?,
    };
    let (start, count) = (found.attributes, found.num_attributes);
    // SAFETY: the plug-in declares this number of entries; they belong to it, and it is never
    // unloaded.
    unsafe { options::attributes("PJRT_Plugin_Attributes", start, count) }.map(Some)
}
