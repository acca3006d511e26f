//! The types of elements of XLA.

use std::{fmt, str::FromStr};

use crate::ifrt::IfrtError;

/// An element type of XLA (`xla.PrimitiveType`).
///
/// The numbers differ from those of [`DType`](crate::ifrt::DType), for example for U1 and F4E2M1FN.
/// A number that this build does not know is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PrimitiveType(i32);

macro_rules! primitive_types {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        impl PrimitiveType {
            $($(#[$doc])* pub const $name: Self = Self($number);)*

            /// The types that this build knows.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name in the notation of HLO, such as `f32`; `None` for a number that
            /// this build does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

primitive_types! {
    /// No type.
    INVALID = 0 "invalid",
    /// Booleans of one byte.
    PRED = 1 "pred",
    /// Signed integers of 1 bit.
    S1 = 30 "s1",
    /// Signed integers of 2 bits.
    S2 = 26 "s2",
    /// Signed integers of 4 bits.
    S4 = 21 "s4",
    /// Signed integers of 8 bits.
    S8 = 2 "s8",
    /// Signed integers of 16 bits.
    S16 = 3 "s16",
    /// Signed integers of 32 bits.
    S32 = 4 "s32",
    /// Signed integers of 64 bits.
    S64 = 5 "s64",
    /// Unsigned integers of 1 bit.
    U1 = 31 "u1",
    /// Unsigned integers of 2 bits.
    U2 = 27 "u2",
    /// Unsigned integers of 4 bits.
    U4 = 22 "u4",
    /// Unsigned integers of 8 bits.
    U8 = 6 "u8",
    /// Unsigned integers of 16 bits.
    U16 = 7 "u16",
    /// Unsigned integers of 32 bits.
    U32 = 8 "u32",
    /// Unsigned integers of 64 bits.
    U64 = 9 "u64",
    /// IEEE floats of 16 bits.
    F16 = 10 "f16",
    /// IEEE floats of 32 bits.
    F32 = 11 "f32",
    /// Brain floats of 16 bits.
    BF16 = 16 "bf16",
    /// IEEE floats of 64 bits.
    F64 = 12 "f64",
    /// Floats of 8 bits: 5 of exponent, 2 of mantissa.
    F8E5M2 = 19 "f8e5m2",
    /// Floats of 8 bits: 4 of exponent, 3 of mantissa.
    F8E4M3 = 28 "f8e4m3",
    /// As F8E4M3, finite.
    F8E4M3FN = 20 "f8e4m3fn",
    /// As F8E4M3, finite, without a negative zero, bias 11.
    F8E4M3B11FNUZ = 23 "f8e4m3b11fnuz",
    /// Floats of 8 bits: 3 of exponent, 4 of mantissa.
    F8E3M4 = 29 "f8e3m4",
    /// As F8E5M2, finite, without a negative zero.
    F8E5M2FNUZ = 24 "f8e5m2fnuz",
    /// As F8E4M3, finite, without a negative zero.
    F8E4M3FNUZ = 25 "f8e4m3fnuz",
    /// Floats of 4 bits: 2 of exponent, 1 of mantissa.
    F4E2M1FN = 32 "f4e2m1fn",
    /// Scales of 8 bits: exponent only.
    F8E8M0FNU = 33 "f8e8m0fnu",
    /// Floats of 6 bits: 3 of exponent, 2 of mantissa.
    F6E3M2FN = 35 "f6e3m2fn",
    /// Floats of 6 bits: 2 of exponent, 3 of mantissa.
    F6E2M3FN = 36 "f6e2m3fn",
    /// Complex numbers of two 32-bit floats.
    C64 = 15 "c64",
    /// Complex numbers of two 64-bit floats.
    C128 = 18 "c128",
    /// A tuple of shapes.
    TUPLE = 13 "tuple",
    /// A value that only its operations understand.
    OPAQUE = 14 "opaque",
    /// A value that orders operations.
    TOKEN = 17 "token",
    /// A buffer.
    BUFFER = 34 "buffer",
}

impl PrimitiveType {
    /// Returns the type with this number of the wire.
    pub const fn from_number(number: i32) -> Self {
        Self(number)
    }

    /// Returns the number on the wire.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns the type with this name in the notation of HLO.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == Some(name))
    }
}

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown({})", self.0),
        }
    }
}

/// Parses the name in the notation of HLO, such as `f32`. A number without a name is printed, but
/// not parsed.
impl FromStr for PrimitiveType {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or_else(|| {
            IfrtError::text("PrimitiveType", text, 0, "a name such as f32 or f8e4m3fn")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::xla;

    #[test]
    fn numbers_and_names_are_those_of_the_messages() {
        for kind in PrimitiveType::ALL {
            let message = xla::PrimitiveType::try_from(kind.number()).unwrap();
            let name = message.as_str_name().to_lowercase();
            let name = name.trim_start_matches("primitive_type_").trim_end_matches("_type");
            assert_eq!(kind.to_string(), name);
            assert_eq!(PrimitiveType::from_name(name), Some(*kind));
            assert_eq!(name.parse(), Ok(*kind));
        }
        let error = "F32".parse::<PrimitiveType>().unwrap_err().to_string();
        assert!(error.contains("`F32` is not a PrimitiveType"), "{error}");
        assert!(error.contains("a name such as f32"), "{error}");
        assert_eq!(PrimitiveType::from_number(77).to_string(), "unknown(77)");
    }
}
