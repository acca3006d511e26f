//! Types with several kinds, such as a sharding. Each kind is written under its own name, in an
//! envelope that has no version.
//!
//! A list of the kinds generates everything that depends on them: the enum, its dispatch and
//! conversions, reading by name, and the entries of the registry, which inspection uses. The module
//! does not depend on any concrete kind.

use prost::{Message, Name};

use crate::{
    codec::{
        DecodeError, EncodeError, FromProto, Registered, RegistryError, SerDesRegistry, ToProto,
        fields::{Fields, Joined},
    },
    wire::BackwardWriter,
};

/// A registered type: its name in data, its message, and the function that registers it.
pub(super) struct BuiltIn {
    pub(super) type_name: &'static str,
    /// The package and the name of the message.
    pub(super) message: (&'static str, &'static str),
    pub(super) register: fn(&SerDesRegistry) -> Result<(), RegistryError>,
}

impl BuiltIn {
    /// Returns the entry of the type `T`.
    pub(super) const fn of<T, P>() -> Self
    where
        P: Message + Name + Default,
        T: Registered + ToProto<Proto = P> + FromProto<Proto = P> + Send + Sync + 'static,
    {
        Self {
            type_name: T::TYPE_NAME,
            message: (P::PACKAGE, P::NAME),
            register: |registry| registry.register_message::<T, P>(),
        }
    }
}

/// Defines the type `$name` of these kinds, and the macro `$each`, which evaluates the same
/// expression for each kind and serves the type's other methods. The first argument is a dollar
/// sign, for the inner macro.
macro_rules! kinds {
    (
        ($dollar:tt) by $each:ident
        $(#[$doc:meta])*
        enum $name:ident {
            $($(#[$kind_doc:meta])* $variant:ident($kind:ty),)*
        }
        $(#[$to:meta])* ToProto,
        $(#[$from:meta])* FromProto as $message:ty
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$kind_doc])* $variant($kind),)*
        }

        /// Evaluates an expression with the value inside, of any kind.
        macro_rules! $each {
            ($dollar value:expr, $dollar inner:ident => $dollar body:expr) => {
                match $dollar value {
                    $($name::$variant($dollar inner) => $dollar body,)*
                }
            };
        }

        impl $name {
            /// The entries of the kinds in the registry.
            pub(in $crate::ifrt) const KINDS: &[$crate::ifrt::kinds::BuiltIn] =
                &[$($crate::ifrt::kinds::BuiltIn::of::<$kind, _>()),*];

            /// Returns the type name in the data.
            pub const fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$kind as $crate::codec::Registered>::TYPE_NAME,)*
                }
            }

            /// Returns the value together with the name of its type.
            ///
            /// # Errors
            /// As [`ToProto::to_proto`](crate::codec::ToProto::to_proto).
            pub fn to_serialized(
                &self,
                version: $crate::version::SerDesVersion,
            ) -> Result<$crate::codec::Serialized, $crate::codec::EncodeError> {
                $each!(self, inner => $crate::codec::Serialized::of(inner, version))
            }

            /// Returns the value of data that has the name of its type.
            ///
            /// # Errors
            /// As [`FromProto::from_proto`](crate::codec::FromProto::from_proto).
            pub fn from_serialized(
                serialized: $crate::codec::Serialized,
                options: &$crate::codec::DeserializeOptions,
            ) -> Result<Self, $crate::codec::DecodeError> {
                let data = $crate::codec::wire_format::Encoded::of(serialized.data());
                Self::of_data(serialized.type_name(), data, options)
            }

            fn of_data(
                type_name: &str,
                data: $crate::codec::wire_format::Encoded<'_>,
                options: &$crate::codec::DeserializeOptions,
            ) -> Result<Self, $crate::codec::DecodeError> {
                match type_name {
                    $(<$kind as $crate::codec::Registered>::TYPE_NAME => {
                        $crate::codec::wire_format::from_data(data, options).map(Self::$variant)
                    })*
                    other => Err($crate::ifrt::registry::not_a(stringify!($name), other.to_owned())),
                }
            }
        }

        $(impl From<$kind> for $name {
            fn from(inner: $kind) -> Self {
                Self::$variant(inner)
            }
        })*

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $each!(self, inner => inner.fmt(f))
            }
        }

        $crate::codec::wire_format::described_by_bytes! {
            $(#[$to])* ToProto,
            $(#[$from])* FromProto for $name as $message
        }

        impl $crate::codec::wire_format::WireFormat for $name {
            const NAME: &'static str = stringify!($name);

            fn capacity(&self) -> usize {
                $each!(self, inner => inner.capacity())
            }

            fn can_write(
                &self,
                version: $crate::version::SerDesVersion,
            ) -> Result<(), $crate::codec::EncodeError> {
                $each!(self, inner => inner.can_write(version))
            }

            fn write(
                &self,
                version: $crate::version::SerDesVersion,
                out: &mut $crate::wire::BackwardWriter,
            ) -> Result<(), $crate::codec::EncodeError> {
                $crate::ifrt::kinds::write_envelope(self.type_name(), out, |out| {
                    $each!(self, inner => inner.write(version, out))
                })
            }

            fn read(
                message: $crate::codec::wire_format::Encoded<'_>,
                options: &$crate::codec::DeserializeOptions,
            ) -> Result<Self, $crate::codec::DecodeError> {
                let envelope = $crate::ifrt::kinds::read_envelope(Self::NAME, message.bytes())?;
                let (type_name, data) = envelope.content()?;
                Self::of_data(type_name, message.part(data), options)
            }
        }
    };
}
pub(super) use kinds;

/// Writes the envelope that all types with several kinds share: a `Serialized` in its first field.
pub(super) fn write_envelope(
    type_name: &str,
    out: &mut BackwardWriter,
    write: impl FnOnce(&mut BackwardWriter) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    out.message(1, |out| {
        out.data(2, write)?;
        out.bytes(1, type_name.as_bytes());
        Ok(())
    })
}

/// The content of an envelope: the bytes of a `Serialized`.
pub(super) struct Envelope<'a>(Joined<'a>);

/// Reads the envelope of the type `name`.
pub(super) fn read_envelope<'a>(
    name: &'static str,
    message: &'a [u8],
) -> Result<Envelope<'a>, DecodeError> {
    let mut serialized = Joined::default();
    let mut fields = Fields::new(name, message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            serialized.add(value.bytes()?);
        }
    }
    Ok(Envelope(serialized))
}

impl Envelope<'_> {
    /// Returns the name of the type, and the data.
    pub(super) fn content(&self) -> Result<(&str, &[u8]), DecodeError> {
        let (mut type_name, mut data) = ("", &[][..]);
        let mut fields = Fields::new("Serialized", self.0.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => type_name = value.text()?,
                2 => data = value.bytes()?,
                _ => {}
            }
        }
        Ok((type_name, data))
    }
}
