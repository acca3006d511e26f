//! Messages that stand alone, in a file for example. Their bytes do not record the type of IFRT, so
//! the caller names it.

use bytes::Bytes;

use super::{
    AbstractArraySpec, ArraySpec, AttributeMap, CompactLayout, ConcreteEvenSharding,
    ConcreteSharding, DType, DeviceList, DynamicShape, ExecuteOptions, HloSharding, Index,
    IndexDomain, OpaqueSharding, PjRtLayout, RemapPlan, Shape, Sharding, ShardingParam,
    ShardingParamSharding, ShardingSpec, SingleDeviceSharding,
};
use crate::{
    codec::{DecodeError, DeserializeOptions, EncodeError, FromProto as _, ToProto as _},
    version::SerDesVersion,
};

macro_rules! messages {
    ($($name:ident),* $(,)?) => {
        /// A type of IFRT whose message can stand alone.
        ///
        /// ```
        /// use serdes::codec::{DeserializeOptions, ToProto};
        /// use serdes::ifrt::{DType, MessageType};
        /// use serdes::version::{SerDesAnyVersionAccessor, SerDesVersion};
        ///
        /// let bytes = DType::F32.to_bytes(SerDesVersion::current())?;
        /// let message = MessageType::named("xla.ifrt.DTypeProto").unwrap();
        /// assert_eq!(message, MessageType::DType);
        /// let value = message.read(bytes, &DeserializeOptions::new())?;
        /// let older = value.to_bytes(SerDesAnyVersionAccessor::get(3)?)?;
        /// assert_eq!(older, DType::F32.to_bytes(SerDesAnyVersionAccessor::get(3)?)?);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum MessageType {
            $(
                #[doc = concat!("[`", stringify!($name), "`].")]
                $name,
            )*
        }

        impl MessageType {
            /// All types, in the order of their names.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name of the type, without a path.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Reads a message of this type.
            ///
            /// # Errors
            /// As [`FromProto::from_bytes`](crate::codec::FromProto::from_bytes).
            pub fn read(
                self,
                bytes: Bytes,
                options: &DeserializeOptions,
            ) -> Result<MessageValue, DecodeError> {
                Ok(match self {
                    $(Self::$name => {
                        MessageValue::$name(Box::new($name::from_bytes(bytes, options)?))
                    })*
                })
            }
        }

        /// The value of a message that stands alone.
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
        #[non_exhaustive]
        pub enum MessageValue {
            $(
                #[doc = concat!("A value of the type `", stringify!($name), "`.")]
                $name(Box<$name>),
            )*
        }

        impl MessageValue {
            /// Returns the value as the bytes of a message that a reader of `version` understands.
            ///
            /// # Errors
            /// As [`ToProto::to_proto`](crate::codec::ToProto::to_proto): the error names the
            /// feature that this version cannot express.
            pub fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
                match self {
                    $(Self::$name(value) => value.to_bytes(version),)*
                }
            }
        }
    };
}

messages![
    AbstractArraySpec,
    ArraySpec,
    AttributeMap,
    CompactLayout,
    ConcreteEvenSharding,
    ConcreteSharding,
    DType,
    DeviceList,
    DynamicShape,
    ExecuteOptions,
    HloSharding,
    Index,
    IndexDomain,
    OpaqueSharding,
    PjRtLayout,
    RemapPlan,
    Shape,
    Sharding,
    ShardingParam,
    ShardingParamSharding,
    ShardingSpec,
    SingleDeviceSharding,
];

impl MessageType {
    /// Returns the type with this name: `ArraySpec`, or the name of its message, `ArraySpecProto`
    /// or `xla.ifrt.ArraySpecProto`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = match name.strip_prefix("xla.ifrt.") {
            Some(message) => message.strip_suffix("Proto")?,
            None => name.strip_suffix("Proto").unwrap_or(name),
        };
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }

    /// Returns the full name of the message, such as `xla.ifrt.ArraySpecProto`.
    #[must_use]
    pub fn message(self) -> String {
        format!("xla.ifrt.{}Proto", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ifrt::{AnyDevice, Inspection, with_devices},
        version::SerDesAnyVersionAccessor,
    };

    #[test]
    fn every_type_is_found_by_its_names_and_has_versions() {
        for message in MessageType::ALL {
            let name = message.name();
            for text in [name.to_owned(), format!("{name}Proto"), message.message()] {
                assert_eq!(MessageType::named(&text), Some(*message), "{text}");
            }
            assert!(Inspection::of_message(&message.message(), b"").is_ok(), "{name}");
        }
        for text in ["", "shape", "xla.ifrt.Shape", "x.ShapeProto", "Proto"] {
            assert_eq!(MessageType::named(text), None, "{text}");
        }
    }

    #[test]
    fn a_message_is_written_again_at_versions_that_can_say_it() {
        let at = |number| SerDesAnyVersionAccessor::get(number).unwrap();
        let options = with_devices(AnyDevice);
        let spec = ArraySpec::new(
            DType::F32,
            Shape::new([2]).unwrap(),
            SingleDeviceSharding::new(super::super::DeviceId(3)),
        );
        let written = spec.to_bytes(at(3)).unwrap();
        let read = MessageType::ArraySpec.read(spec.to_bytes(at(6)).unwrap(), &options).unwrap();
        assert_eq!(read.to_bytes(at(3)).unwrap(), written);
        let wide = DType::F6E2M3FN.to_bytes(at(6)).unwrap();
        let read = MessageType::DType.read(wide, &options).unwrap();
        let refused = read.to_bytes(at(3)).unwrap_err();
        assert!(refused.to_string().contains("version 4"), "{refused}");
    }
}
