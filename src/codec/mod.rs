//! Versioned conversion between values and messages: [`ToProto`], [`FromProto`], [`Serialized`],
//! the [`SerDesRegistry`].
//!
//! Rules of the house, which all types follow (seed 001):
//!
//! - The version to write is an argument of every call, without a default, and is handed on
//!   **unchanged** to nested calls. What a message records is the number of its own format: the
//!   newest that is not newer than the request.
//! - A reader takes the version from each message, for each nested message anew.
//! - A feature that the requested version cannot express is an error that names the feature and the
//!   first version that has it. Nothing is dropped in silence.
//! - A recorded number above the newest is *too new*; one that no request from the line's minimum
//!   on records is *too old*; one in the supported range without a format is *corrupt*.
//! - Which formats a type has, and from which request on, stands in versions.toml alone:
//!   [`Formats::of`].
//! - What serializes without being told a version (`serde`) takes it from the [default
//!   accessor](crate::version::DefaultVersionAccessor), so that the testing switch finds it.
//!   `codec::At` gives the `serde` form for builds of another day; `codec::testing` (feature
//!   `testing`) proves that a version reaches everything inside of a value.
//!
//! The room knows versions, messages and bytes. It must never know a data type of IFRT, a device or
//! a file.

#[cfg(feature = "serde")]
mod at;
mod error;
pub(crate) mod fields;
mod formats;
pub(crate) mod hexadecimal;
mod options;
mod registry;
mod serialized;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "unstable-bench")]
#[doc(hidden)]
pub mod unstable_bench;
pub(crate) mod wire_format;

use bytes::Bytes;
use prost::Message;

use crate::version::{AnyVersionAccessor, Ifrt, Line, Version};
#[cfg(feature = "serde")]
pub use at::At;
#[cfg(feature = "serde")]
pub(crate) use at::requested;
pub use error::{DecodeError, DecodeErrorKind, EncodeError, RegistryError};
pub use formats::Formats;
pub use options::{DeserializeOptions, SerializeOptions, Validation};
pub use registry::{AnyValue, MessageSerDes, SerDes, SerDesRegistry};
pub use serialized::{Registered, Serialized};
pub use status::{Status, StatusCode};

/// A value that can be written as a message at a version of the line `L`.
///
/// There is no default for the version: whoever writes a nested value hands on the version that was
/// asked of it.
///
/// ```
/// use serdes::codec::{EncodeError, Formats, ToProto};
/// use serdes::version::{Ifrt, SerDesAnyVersionAccessor, SerDesVersion};
///
/// /// A temperature; with a unit from version 4 on.
/// struct Temperature { degrees: i32, kelvin: bool }
///
/// // A crate with a versions.toml says `Formats::of("Temperature")`.
/// const FORMATS: Formats = Formats::new("Temperature", &[0, 4]);
///
/// impl ToProto for Temperature {
///     /// Degrees, unit, recorded version.
///     type Proto = (i32, bool, i32);
///
///     fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
///         match FORMATS.for_request(version)? {
///             0 if self.kelvin => {
///                 Err(EncodeError::unsupported_at_version("Temperature", "a unit", version, 4))
///             }
///             format => Ok((self.degrees, self.kelvin, format)),
///         }
///     }
/// }
///
/// let warm = Temperature { degrees: 300, kelvin: true };
/// assert!(warm.can_serialize_at(SerDesAnyVersionAccessor::get(3)?).is_err());
/// assert_eq!(warm.to_proto(SerDesAnyVersionAccessor::get(6)?)?, (300, true, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToProto<L: Line = Ifrt> {
    /// The message.
    type Proto;

    /// The value as a message that a reader of `version` understands.
    ///
    /// # Errors
    /// [`EncodeError::UnsupportedAtVersion`] if the value has a feature that came later; further
    /// ones by type.
    fn to_proto(&self, version: Version<L>) -> Result<Self::Proto, EncodeError>;

    /// Whether [`to_proto`](Self::to_proto) succeeds at `version`. Types of this crate answer
    /// without serializing.
    ///
    /// # Errors
    /// The error that `to_proto` would return: it names the feature that blocks.
    fn can_serialize_at(&self, version: Version<L>) -> Result<(), EncodeError> {
        self.to_proto(version).map(drop)
    }

    /// The oldest version at which the value can be written.
    ///
    /// # Errors
    /// The error at the newest version, if the value cannot be written at any.
    fn minimum_version(&self) -> Result<Version<L>, EncodeError> {
        let mut newest_error = None;
        for entry in L::ENTRIES {
            if let Ok(version) = AnyVersionAccessor::<L>::get(entry.number) {
                match self.can_serialize_at(version) {
                    Ok(()) => return Ok(version),
                    Err(error) => newest_error = Some(error),
                }
            }
        }
        let minimum = AnyVersionAccessor::<L>::minimum();
        newest_error.map_or(Ok(minimum), Err)
    }

    /// The value as the bytes of its message.
    ///
    /// # Errors
    /// As [`to_proto`](Self::to_proto).
    fn to_bytes(&self, version: Version<L>) -> Result<Bytes, EncodeError>
    where
        Self::Proto: Message,
    {
        Ok(self.to_proto(version)?.encode_to_vec().into())
    }
}

/// A value that can be read from a message, which says its own version.
pub trait FromProto: Sized {
    /// The message.
    type Proto;

    /// The name of the type in messages, without a path.
    const NAME: &'static str;

    /// The value of the message.
    ///
    /// # Errors
    /// [`DecodeError`], in this order: options, recorded version, nested fields.
    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError>;

    /// The value of a message that is no longer needed; types that can take its memory over do.
    ///
    /// # Errors
    /// As [`from_proto`](Self::from_proto).
    fn from_owned_proto(
        proto: Self::Proto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        Self::from_proto(&proto, options)
    }

    /// Fails if `options` lacks what the type needs; asked before the bytes are looked at.
    ///
    /// # Errors
    /// [`DecodeError::MissingOption`].
    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        let _ = options;
        Ok(())
    }

    /// The value of the bytes of a message. Fields of `bytes` type share the memory of `bytes`.
    ///
    /// # Errors
    /// As [`from_proto`](Self::from_proto), and [`DecodeError::Malformed`] if the bytes do not
    /// parse.
    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError>
    where
        Self::Proto: Message + Default,
    {
        Self::check_options(options)?;
        let proto = decode_message::<Self::Proto>(Self::NAME, bytes, options)?;
        Self::from_owned_proto(proto, options)
    }
}

/// Parses `bytes` as a message of the type that messages call `type_name`.
///
/// # Errors
/// [`DecodeError::LimitExceeded`] if there are more bytes than `options` allows,
/// [`DecodeError::Malformed`] if they do not parse.
pub fn decode_message<M: Message + Default>(
    type_name: &'static str,
    bytes: Bytes,
    options: &DeserializeOptions,
) -> Result<M, DecodeError> {
    let found = bytes.len() as u64;
    if found > options.maximum_bytes() {
        return Err(DecodeError::limit_exceeded(
            type_name,
            "the size in bytes",
            found,
            options.maximum_bytes(),
        ));
    }
    parse(type_name, bytes)
}

/// Parses the message of `type_name`. All messages come as [`Bytes`], also where a slice would do:
/// prost's reader of a message is compiled anew for each type of buffer.
pub(crate) fn parse<M: Message + Default>(
    type_name: &'static str,
    bytes: Bytes,
) -> Result<M, DecodeError> {
    M::decode(bytes).map_err(|error| DecodeError::malformed(type_name, error.to_string()))
}
