//! The two traits that convert between values and messages, and the encoding of messages.
//!
//! The module knows versions and messages. It does not depend on any concrete type.

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, DeserializeOptions, EncodeError};
use crate::version::{AnyVersionAccessor, Ifrt, Line, Version};

/// A value that can be written as a message at a version of the line `L`.
///
/// The version has no default: code that writes a nested value passes on the version that it was
/// asked for.
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

    /// Returns the value as a message that a reader of `version` understands.
    ///
    /// # Errors
    /// [`EncodeError::UnsupportedAtVersion`] if the value has a feature that came later; further
    /// ones by type.
    fn to_proto(&self, version: Version<L>) -> Result<Self::Proto, EncodeError>;

    /// Checks that [`to_proto`](Self::to_proto) succeeds at `version`. Types of this crate check
    /// this without serializing.
    ///
    /// # Errors
    /// The error that `to_proto` would return: it names the feature that cannot be expressed.
    fn can_serialize_at(&self, version: Version<L>) -> Result<(), EncodeError> {
        self.to_proto(version).map(drop)
    }

    /// Returns the oldest version at which the value can be written.
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

    /// Returns the value as the bytes of its message.
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

/// A value that can be read from a message, which records its own version.
pub trait FromProto: Sized {
    /// The message.
    type Proto;

    /// The name of the type in messages, without a path.
    const NAME: &'static str;

    /// Returns the value of the message.
    ///
    /// # Errors
    /// [`DecodeError`], in this order: options, recorded version, nested fields.
    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError>;

    /// Returns the value of a message that is no longer needed. Types that can take over its memory
    /// do so.
    ///
    /// # Errors
    /// As [`from_proto`](Self::from_proto).
    fn from_owned_proto(
        proto: Self::Proto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        Self::from_proto(&proto, options)
    }

    /// Fails if `options` lacks something that the type needs. Called before the bytes are read.
    ///
    /// # Errors
    /// [`DecodeError::MissingOption`].
    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        let _ = options;
        Ok(())
    }

    /// Returns the value of the bytes of a message. Fields of `bytes` type share the memory of
    /// `bytes`.
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

/// Reads a nested message; an absent one is read as an empty one, as in C++.
pub(crate) fn nested<T>(
    message: Option<&T::Proto>,
    options: &DeserializeOptions,
) -> Result<T, DecodeError>
where
    T: FromProto,
    T::Proto: Default,
{
    match message {
        Some(message) => T::from_proto(message, options),
        None => T::from_proto(&T::Proto::default(), options),
    }
}
