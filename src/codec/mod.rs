//! Versioned conversion between values and messages: [`ToProto`], [`FromProto`], [`Serialized`],
//! the [`SerDesRegistry`].
//!
//! Rules that all types follow (seed 001):
//!
//! - The version to write is an argument of every call, without a default, and is handed on
//!   **unchanged** to nested calls. A message records the number of its own format: the newest that
//!   is not newer than the request.
//! - A reader takes the version from each message, including each nested message.
//! - A feature that the requested version cannot express is an error that names the feature and the
//!   first version that has it. Nothing is dropped silently.
//! - A recorded number above the newest is *too new*; one that no request since the line's minimum
//!   records is *too old*; one in the supported range without a format is *corrupt*.
//! - The formats of a type, and the first request that gets each, are declared in versions.toml
//!   only: [`Formats::of`].
//! - Serializers that take no version (`serde`) use the one of the [default
//!   accessor](crate::version::DefaultVersionAccessor), so that the testing switch finds it.
//!   `codec::At` gives the `serde` form for builds of another day; `codec::testing` (feature
//!   `testing`) proves that a version reaches everything inside a value.
//!
//! The module knows versions, messages and bytes. It does not depend on data types of IFRT, devices
//! or files.

#[cfg(feature = "serde")]
pub(crate) mod at;
mod conversion;
mod error;
pub(crate) mod fields;
mod formats;
mod options;
mod registry;
#[cfg(feature = "serde")]
pub(crate) mod serde_forms;
#[cfg(not(feature = "serde"))]
#[path = "no_serde_forms.rs"]
pub(crate) mod serde_forms;
mod serialized;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "unstable-bench")]
#[doc(hidden)]
pub mod unstable_bench;
pub(crate) mod wire_format;

#[cfg(feature = "serde")]
pub use at::At;
pub use conversion::{FromProto, ToProto, decode_message};
pub(crate) use conversion::{nested, parse};
pub use error::{DecodeError, EncodeError, RegistryError};
pub use formats::Formats;
pub use options::{DeserializeOptions, SerializeOptions, Validation};
pub use registry::{AnyValue, MessageSerDes, SerDes, SerDesRegistry};
pub use serdes_abi::ErrorKind;
pub use serialized::{Registered, Serialized};
pub use status::{Status, StatusCode};
