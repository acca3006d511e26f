//! TensorFlow's element types: numbers, names, sizes.
//!
//! Does not depend on the source of a type number. Numbers that TensorFlow 2.21 does not know are
//! kept as numbers, so that a file of a newer release is reported as newer and not as damaged.

use std::fmt;

/// An element type of TensorFlow (`DataType` in `types.proto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DataType {
    /// 32-bit float.
    Float32,
    /// 64-bit float.
    Float64,
    /// 32-bit signed integer.
    Int32,
    /// 8-bit unsigned integer.
    Uint8,
    /// 16-bit signed integer.
    Int16,
    /// 8-bit signed integer.
    Int8,
    /// Byte strings of any length.
    String,
    /// Complex number of two 32-bit floats.
    Complex64,
    /// 64-bit signed integer.
    Int64,
    /// Truth value, one byte.
    Bool,
    /// Quantized 8-bit signed integer.
    Qint8,
    /// Quantized 8-bit unsigned integer.
    Quint8,
    /// Quantized 32-bit signed integer.
    Qint32,
    /// bfloat16.
    Bfloat16,
    /// Quantized 16-bit signed integer.
    Qint16,
    /// Quantized 16-bit unsigned integer.
    Quint16,
    /// 16-bit unsigned integer.
    Uint16,
    /// Complex number of two 64-bit floats.
    Complex128,
    /// 16-bit IEEE float.
    Float16,
    /// Handle of a resource; has no bytes of its own.
    Resource,
    /// Any value with its own serialization.
    Variant,
    /// 32-bit unsigned integer.
    Uint32,
    /// 64-bit unsigned integer.
    Uint64,
    /// 8-bit float, 5 exponent bits.
    Float8E5m2,
    /// 8-bit float, 4 exponent bits, finite.
    Float8E4m3fn,
    /// 8-bit float, 4 exponent bits, finite, unsigned zero.
    Float8E4m3fnuz,
    /// 8-bit float, 4 exponent bits, bias 11, finite, unsigned zero.
    Float8E4m3b11fnuz,
    /// 8-bit float, 5 exponent bits, finite, unsigned zero.
    Float8E5m2fnuz,
    /// 4-bit signed integer, stored in one byte.
    Int4,
    /// 4-bit unsigned integer, stored in one byte.
    Uint4,
    /// 2-bit signed integer, stored in one byte.
    Int2,
    /// 2-bit unsigned integer, stored in one byte.
    Uint2,
    /// 4-bit float, stored in one byte.
    Float4E2m1fn,
}

/// Every type with its number, TensorFlow's name, bytes per element in a bundle (0: not of fixed
/// size), and bytes of the unit whose order changes between little and big endian.
const TABLE: [(DataType, i32, &str, u64, usize); 33] = [
    (DataType::Float32, 1, "float32", 4, 4),
    (DataType::Float64, 2, "float64", 8, 8),
    (DataType::Int32, 3, "int32", 4, 4),
    (DataType::Uint8, 4, "uint8", 1, 1),
    (DataType::Int16, 5, "int16", 2, 2),
    (DataType::Int8, 6, "int8", 1, 1),
    (DataType::String, 7, "string", 0, 1),
    (DataType::Complex64, 8, "complex64", 8, 4),
    (DataType::Int64, 9, "int64", 8, 8),
    (DataType::Bool, 10, "bool", 1, 1),
    (DataType::Qint8, 11, "qint8", 1, 1),
    (DataType::Quint8, 12, "quint8", 1, 1),
    (DataType::Qint32, 13, "qint32", 4, 4),
    (DataType::Bfloat16, 14, "bfloat16", 2, 2),
    (DataType::Qint16, 15, "qint16", 2, 2),
    (DataType::Quint16, 16, "quint16", 2, 2),
    (DataType::Uint16, 17, "uint16", 2, 2),
    (DataType::Complex128, 18, "complex128", 16, 8),
    (DataType::Float16, 19, "float16", 2, 2),
    (DataType::Resource, 20, "resource", 0, 1),
    (DataType::Variant, 21, "variant", 0, 1),
    (DataType::Uint32, 22, "uint32", 4, 4),
    (DataType::Uint64, 23, "uint64", 8, 8),
    (DataType::Float8E5m2, 24, "float8_e5m2", 1, 1),
    (DataType::Float8E4m3fn, 25, "float8_e4m3fn", 1, 1),
    (DataType::Float8E4m3fnuz, 26, "float8_e4m3fnuz", 1, 1),
    (DataType::Float8E4m3b11fnuz, 27, "float8_e4m3b11fnuz", 1, 1),
    (DataType::Float8E5m2fnuz, 28, "float8_e5m2fnuz", 1, 1),
    (DataType::Int4, 29, "int4", 1, 1),
    (DataType::Uint4, 30, "uint4", 1, 1),
    (DataType::Int2, 31, "int2", 1, 1),
    (DataType::Uint2, 32, "uint2", 1, 1),
    (DataType::Float4E2m1fn, 33, "float4_e2m1fn", 1, 1),
];

impl DataType {
    /// Returns every type that TensorFlow 2.21 knows, by its number.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Self, i32, &'static str, u64, usize) {
        // The rows are in the order of the variants; a test checks this.
        TABLE.get(self as usize).unwrap_or(&TABLE[0])
    }

    /// Returns the type with `number`; `None` for 0, for reference types (above 100) and for
    /// numbers of later releases.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        let row = TABLE.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        Some(row.0)
    }

    /// Returns the number in TensorFlow's messages.
    #[must_use]
    pub fn number(self) -> i32 {
        self.row().1
    }

    /// Returns TensorFlow's name in Python (`float32`, `bfloat16`).
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Returns the type with TensorFlow's `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// Returns the number of bytes per element in a bundle; types smaller than a byte take one.
    /// `None` for strings, variants and resources.
    #[must_use]
    pub fn element_size(self) -> Option<u64> {
        Some(self.row().3).filter(|size| *size > 0)
    }

    /// Returns the number of bytes of the unit whose byte order is the writer's: half an element
    /// for complex numbers.
    #[must_use]
    pub fn swap_unit(self) -> usize {
        self.row().4
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Formats a type number for messages: the name, or the number if no known release has it.
#[must_use]
pub fn describe(number: i32) -> String {
    match DataType::from_number(number) {
        Some(known) => known.name().to_owned(),
        None => match DataType::from_number(number.wrapping_sub(100)) {
            Some(base) => format!("reference to {base}"),
            None => format!("type number {number}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_rows_agree() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(row.1 as usize, i + 1);
            assert_eq!(row.0.number(), row.1);
            assert_eq!(DataType::from_number(row.1), Some(row.0));
            assert_eq!(DataType::from_name(row.2), Some(row.0));
        }
        for number in [0, -1, 34, 101, i32::MAX, i32::MIN] {
            assert_eq!(DataType::from_number(number), None, "{number}");
        }
        assert_eq!(describe(101), "reference to float32");
    }
}
