//! The table of functions that `GetPjrtApi` returns.

use std::{
    any::TypeId,
    collections::HashMap,
    ffi::c_int,
    ptr,
    sync::{Mutex, OnceLock, PoisonError},
};

use serdes_abi::pjrt::{self, Minor, args::*};

use super::{
    NamedValues, arrays,
    calls::{Entry, silent_entry},
    clients, devices, error_functions, events, layouts, programs,
    refusals::{FIRST_SLOT, REFUSALS, SLOTS},
    topologies, transfers,
};
use crate::{
    Result,
    pjrt::{NEWEST_MINOR, Plugin, Value},
};

/// The memory layout of the table, as long as the newest one. Functions that the plug-in's minor
/// does not have are NULL, and beyond its declared size.
#[repr(C)]
struct Api {
    struct_size: usize,
    extension_start: *const layouts::Extension,
    version: Version,
    functions: [*const (); SLOTS],
}

#[repr(C)]
struct Version {
    struct_size: usize,
    extension_start: *const (),
    major: c_int,
    minor: c_int,
}

const _: () = {
    assert!(std::mem::offset_of!(Api, functions) == FIRST_SLOT);
    assert!(std::mem::offset_of!(Api, version) == 16);
    assert!(std::mem::offset_of!(Version, major) == 16);
    assert!(std::mem::offset_of!(Version, minor) == 20);
};

// SAFETY: it contains addresses of functions and of an extension that is never freed, and is never
// written.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// The table of a plug-in, created on the host's first request. `export_pjrt!` defines one.
pub struct ApiTable(OnceLock<(Box<layouts::Extension>, Box<Api>)>);

impl ApiTable {
    /// Creates an empty table, to be filled on first use.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the address of the plug-in's table, the result of `GetPjrtApi`. It is valid as long
    /// as the value, which should be a `static`.
    pub fn get<P: Plugin>(&self) -> *const () {
        let (_, api) = self.0.get_or_init(|| {
            let extension = Box::new(layouts::Extension::new::<P>());
            let api = Api::new::<P>(&raw const *extension);
            (extension, api)
        });
        ptr::from_ref::<Api>(api).cast()
    }
}

impl Default for ApiTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Api {
    fn new<P: Plugin>(extension_start: *const layouts::Extension) -> Box<Self> {
        let mut functions = [ptr::null(); SLOTS];
        let in_table = (const { declared::<P>() } - FIRST_SLOT) / size_of::<*const ()>();
        for (slot, refusal) in functions.iter_mut().zip(REFUSALS).take(in_table) {
            *slot = refusal as *const ();
        }
        for (name, function) in own::<P>() {
            let slot = pjrt::function(name).and_then(|function| function.slot(P::MINOR));
            if let Some(slot) = slot.and_then(|slot| functions.get_mut(slot)) {
                *slot = function;
            }
        }
        let version = Version { struct_size: 0, extension_start: ptr::null(), major: 0, minor: 0 };
        let mut api = Box::new(Self { struct_size: 0, extension_start, version, functions });
        // Each number is written by a store of a constant, as C compilers do: tools that inspect
        // the file without running it find the version by these three stores.
        let size = &raw mut api.struct_size;
        let version_size = &raw mut api.version.struct_size;
        let numbers = (&raw mut api.version.major).cast::<[c_int; 2]>();
        // SAFETY: the fields are inside `api`, which is ours; the two numbers are adjacent and
        // aligned to eight bytes (see the assertions).
        unsafe {
            size.write_volatile(const { declared::<P>() });
            version_size.write_volatile(size_of::<Version>());
            numbers.cast::<u64>().write_volatile(const { both_numbers(P::MINOR) });
        }
        api
    }
}

/// Returns the major number, which is 0, followed by the minor one.
const fn both_numbers(minor: Minor) -> u64 {
    let minor = minor.number() as u64;
    if cfg!(target_endian = "little") { minor << 32 } else { minor }
}

/// Returns the size that a plug-in declares for its table, in bytes.
const fn declared<P: Plugin>() -> usize {
    let minor = P::MINOR.number();
    assert!(
        minor >= Minor::APPEND_ONLY.number() && minor <= NEWEST_MINOR.number(),
        "Plugin::MINOR is between Minor::APPEND_ONLY and NEWEST_MINOR"
    );
    let size = match pjrt::table_size(P::MINOR) {
        Some(size) => size.declared,
        None => 0,
    };
    assert!(size > FIRST_SLOT, "every known minor has a table");
    size
}

/// Returns the functions that a plug-in of this SDK implements.
fn own<P: Plugin>() -> impl Iterator<Item = Entry> {
    let errors = [silent_entry(error_functions::destroy), silent_entry(error_functions::message)];
    let tables = [
        error_functions::entries::<P>(),
        entries::<P>(),
        events::entries::<P>(),
        clients::entries::<P>(),
        devices::entries::<P>(),
        topologies::entries::<P>(),
        arrays::entries::<P>(),
        transfers::entries::<P>(),
        programs::entries::<P>(),
    ];
    errors.into_iter().chain(tables.into_iter().flatten())
}

calls! {
    /// Does nothing: no preparation is needed.
    initialize(PJRT_Plugin_Initialize_Args: _arguments) {}

    attributes<P>(PJRT_Plugin_Attributes_Args: arguments) {
        let entries = attributes_of::<P>().entries();
        (arguments.attributes, arguments.num_attributes) = (entries.as_ptr(), entries.len());
    }
}

/// Returns the attributes of a plug-in, which are computed once. A host keeps them as long as the
/// process lives, so they are never freed.
fn attributes_of<P: Plugin>() -> &'static NamedValues {
    static ASKED: Mutex<Option<HashMap<TypeId, &'static NamedValues>>> = Mutex::new(None);
    let known = |plugin| {
        let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        asked.as_ref().and_then(|asked| asked.get(plugin).copied())
    };
    let plugin = TypeId::of::<P>();
    if let Some(known) = known(&plugin) {
        return known;
    }
    // Called outside the lock, because it is the author's code.
    let mut attributes = P::attributes();
    // Describes how `arguments` treats a framework's structs, for tools that check compatibility.
    let oldest = i64::from(Minor::OLDEST_SUPPORTED.number());
    attributes.push((pjrt::OLDEST_FRAMEWORK_ATTRIBUTE.to_owned(), Value::Integer(oldest)));
    let attributes = NamedValues::new(attributes);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = asked.get_or_insert_default();
    asked.entry(plugin).or_insert_with(|| Box::leak(Box::new(attributes)))
}
