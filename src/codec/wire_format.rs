//! Types that are described by their bytes: the file of the type says once how they are written and
//! read, and the message is made from the bytes. The two cannot differ.
//!
//! The module does not depend on any concrete type.

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, DeserializeOptions, EncodeError};
use crate::{version::SerDesVersion, wire::BackwardWriter};

/// Writes and reads the bytes of a type. [`described_by_bytes`] implements
/// [`ToProto`](super::ToProto) and [`FromProto`](super::FromProto) with it.
pub(crate) trait WireFormat: Sized {
    /// The name of the type in messages, without a path.
    const NAME: &'static str;

    /// Returns a capacity that is usually enough for the bytes; small values need none.
    fn capacity(&self) -> usize {
        0
    }

    /// Fails if [`write`](Self::write) does, with the first error in the order of the fields.
    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError>;

    /// Writes the fields for a reader of `version`, which nested values get too. Fields are written
    /// from the highest number to the lowest.
    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError>;

    /// Fails if `options` lacks something that the type needs. Called before the bytes are read.
    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        let _ = options;
        Ok(())
    }

    /// Reads the fields: first all fields of this message, then the recorded number, then nested
    /// values.
    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError>;
}

/// The bytes of a message, and the memory that contains them, which values may share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    bytes: &'a [u8],
    memory: &'a Bytes,
}

impl<'a> Encoded<'a> {
    /// Returns the whole of `memory` as a message.
    #[inline]
    pub(crate) fn of(memory: &'a Bytes) -> Self {
        Self { bytes: memory, memory }
    }

    /// Returns the bytes.
    #[inline]
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns a message that is nested in this one.
    #[inline]
    pub(crate) const fn part(self, bytes: &'a [u8]) -> Self {
        Self { bytes, memory: self.memory }
    }

    /// Returns a part of the bytes without a copy. Bytes that were joined from several pieces are
    /// copied.
    #[inline]
    pub(crate) fn share(self, part: &[u8]) -> Bytes {
        let (all, own) = (self.memory.as_ptr_range(), part.as_ptr_range());
        if all.start <= own.start && own.end <= all.end {
            self.memory.slice_ref(part)
        } else {
            Bytes::copy_from_slice(part)
        }
    }
}

/// Returns the value as the bytes of its message.
pub(crate) fn to_bytes<T: WireFormat>(
    value: &T,
    version: SerDesVersion,
) -> Result<Bytes, EncodeError> {
    let mut out = BackwardWriter::with_capacity(value.capacity());
    match value.write(version, &mut out) {
        Ok(()) => Ok(out.finish()),
        // The writer begins at the end of the message, so it meets the last of several errors
        // first.
        Err(last) => Err(value.can_write(version).err().unwrap_or(last)),
    }
}

/// Returns the value as a message, by parsing its bytes.
pub(crate) fn to_message<T: WireFormat, M: Message + Default>(
    value: &T,
    version: SerDesVersion,
) -> Result<M, EncodeError> {
    let bytes = to_bytes(value, version)?;
    M::decode(bytes).map_err(|error| EncodeError::inconsistent(T::NAME, error.to_string()))
}

/// Returns the value of a message.
pub(crate) fn from_message<T: WireFormat>(
    message: &impl Message,
    options: &DeserializeOptions,
) -> Result<T, DecodeError> {
    T::check_options(options)?;
    T::read(Encoded::of(&message.encode_to_vec().into()), options)
}

/// Returns the value of the bytes of a top-level message, bare or with the name of its type.
pub(crate) fn from_data<T: WireFormat>(
    data: Encoded<'_>,
    options: &DeserializeOptions,
) -> Result<T, DecodeError> {
    T::check_options(options)?;
    let (found, limit) = (data.bytes.len() as u64, options.maximum_bytes());
    if found > limit {
        return Err(DecodeError::limit_exceeded(T::NAME, "the size in bytes", found, limit));
    }
    T::read(data, options)
}

/// Writes `values` as the repeated field with this number.
pub(crate) fn write_all<T: WireFormat>(
    field: u32,
    values: &[T],
    version: SerDesVersion,
    out: &mut BackwardWriter,
) -> Result<(), EncodeError> {
    values.iter().rev().try_for_each(|value| out.message(field, |out| value.write(version, out)))
}

/// Reads the messages in a repeated field of `message`.
pub(crate) fn read_all<T: WireFormat>(
    message: Encoded<'_>,
    parts: Vec<&[u8]>,
    options: &DeserializeOptions,
) -> Result<Vec<T>, DecodeError> {
    parts.into_iter().map(|part| T::read(message.part(part), options)).collect()
}

/// Implements [`ToProto`](super::ToProto) and [`FromProto`](super::FromProto) with a
/// [`WireFormat`].
macro_rules! described_by_bytes {
    (
        $(#[$to:meta])* ToProto,
        $(#[$from:meta])* FromProto for $type:ty as $message:ty
    ) => {
        $(#[$to])*
        impl $crate::codec::ToProto for $type {
            type Proto = $message;

            // `inline`, here and below: prost's code for the message is compiled only for callers
            // that need a message. The registry of this crate uses the bytes.
            #[inline]
            fn to_proto(
                &self,
                version: $crate::version::SerDesVersion,
            ) -> Result<Self::Proto, $crate::codec::EncodeError> {
                $crate::codec::wire_format::to_message(self, version)
            }

            fn can_serialize_at(
                &self,
                version: $crate::version::SerDesVersion,
            ) -> Result<(), $crate::codec::EncodeError> {
                $crate::codec::wire_format::WireFormat::can_write(self, version)
            }

            fn to_bytes(
                &self,
                version: $crate::version::SerDesVersion,
            ) -> Result<bytes::Bytes, $crate::codec::EncodeError> {
                $crate::codec::wire_format::to_bytes(self, version)
            }
        }

        $(#[$from])*
        impl $crate::codec::FromProto for $type {
            type Proto = $message;
            const NAME: &'static str = <Self as $crate::codec::wire_format::WireFormat>::NAME;

            #[inline]
            fn from_proto(
                proto: &Self::Proto,
                options: &$crate::codec::DeserializeOptions,
            ) -> Result<Self, $crate::codec::DecodeError> {
                $crate::codec::wire_format::from_message(proto, options)
            }

            fn check_options(
                options: &$crate::codec::DeserializeOptions,
            ) -> Result<(), $crate::codec::DecodeError> {
                <Self as $crate::codec::wire_format::WireFormat>::check_options(options)
            }

            fn from_bytes(
                bytes: bytes::Bytes,
                options: &$crate::codec::DeserializeOptions,
            ) -> Result<Self, $crate::codec::DecodeError> {
                let data = $crate::codec::wire_format::Encoded::of(&bytes);
                $crate::codec::wire_format::from_data(data, options)
            }
        }
    };
}
pub(crate) use described_by_bytes;
