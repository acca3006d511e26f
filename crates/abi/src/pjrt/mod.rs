//! The memory layout of the PJRT C API, minor by minor.
//!
//! The interface has one symbol, `GetPjrtApi`, which returns a table of functions. Its major number
//! is 0 in every revision; each minor adds a function, a field, a value of an enumeration or an
//! extension. Each call takes one struct that declares its own size, and a plug-in refuses a struct
//! shorter than the one it was built with. A host that calls a plug-in of another day must know the
//! size of every struct on that day, and the slots of its table: this module has both.
//!
//! ```
//! use serdes_abi::pjrt::{Minor, function, structure};
//!
//! // A plug-in of 0.54 takes 72 bytes, where one of 0.114 takes 144 and one of 0.116 160.
//! let options = structure("PJRT_ExecuteOptions").expect("it is in the table");
//! assert_eq!(options.size(Minor::new(54)).map(|size| size.declared), Some(72));
//! assert_eq!(options.size(Minor::new(116)).map(|size| size.declared), Some(160));
//! let raw = function("PJRT_Buffer_CopyRawToHost").expect("it is in the table");
//! assert_eq!((raw.offset(Minor::new(54)), raw.slot(Minor::new(57))), (None, Some(100)));
//! ```
//!
//! The history was measured from every revision of the C header (`pjrt.json` beside this crate);
//! `cargo xtask pjrt` generates `generated` from it. Rules that follow from it:
//!
//! * Below [`Minor::OLDEST_SUPPORTED`] slots moved: no table can be read by its minor alone.
//! * Since [`Minor::APPEND_ONLY`], no slot and no field has moved.
//! * The macros that give a struct's size name its last field by hand, and were wrong at times: the
//!   declared size ([`StructSize::declared`]) is not always the real one. A host declares the size
//!   that a plug-in of that minor was built with, and passes all of the memory.
//! * Minors after [`Minor::NEWEST`] are unknown; so far a new field that is zero has meant "as
//!   before". A struct passed to such a plug-in is followed by [`PADDING`] zero bytes.
//!
//! The module has numbers and names. It does not depend on running plug-ins.

/// The attribute (an integer) by which a plug-in declares that it accepts arguments as short as
/// those of frameworks since that minor, and not only its own. Upstream's plug-ins have none.
pub const OLDEST_FRAMEWORK_ATTRIBUTE: &str = "serdes_oldest_framework_minor";

/// The prefix of the symbol by which the file of such a plug-in declares the same before it is
/// loaded; the minor follows.
pub const OLDEST_FRAMEWORK_SYMBOL: &str = "serdes_oldest_framework_minor_";

pub mod args;
mod element_type;
mod generated;
mod history;
mod layout;
mod minor;

pub use element_type::ElementType;
pub use history::{
    enumeration, enumerations, function, functions, minors, structure, structures, table_size,
};
pub use layout::{
    Enumeration, EnumerationValue, Field, Function, Handover, MinorRecord, PADDING, SlotSpan,
    Struct, StructSize, StructSpan,
};
pub use minor::Minor;
