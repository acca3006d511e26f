//! The element types of arrays: their numbers, names and sizes.

use std::{fmt, str::FromStr};

use super::IfrtError;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::DTypeProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("DType").negative_passes();

/// The first version whose builds know the 6-bit floats. Older builds read them as invalid, without
/// an error.
const SIX_BIT_FLOATS_SINCE: i32 = FORMATS.feature("6-bit floats");

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $wire:literal $in_memory:literal $bits:expr;)*) => {
        /// The type of the elements of an array.
        ///
        /// Upstream has two numberings, one in messages and one in memory, which differ for four
        /// types. See [`to_wire`](Self::to_wire) and [`in_memory_number`](Self::in_memory_number);
        /// never store one as the other.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum DType {
            $($(#[$doc])* $variant,)*
        }

        impl DType {
            /// All types, including invalid, in the order of upstream's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name, in capitals.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the number on the wire.
            pub const fn to_wire(self) -> i32 {
                match self { $(Self::$variant => $wire,)* }
            }

            /// Returns the type with this number on the wire; [`DType::Invalid`] for an unknown
            /// number, as upstream reads it.
            pub const fn from_wire(number: i32) -> Self {
                match number { $($wire => Self::$variant,)* _ => Self::Invalid }
            }

            /// Returns the number in upstream's memory, which follows XLA's primitive types.
            pub const fn in_memory_number(self) -> i32 {
                match self { $(Self::$variant => $in_memory,)* }
            }

            /// Returns the type with this number in upstream's memory; `None` for an unknown
            /// number.
            pub const fn from_in_memory_number(number: i32) -> Option<Self> {
                match number { $($in_memory => Some(Self::$variant),)* _ => None }
            }

            /// Returns the size of an element in bits; `None` for types without a fixed size.
            pub const fn bits(self) -> Option<u32> {
                match self { $(Self::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    /// No type, or a type that this build does not know.
    #[default]
    Invalid "INVALID" 0 0 None;
    /// A boolean, one byte each.
    Pred "PRED" 1 1 Some(8);
    /// Signed, 1 bit.
    S1 "S1" 32 30 Some(1);
    /// Signed, 2 bits.
    S2 "S2" 26 26 Some(2);
    /// Signed, 4 bits.
    S4 "S4" 21 21 Some(4);
    /// Signed, 8 bits.
    S8 "S8" 2 2 Some(8);
    /// Signed, 16 bits.
    S16 "S16" 3 3 Some(16);
    /// Signed, 32 bits.
    S32 "S32" 4 4 Some(32);
    /// Signed, 64 bits.
    S64 "S64" 5 5 Some(64);
    /// Unsigned, 1 bit.
    U1 "U1" 33 31 Some(1);
    /// Unsigned, 2 bits.
    U2 "U2" 27 27 Some(2);
    /// Unsigned, 4 bits.
    U4 "U4" 22 22 Some(4);
    /// Unsigned, 8 bits.
    U8 "U8" 6 6 Some(8);
    /// Unsigned, 16 bits.
    U16 "U16" 7 7 Some(16);
    /// Unsigned, 32 bits.
    U32 "U32" 8 8 Some(32);
    /// Unsigned, 64 bits.
    U64 "U64" 9 9 Some(64);
    /// IEEE half precision.
    F16 "F16" 10 10 Some(16);
    /// IEEE single precision.
    F32 "F32" 11 11 Some(32);
    /// IEEE double precision.
    F64 "F64" 12 12 Some(64);
    /// The upper half of a single-precision float.
    BF16 "BF16" 16 16 Some(16);
    /// Complex, two F32.
    C64 "C64" 15 15 Some(64);
    /// Complex, two F64.
    C128 "C128" 18 18 Some(128);
    /// Orders side effects; holds no data.
    Token "TOKEN" 17 17 None;
    /// Known only to the device.
    Opaque "OPAQUE" 14 14 None;
    /// 8-bit float: 3 exponent and 4 mantissa bits.
    F8E3M4 "F8E3M4" 29 29 Some(8);
    /// 8-bit float: 4 exponent and 3 mantissa bits.
    F8E4M3 "F8E4M3" 28 28 Some(8);
    /// As F8E4M3, finite values and NaN only.
    F8E4M3FN "F8E4M3FN" 20 20 Some(8);
    /// As F8E4M3FN, exponent bias 11, no negative zero.
    F8E4M3B11FNUZ "F8E4M3B11FNUZ" 23 23 Some(8);
    /// As F8E4M3FN, no negative zero.
    F8E4M3FNUZ "F8E4M3FNUZ" 25 25 Some(8);
    /// 8-bit float: 5 exponent and 2 mantissa bits.
    F8E5M2 "F8E5M2" 19 19 Some(8);
    /// As F8E5M2, finite values and NaN only, no negative zero.
    F8E5M2FNUZ "F8E5M2FNUZ" 24 24 Some(8);
    /// 8-bit exponent, no sign, no mantissa.
    F8E8M0FNU "F8E8M0FNU" 31 33 Some(8);
    /// 4-bit float: 2 exponent bits and 1 mantissa bit.
    F4E2M1FN "F4E2M1FN" 30 32 Some(4);
    /// Byte strings of any length.
    String "STRING" 99 99 None;
    /// 6-bit float: 2 exponent and 3 mantissa bits. Known to builds since version 4.
    F6E2M3FN "F6E2M3FN" 34 36 Some(6);
    /// 6-bit float: 3 exponent and 2 mantissa bits. Known to builds since version 4.
    F6E3M2FN "F6E3M2FN" 35 35 Some(6);
}

impl DType {
    /// Returns the size of an element in bytes; `None` for types without a fixed size and for types
    /// smaller than a byte.
    pub const fn byte_size(self) -> Option<usize> {
        match self.bits() {
            Some(bits) if bits % 8 == 0 => Some((bits / 8) as usize),
            _ => None,
        }
    }

    /// Returns the size in bytes of an element that is stored in whole bytes, as in messages and in
    /// a device state; `None` for types without a fixed size.
    pub const fn unpacked_byte_size(self) -> Option<u32> {
        match self.bits() {
            Some(bits) => Some(bits.div_ceil(8)),
            None => None,
        }
    }

    const fn first_version(self) -> i32 {
        match self {
            Self::F6E2M3FN | Self::F6E3M2FN => SIX_BIT_FLOATS_SINCE,
            _ => 0,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|dtype| dtype.name() == text)
            .copied()
            .ok_or_else(|| IfrtError::text("DType", text, 0, "a name such as F32 or F8E4M3FN"))
    }
}

described_by_bytes! {
    /// Writes format 0 at every version; the 6-bit floats are refused for readers that would read
    /// them as invalid.
    ToProto,
    /// Accepts format 0 and negative numbers. An unknown kind is read as [`DType::Invalid`]; strict
    /// mode refuses it as too new.
    FromProto for DType as DTypeProto
}

impl WireFormat for DType {
    const NAME: &'static str = "DType";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        let first = self.first_version();
        if version.number() < first {
            let feature = format!("the element type {self}");
            return Err(EncodeError::unsupported_at_version(Self::NAME, feature, version, first));
        }
        Ok(())
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        self.can_write(version)?;
        out.number(2, FORMATS.for_request(version)?);
        out.number(1, self.to_wire());
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut kind, mut recorded) = (0, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => kind = value.number()?,
                2 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let dtype = Self::from_wire(kind);
        if dtype == Self::Invalid && kind != 0 && options.is_strict() {
            return Err(DecodeError::unknown_value(Self::NAME, "kind", i64::from(kind)));
        }
        Ok(dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{ErrorKind, FromProto as _, ToProto as _, Validation},
        version::{SerDesAnyVersionAccessor, VersionRange},
    };

    #[test]
    fn every_number_of_the_wire_and_of_the_memory_maps_both_ways() {
        assert_eq!(DType::ALL.len(), 36);
        for dtype in DType::ALL {
            assert_eq!(DType::from_wire(dtype.to_wire()), *dtype);
            assert_eq!(DType::from_in_memory_number(dtype.in_memory_number()), Some(*dtype));
            assert_eq!(dtype.to_string().parse(), Ok(*dtype));
        }
        let differ = DType::ALL.iter().filter(|dtype| dtype.to_wire() != dtype.in_memory_number());
        let differ: Vec<_> = differ.map(|dtype| dtype.name()).collect();
        assert_eq!(differ, ["S1", "U1", "F8E8M0FNU", "F4E2M1FN", "F6E2M3FN"]);
    }

    #[test]
    fn reading_any_number_is_idempotent() {
        for number in (-3..140).chain([i32::MIN, i32::MAX]) {
            let once = DType::from_wire(number);
            assert_eq!(DType::from_wire(once.to_wire()), once, "{number}");
        }
    }

    #[test]
    fn sizes_in_bits_and_bytes_follow_the_table() {
        use DType::*;
        let table: [(Option<u32>, Option<usize>, &[DType]); 9] = [
            (None, None, &[Invalid, Token, Opaque, String]),
            (Some(1), None, &[S1, U1]),
            (Some(2), None, &[S2, U2]),
            (Some(4), None, &[S4, U4, F4E2M1FN]),
            (Some(6), None, &[F6E2M3FN, F6E3M2FN]),
            (
                Some(8),
                Some(1),
                &[
                    Pred,
                    S8,
                    U8,
                    F8E3M4,
                    F8E4M3,
                    F8E4M3FN,
                    F8E4M3B11FNUZ,
                    F8E4M3FNUZ,
                    F8E5M2,
                    F8E5M2FNUZ,
                    F8E8M0FNU,
                ],
            ),
            (Some(16), Some(2), &[S16, U16, F16, BF16]),
            (Some(32), Some(4), &[S32, U32, F32]),
            (Some(64), Some(8), &[S64, U64, F64, C64]),
        ];
        let rows = table.into_iter().flat_map(|(bits, bytes, dtypes)| {
            dtypes.iter().map(move |dtype| (*dtype, bits, bytes))
        });
        let rows: Vec<_> = rows.chain([(C128, Some(128), Some(16))]).collect();
        assert_eq!(rows.len(), DType::ALL.len());
        for (dtype, bits, bytes) in rows {
            assert_eq!((dtype.bits(), dtype.byte_size()), (bits, bytes), "{dtype}");
        }
    }

    #[test]
    fn an_unknown_kind_is_invalid_and_in_strict_mode_too_new() {
        let proto = DTypeProto { kind: 77, version_number: 0 };
        let options = DeserializeOptions::new();
        assert_eq!(DType::from_proto(&proto, &options), Ok(DType::Invalid));
        let error =
            DType::from_proto(&proto, &options.with_validation(Validation::Strict)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooNew);
        assert!(error.to_string().contains("77"), "{error}");
    }

    #[test]
    fn six_bit_floats_are_refused_for_readers_that_would_lose_them() {
        for number in 0..=VersionRange::<crate::version::Ifrt>::supported().maximum() {
            let version = SerDesAnyVersionAccessor::get(number).unwrap();
            assert_eq!(DType::F6E2M3FN.to_proto(version).is_ok(), number >= 4, "{number}");
            assert_eq!(
                DType::S1.to_proto(version).unwrap(),
                DTypeProto { kind: 32, version_number: 0 }
            );
        }
        let error =
            DType::F6E3M2FN.to_proto(SerDesAnyVersionAccessor::get(3).unwrap()).unwrap_err();
        assert!(error.to_string().contains("the element type F6E3M2FN"), "{error}");
        assert!(error.to_string().contains("version 4 is the first"), "{error}");
        assert_eq!(DType::F6E3M2FN.minimum_version().unwrap().number(), 4);
    }

    #[test]
    fn negative_recorded_number_passes_and_a_future_one_is_too_new() {
        let options = DeserializeOptions::new();
        let read =
            |version_number| DType::from_proto(&DTypeProto { kind: 11, version_number }, &options);
        assert_eq!(read(-1), Ok(DType::F32));
        assert_eq!(read(7).unwrap_err().kind(), ErrorKind::TooNew);
        assert_eq!(read(3).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
