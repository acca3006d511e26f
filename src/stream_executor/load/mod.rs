//! From the path of a library to a plug-in that is registered: what the file is, who has it open,
//! which layout it was built against, what it filled in and whether that is in order.
//!
//! After it nobody asks for a layout: every function lies in the place of the newest one. This
//! folder must never know of devices, nor of what is done with a plug-in.

mod allocators;
mod detect;
pub mod elf;
mod initialise;
mod library;
mod platform_facts;
mod registration;
mod requirements;
mod struct_checks;
mod tensorflow_release;

pub use detect::LayoutChoice;
pub(super) use initialise::InitPlugin;
pub(super) use library::{FileClaim, Library, PlatformClaim};
pub(super) use platform_facts::bounded_string;
pub(super) use registration::Registration;
pub use tensorflow_release::{TensorFlowFit, TensorFlowRelease, UnknownTensorFlowRelease};
