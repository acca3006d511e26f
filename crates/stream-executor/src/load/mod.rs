//! Loading of plug-ins, from the path of a library to a registered plug-in: identity of the file,
//! detection of the layout, calls of the registration, and checks of the structs.
//!
//! Later code does not depend on the layout: every function is in the field of the newest one. The
//! module does not depend on devices, or on the uses of a plug-in.

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
