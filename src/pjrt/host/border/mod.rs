//! Where the C API is spoken: the library, the table of its functions, calls with arguments of the
//! size that the plug-in was built with, and what comes back.
//!
//! Nothing that a plug-in gives is used unchecked: counts and lengths are bounded, pointers that
//! must not be NULL are compared with it. This folder must never know what a call is for.

mod answers;
mod callbacks;
mod extensions;
mod library;
mod table;

pub(super) use answers::{list, pointer, text};
pub(super) use callbacks::call_when_ready;
pub use extensions::Extension;
pub(super) use library::open;
pub(super) use table::{Handed, Table};
