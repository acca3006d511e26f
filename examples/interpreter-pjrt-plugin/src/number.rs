//! Numbers of each element type, as bytes and as values to compute with.
//!
//! Floats are computed as `f64` and rounded to their type after each operation. For `+ - * /` and
//! square roots the result equals that of the type's own arithmetic. Integers are computed as
//! `i64` and truncated to their bits; a `u64` is stored as the `i64` with the same bits.

use serdes_plugin::pjrt::ElementType;

/// Element types of the interpreter, by their names in StableHLO.
pub const TYPES: &[(&str, ElementType)] = &[
    ("i1", ElementType::Pred),
    ("i8", ElementType::S8),
    ("i16", ElementType::S16),
    ("i32", ElementType::S32),
    ("i64", ElementType::S64),
    ("ui8", ElementType::U8),
    ("ui16", ElementType::U16),
    ("ui32", ElementType::U32),
    ("ui64", ElementType::U64),
    ("bf16", ElementType::BF16),
    ("f32", ElementType::F32),
    ("f64", ElementType::F64),
];

pub fn is_float(of: ElementType) -> bool {
    matches!(of, ElementType::BF16 | ElementType::F32 | ElementType::F64)
}

pub fn is_unsigned(of: ElementType) -> bool {
    use ElementType::{Pred, U8, U16, U32, U64};
    matches!(of, Pred | U8 | U16 | U32 | U64)
}

/// Rounds to the nearest value of the type, and ties to even.
pub fn round(of: ElementType, value: f64) -> f64 {
    match of {
        ElementType::F32 => f64::from(value as f32),
        ElementType::BF16 => {
            let single = value as f32;
            if single.is_nan() {
                return f64::NAN;
            }
            let bits = single.to_bits();
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000;
            f64::from(f32::from_bits(rounded))
        }
        _ => value,
    }
}

/// Truncates to the bits of the type.
pub fn wrap(of: ElementType, value: i64) -> i64 {
    match of {
        ElementType::Pred => i64::from(value != 0),
        ElementType::S8 => i64::from(value as i8),
        ElementType::S16 => i64::from(value as i16),
        ElementType::S32 => i64::from(value as i32),
        ElementType::U8 => i64::from(value as u8),
        ElementType::U16 => i64::from(value as u16),
        ElementType::U32 => i64::from(value as u32),
        _ => value,
    }
}

/// Returns a float from its bytes. Their number is the size of the type.
pub fn float_from(of: ElementType, bytes: &[u8]) -> f64 {
    match (of, bytes) {
        (ElementType::BF16, &[low, high]) => {
            f64::from(f32::from_bits(u32::from(u16::from_le_bytes([low, high])) << 16))
        }
        (ElementType::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (_, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    }
}

pub fn write_float(of: ElementType, value: f64, bytes: &mut [u8]) {
    match of {
        ElementType::BF16 => bytes.copy_from_slice(&(value as f32).to_le_bytes()[2..]),
        ElementType::F32 => bytes.copy_from_slice(&(value as f32).to_le_bytes()),
        _ => bytes.copy_from_slice(&value.to_le_bytes()),
    }
}

/// Returns an integer from at most eight bytes.
pub fn integer_from(of: ElementType, bytes: &[u8]) -> i64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    wrap(of, i64::from_le_bytes(whole))
}

pub fn write_integer(value: i64, bytes: &mut [u8]) {
    let length = bytes.len();
    bytes.copy_from_slice(&value.to_le_bytes()[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_to_even() {
        assert_eq!(round(ElementType::BF16, 1.0 + 1.0 / 256.0), 1.0);
        assert_eq!(round(ElementType::BF16, 1.0 + 3.0 / 256.0), 1.0 + 1.0 / 64.0);
        assert!(round(ElementType::BF16, f64::NAN).is_nan());
        assert_eq!(round(ElementType::BF16, f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn integers_keep_their_sign_and_their_bits() {
        assert_eq!(integer_from(ElementType::S8, &[0xff]), -1);
        assert_eq!(integer_from(ElementType::U8, &[0xff]), 255);
        assert_eq!(wrap(ElementType::U32, -1), 0xffff_ffff);
        let mut bytes = [0; 2];
        write_integer(-2, &mut bytes);
        assert_eq!(bytes, [0xfe, 0xff]);
    }
}
