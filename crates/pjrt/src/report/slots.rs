//! The table of a plug-in in memory: every function by name, including those that the host never
//! calls, and calls with arguments of any size.

use std::{ffi::c_void, path::Path};

use serdes_abi::pjrt::{self, Minor, PADDING, args::PJRT_Error};
use serdes_library_file::enter;

use crate::{PjrtError, PjrtPlugin, host::border};

#[cfg(feature = "conformance")]
mod checked_calls;

/// A function of the table: it takes one struct, and returns an error or NULL.
type RawFunction = unsafe extern "C" fn(*mut c_void) -> *mut PJRT_Error;

/// Functions without a result, which cannot refuse a size.
const WITHOUT_ANSWER: [&str; 2] = ["PJRT_Error_Destroy", "PJRT_Error_Message"];

/// The functions that every host needs to wait for events, read errors and move arrays.
const REQUIRED: [&str; 14] = [
    "PJRT_Error_Destroy",
    "PJRT_Error_Message",
    "PJRT_Error_GetCode",
    "PJRT_Event_Destroy",
    "PJRT_Event_Await",
    "PJRT_Client_Create",
    "PJRT_Client_Destroy",
    "PJRT_Client_PlatformName",
    "PJRT_Client_AddressableDevices",
    "PJRT_Client_BufferFromHostBuffer",
    "PJRT_Buffer_ElementType",
    "PJRT_Buffer_Dimensions",
    "PJRT_Buffer_ToHostBuffer",
    "PJRT_Buffer_Destroy",
];

/// A plug-in's table.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    plugin: PjrtPlugin,
    address: *const u8,
    /// The number of readable bytes.
    readable: usize,
}

// SAFETY: the table is memory of a library that is never unloaded, and is not written after
// `GetPjrtApi` has returned.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

/// The arguments of a call as bytes, which are zero unless set.
#[derive(Debug)]
pub(crate) struct CallRecord {
    words: Vec<u64>,
}

impl CallRecord {
    /// Creates a record for arguments of `bytes` bytes, with space for the fields that a newer
    /// plug-in may read after them.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { words: vec![0; (bytes + PADDING).div_ceil(size_of::<u64>())] }
    }
}

impl Slots {
    /// Returns the table of the plug-in that was loaded from `path`, by calling its `GetPjrtApi`
    /// again.
    ///
    /// # Errors
    /// As [`PjrtPlugin::load`]; [`PjrtError::BadTable`] if it is NULL now.
    pub(crate) fn of(path: &Path, plugin: &PjrtPlugin) -> Result<Self, PjrtError> {
        let address = border::open(path)?;
        if address.is_null() || !address.addr().is_multiple_of(align_of::<usize>()) {
            return Err(PjrtError::BadTable {
                what: "its address when it is asked for again",
                found: format!("{address:?}"),
                expected: "the same table",
            });
        }
        let known = pjrt::table_size(plugin.minor()).filter(|_| plugin.minor().is_known());
        let declared = plugin.struct_size();
        let readable = known.map_or(declared, |known| match declared == known.declared {
            true => known.size_of,
            false => declared,
        });
        Ok(Self { plugin: plugin.clone(), address, readable })
    }

    fn minor(&self) -> Minor {
        self.plugin.minor()
    }

    /// Returns the function `name`, if the table has it.
    fn function(&self, name: &str) -> Option<RawFunction> {
        let offset = pjrt::function(name)?.offset(self.minor())?;
        if offset + size_of::<usize>() > self.readable {
            return None;
        }
        // SAFETY: the slot ends inside the table, whose slots are aligned like the table; it is
        // NULL or a function of this type, and NULL is `None`.
        unsafe { self.address.add(offset).cast::<Option<RawFunction>>().read() }
    }

    /// Returns the functions of the table that have a result, by name, with the size of their
    /// arguments.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let there = pjrt::functions().iter().filter(|found| self.function(found.name).is_some());
        there.filter(|found| !WITHOUT_ANSWER.contains(&found.name)).filter_map(|found| {
            let arguments = pjrt::structure(&format!("{}_Args", found.name))?;
            Some((found.name, arguments.size(self.minor())?.declared))
        })
    }

    /// Returns the functions that tables of this version have and this one does not.
    fn missing(&self) -> impl Iterator<Item = &'static str> {
        let of_its_day =
            pjrt::functions().iter().filter(|found| found.offset(self.minor()).is_some());
        of_its_day.map(|found| found.name).filter(|name| self.function(name).is_none())
    }

    /// Returns the missing functions that every host needs.
    pub(crate) fn missing_required(&self) -> Vec<&'static str> {
        self.missing().filter(|name| REQUIRED.contains(name)).collect()
    }

    /// Returns the other missing functions.
    pub(crate) fn missing_optional(&self) -> Vec<&'static str> {
        self.missing().filter(|name| !REQUIRED.contains(name)).collect()
    }

    /// Calls a function, declaring `struct_size` bytes.
    ///
    /// # Errors
    /// The plug-in's; [`PjrtError::Missing`] if it does not have the function.
    ///
    /// # Safety
    /// The arguments are as the C API requires for the call, or the declared size is one that every
    /// plug-in refuses before it reads them.
    pub(crate) unsafe fn call(
        &self,
        name: &'static &'static str,
        arguments: &mut CallRecord,
        struct_size: usize,
    ) -> Result<(), PjrtError> {
        let minor = self.minor();
        let Some(function) = self.function(name) else {
            return Err(PjrtError::Missing { function: name, since: minor, minor });
        };
        let error = {
            let _call = enter(name);
            let address: *mut c_void = arguments.words.as_mut_ptr().cast();
            // SAFETY: every struct of arguments begins with its size, and the record has space for
            // it; the rest is the caller's promise.
            unsafe {
                address.cast::<usize>().write(struct_size);
                function(address)
            }
        };
        self.plugin.taken(name, error)
    }
}
