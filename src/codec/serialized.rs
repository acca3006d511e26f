//! A serialized value together with the name of its type.

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, DeserializeOptions, EncodeError, FromProto, ToProto, decode_message};
use crate::{
    proto::xla::ifrt as wire,
    version::{Line, Version},
};

/// A type that is written together with a name, so that a reader learns from the data what it
/// holds.
pub trait Registered {
    /// The name in the data, such as `xla::ifrt::SingleDeviceSharding`.
    const TYPE_NAME: &'static str;
}

/// A serialized value with the name of its type. The version is recorded inside the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Serialized {
    type_name: String,
    data: Bytes,
}

impl Serialized {
    /// Wraps `data` of the type `type_name`.
    pub fn new(type_name: impl Into<String>, data: impl Into<Bytes>) -> Self {
        Self { type_name: type_name.into(), data: data.into() }
    }

    /// Writes `value` at `version` under the name of its type.
    ///
    /// # Errors
    /// As [`ToProto::to_proto`].
    pub fn of<T, L>(value: &T, version: Version<L>) -> Result<Self, EncodeError>
    where
        L: Line,
        T: Registered + ToProto<L>,
        T::Proto: Message,
    {
        Ok(Self::new(T::TYPE_NAME, value.to_bytes(version)?))
    }

    /// Reads the data as a `T`.
    ///
    /// # Errors
    /// [`DecodeError::WrongType`] if the data is of another type; else as
    /// [`FromProto::from_bytes`].
    pub fn read<T>(&self, options: &DeserializeOptions) -> Result<T, DecodeError>
    where
        T: Registered + FromProto,
        T::Proto: Message + Default,
    {
        if self.type_name != T::TYPE_NAME {
            return Err(DecodeError::WrongType {
                expected: T::TYPE_NAME.to_owned(),
                found: self.type_name.clone(),
            });
        }
        T::from_bytes(self.data.clone(), options)
    }

    /// Returns the name of the type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Returns the bytes of the value.
    pub const fn data(&self) -> &Bytes {
        &self.data
    }

    /// Returns the bytes of the wrapper.
    pub fn to_bytes(&self) -> Bytes {
        wire::Serialized::from(self.clone()).encode_to_vec().into()
    }

    /// Reads the wrapper. Does not read the data inside it.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] if the bytes are not a wrapper.
    pub fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        decode_message::<wire::Serialized>("Serialized", bytes, options).map(Into::into)
    }
}

impl From<Serialized> for wire::Serialized {
    fn from(serialized: Serialized) -> Self {
        Self { type_name: serialized.type_name, data: serialized.data }
    }
}

impl From<wire::Serialized> for Serialized {
    fn from(message: wire::Serialized) -> Self {
        Self { type_name: message.type_name, data: message.data }
    }
}

impl From<&wire::Serialized> for Serialized {
    fn from(message: &wire::Serialized) -> Self {
        Self { type_name: message.type_name.clone(), data: message.data.clone() }
    }
}
