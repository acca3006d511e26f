//! Distance of elements as numbers, and comparison with a tolerance. Depends only on the encodings.

use serdes::ifrt::DType;

/// Tolerance for comparing two numbers: A and B count as equal if |A - B| <= absolute + relative *
/// |B|.
///
/// The right side, and the left one unless both are integers, are computed in double precision.
/// NaNs equal each other and nothing else, an infinity only itself. Distance and size of complex
/// numbers are those in the plane; booleans are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    relative: f64,
    absolute: f64,
}

impl Tolerance {
    /// Creates a tolerance with parts of at least 0, including infinity; `None` for others.
    pub fn new(relative: f64, absolute: f64) -> Option<Self> {
        (relative >= 0.0 && absolute >= 0.0).then_some(Self { relative, absolute })
    }

    /// Returns the permitted distance from a number of this size.
    fn bound(self, size: f64) -> f64 {
        // Avoid 0 times infinity, which is NaN.
        let share = if self.relative == 0.0 || size == 0.0 { 0.0 } else { self.relative * size };
        self.absolute + share
    }
}

/// The value of an element.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i128),
    Real(f64),
    Complex(f64, f64),
}

impl Number {
    /// Decodes the value of one element, little endian, one byte for types narrower than a byte;
    /// `None` for types without numbers.
    fn of(dtype: DType, bytes: &[u8]) -> Option<Self> {
        Some(match dtype {
            DType::C64 => {
                let part = |at| f64::from(f32::from_le_bytes(array(bytes, at)));
                Self::Complex(part(0), part(4))
            }
            DType::C128 => {
                let part = |at| f64::from_le_bytes(array(bytes, at));
                Self::Complex(part(0), part(8))
            }
            _ => match integer(dtype, bytes) {
                Some(value) => Self::Integer(value),
                None => Self::Real(float(dtype, bytes)?),
            },
        })
    }

    fn parts(self) -> (f64, f64) {
        match self {
            Self::Integer(value) => (value as f64, 0.0),
            Self::Real(value) => (value, 0.0),
            Self::Complex(real, imaginary) => (real, imaginary),
        }
    }

    fn is_nan(self) -> bool {
        let (real, imaginary) = self.parts();
        real.is_nan() || imaginary.is_nan()
    }

    fn is_infinite(self) -> bool {
        let (real, imaginary) = self.parts();
        real.is_infinite() || imaginary.is_infinite()
    }
}

/// Returns the distance of two elements of one type: the absolute difference, for complex numbers
/// in the plane; NaN if only one is NaN; `None` for types without numbers.
///
/// `a` and `b` are one element each, little endian, one byte for types narrower than a byte.
pub(super) fn distance(dtype: DType, a: &[u8], b: &[u8]) -> Option<f64> {
    let (a, b) = (Number::of(dtype, a)?, Number::of(dtype, b)?);
    Some(match (a, b) {
        // Exact for 64-bit integers that are close to each other and far from zero.
        (Number::Integer(a), Number::Integer(b)) => a.abs_diff(b) as f64,
        _ if a.is_nan() || b.is_nan() => {
            if a.is_nan() && b.is_nan() {
                0.0
            } else {
                f64::NAN
            }
        }
        _ => apart(a.parts(), b.parts()),
    })
}

/// Returns the distance of two points; infinities of the same sign coincide.
fn apart(a: (f64, f64), b: (f64, f64)) -> f64 {
    let along = |a: f64, b: f64| if a == b { 0.0 } else { (a - b).abs() };
    along(a.0, b.0).hypot(along(a.1, b.1))
}

/// Returns true if two elements of one type are within the tolerance; `false` for types without
/// numbers.
pub(super) fn is_close(dtype: DType, a: &[u8], b: &[u8], tolerance: Tolerance) -> bool {
    let Some((a, b)) = Number::of(dtype, a).zip(Number::of(dtype, b)) else { return false };
    let size = b.parts().0.hypot(b.parts().1);
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => {
            // The fraction of a bound does not matter for integers; the conversion saturates.
            a.abs_diff(b) <= tolerance.bound(size) as u128
        }
        _ if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
        _ if a.is_infinite() || b.is_infinite() => a.parts() == b.parts(),
        _ => apart(a.parts(), b.parts()) <= tolerance.bound(size),
    }
}

/// Returns `N` bytes from `at`, padded with zeros if the element is shorter.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    array
}

/// Decodes an integer or a boolean.
pub(super) fn integer(dtype: DType, bytes: &[u8]) -> Option<i128> {
    let byte = array::<1>(bytes, 0)[0];
    // Sign-extend the low bits of a narrow signed element.
    let narrow = |bits: u32| i128::from((byte << (8 - bits)).cast_signed() >> (8 - bits));
    Some(match dtype {
        DType::Pred | DType::U8 => byte.into(),
        DType::U1 => (byte & 1).into(),
        DType::U2 => (byte & 3).into(),
        DType::U4 => (byte & 15).into(),
        DType::S1 => narrow(1),
        DType::S2 => narrow(2),
        DType::S4 => narrow(4),
        DType::S8 => narrow(8),
        DType::S16 => i16::from_le_bytes(array(bytes, 0)).into(),
        DType::S32 => i32::from_le_bytes(array(bytes, 0)).into(),
        DType::S64 => i64::from_le_bytes(array(bytes, 0)).into(),
        DType::U16 => u16::from_le_bytes(array(bytes, 0)).into(),
        DType::U32 => u32::from_le_bytes(array(bytes, 0)).into(),
        DType::U64 => u64::from_le_bytes(array(bytes, 0)).into(),
        _ => return None,
    })
}

/// Meaning of the largest exponent of a small float.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinities and NaNs as in IEEE 754.
    Ieee,
    /// All ones except the sign is NaN; no infinities ("fn").
    OneNan,
    /// Negative zero is NaN; no infinities ("fnuz").
    NegativeZero,
    /// Every code is a number ("fn" of 4 and 6 bits).
    None,
}

/// Returns the bits of the exponent and of the mantissa, the exponent's bias, and the meaning of
/// its largest value.
fn format(dtype: DType) -> Option<(u32, u32, i32, Special)> {
    Some(match dtype {
        DType::F16 => (5, 10, 15, Special::Ieee),
        DType::BF16 => (8, 7, 127, Special::Ieee),
        DType::F8E3M4 => (3, 4, 3, Special::Ieee),
        DType::F8E4M3 => (4, 3, 7, Special::Ieee),
        DType::F8E5M2 => (5, 2, 15, Special::Ieee),
        DType::F8E4M3FN => (4, 3, 7, Special::OneNan),
        DType::F8E4M3B11FNUZ => (4, 3, 11, Special::NegativeZero),
        DType::F8E4M3FNUZ => (4, 3, 8, Special::NegativeZero),
        DType::F8E5M2FNUZ => (5, 2, 16, Special::NegativeZero),
        DType::F6E2M3FN => (2, 3, 1, Special::None),
        DType::F6E3M2FN => (3, 2, 3, Special::None),
        DType::F4E2M1FN => (2, 1, 1, Special::None),
        _ => return None,
    })
}

/// Decodes a floating-point element.
pub(super) fn float(dtype: DType, bytes: &[u8]) -> Option<f64> {
    match dtype {
        DType::F32 => return Some(f32::from_le_bytes(array(bytes, 0)).into()),
        DType::F64 => return Some(f64::from_le_bytes(array(bytes, 0))),
        DType::F8E8M0FNU => {
            let exponent = array::<1>(bytes, 0)[0];
            let value = 2_f64.powi(i32::from(exponent) - 127);
            return Some(if exponent == 0xff { f64::NAN } else { value });
        }
        _ => {}
    }
    let (exponent_bits, mantissa_bits, bias, special) = format(dtype)?;
    let code = u32::from(u16::from_le_bytes(array(bytes, 0)));
    let mantissa = code & ((1 << mantissa_bits) - 1);
    let exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    let negative = code >> (mantissa_bits + exponent_bits) & 1 == 1;
    let (all_exponent, all_mantissa) = ((1 << exponent_bits) - 1, (1 << mantissa_bits) - 1);
    match special {
        Special::Ieee if exponent == all_exponent => {
            let value = if mantissa == 0 { f64::INFINITY } else { f64::NAN };
            return Some(if negative { -value } else { value });
        }
        Special::OneNan if (exponent, mantissa) == (all_exponent, all_mantissa) => {
            return Some(f64::NAN);
        }
        Special::NegativeZero if negative && exponent == 0 && mantissa == 0 => {
            return Some(f64::NAN);
        }
        _ => {}
    }
    let fraction = f64::from(mantissa) / f64::from(1_u32 << mantissa_bits);
    let exponent = exponent.cast_signed();
    let value = if exponent == 0 {
        fraction * 2_f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2_f64.powi(exponent - bias)
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_every_format_have_their_values() {
        let cases: [(DType, u16, f64); 18] = [
            (DType::F16, 0x3c00, 1.0),
            (DType::F16, 0x0001, 2_f64.powi(-24)),
            (DType::F16, 0xfc00, f64::NEG_INFINITY),
            (DType::BF16, 0xc040, -3.0),
            (DType::F8E3M4, 0x30, 1.0),
            (DType::F8E4M3, 0x78, f64::INFINITY),
            (DType::F8E5M2, 0x7b, 57344.0),
            (DType::F8E4M3FN, 0x7e, 448.0),
            (DType::F8E4M3FN, 0x01, 2_f64.powi(-9)),
            (DType::F8E4M3FNUZ, 0x7f, 240.0),
            (DType::F8E4M3B11FNUZ, 0x7f, 30.0),
            (DType::F8E5M2FNUZ, 0x7f, 57344.0),
            (DType::F8E8M0FNU, 0x80, 2.0),
            (DType::F6E2M3FN, 0x1f, 7.5),
            (DType::F6E3M2FN, 0x1f, 28.0),
            (DType::F6E3M2FN, 0x3f, -28.0),
            (DType::F4E2M1FN, 0x07, 6.0),
            (DType::F4E2M1FN, 0x09, -0.5),
        ];
        for (dtype, code, value) in cases {
            assert_eq!(float(dtype, &code.to_le_bytes()), Some(value), "{dtype} {code:#x}");
        }
        for (dtype, code) in [
            (DType::F16, 0x7c01_u16),
            (DType::F8E4M3FN, 0xff),
            (DType::F8E4M3FNUZ, 0x80),
            (DType::F8E8M0FNU, 0xff),
        ] {
            assert!(float(dtype, &code.to_le_bytes()).is_some_and(f64::is_nan), "{dtype}");
        }
    }

    #[test]
    fn integers_are_compared_exactly() {
        let far = |value: i64| (i64::MAX - value).to_le_bytes();
        assert_eq!(distance(DType::S64, &far(0), &far(1)), Some(1.0));
        assert_eq!(
            distance(DType::S64, &i64::MIN.to_le_bytes(), &i64::MAX.to_le_bytes()),
            Some(2_f64.powi(64))
        );
        assert_eq!(distance(DType::S4, &[0x08], &[0x07]), Some(15.0));
        assert_eq!(distance(DType::S1, &[1], &[0]), Some(1.0));
        assert_eq!(distance(DType::U2, &[3], &[0]), Some(3.0));
    }

    #[test]
    fn complex_numbers_are_as_far_apart_as_in_the_plane() {
        let bytes = |re: f32, im: f32| [re.to_le_bytes(), im.to_le_bytes()].concat();
        assert_eq!(distance(DType::C64, &bytes(1.0, 1.0), &bytes(4.0, 5.0)), Some(5.0));
    }

    #[test]
    fn closeness_is_relative_to_the_second_and_exact_for_integers() {
        let close = |a: f64, b: f64, relative, absolute| {
            let tolerance = Tolerance::new(relative, absolute).unwrap();
            is_close(DType::F64, &a.to_le_bytes(), &b.to_le_bytes(), tolerance)
        };
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert!(close(1.0, 1.5, 0.0, 0.5) && !close(1.0, 1.5, 0.0, 0.4));
        // 10 percent of 110 are enough, 10 percent of 100 are not.
        assert!(close(100.0, 110.5, 0.1, 0.0) && !close(110.5, 100.0, 0.1, 0.0));
        assert!(close(nan, nan, 0.0, 0.0) && !close(nan, 1.0, 9.0, infinity));
        assert!(close(0.0, -0.0, 0.0, 0.0));
        assert!(close(infinity, infinity, 0.0, 0.0) && !close(infinity, -infinity, 9.0, 9.0));
        assert!(!close(1.0, infinity, 9.0, infinity) && !close(infinity, 1.0, 9.0, infinity));
        assert!(close(1.0, 0.0, infinity, 1.0) && !close(1.1, 0.0, infinity, 1.0));
        assert!(close(f64::MAX, -f64::MAX, 0.0, infinity));

        let whole = |a: i64, b: i64, relative, absolute| {
            let tolerance = Tolerance::new(relative, absolute).unwrap();
            is_close(DType::S64, &a.to_le_bytes(), &b.to_le_bytes(), tolerance)
        };
        assert!(
            whole(i64::MAX, i64::MAX - 1, 0.0, 1.0) && !whole(i64::MAX, i64::MAX - 1, 0.0, 0.9)
        );
        assert!(whole(i64::MIN, i64::MAX, 0.0, infinity) && !whole(i64::MIN, i64::MAX, 0.0, 1e19));
        assert!(whole(-90, -100, 0.1, 0.0) && !whole(-89, -100, 0.1, 0.0));

        let complex = |re: f32, im: f32| [re.to_le_bytes(), im.to_le_bytes()].concat();
        let near = Tolerance::new(0.0, 5.0).unwrap();
        assert!(is_close(DType::C64, &complex(1.0, 1.0), &complex(4.0, 5.0), near));
        assert!(!is_close(DType::C64, &complex(1.0, 0.9), &complex(4.0, 5.0), near));
        let (half, other) = (complex(f32::NAN, 1.0), complex(2.0, f32::NAN));
        assert!(is_close(DType::C64, &half, &other, near));
        assert!(!is_close(DType::Token, &[0], &[0], near));
        // Eight-bit floats: 448 and NaN.
        assert!(!is_close(
            DType::F8E4M3FN,
            &[0x7e],
            &[0x7f],
            Tolerance::new(0.0, infinity).unwrap()
        ));
        assert!(is_close(DType::F8E4M3FN, &[0xff], &[0x7f], near));
    }

    #[test]
    fn tolerances_below_zero_and_no_numbers_are_none() {
        for (relative, absolute) in [(-1.0, 0.0), (0.0, -1e-300), (f64::NAN, 0.0), (0.0, f64::NAN)]
        {
            assert!(Tolerance::new(relative, absolute).is_none(), "{relative} {absolute}");
        }
    }

    #[test]
    fn value_that_is_no_number_has_no_distance() {
        assert_eq!(distance(DType::Token, &[0], &[1]), None);
        let nan = f32::NAN.to_le_bytes();
        assert!(distance(DType::F32, &nan, &1_f32.to_le_bytes()).is_some_and(f64::is_nan));
        assert_eq!(distance(DType::F32, &nan, &(-f32::NAN).to_le_bytes()), Some(0.0));
        let infinity = f32::INFINITY.to_le_bytes();
        assert_eq!(distance(DType::F32, &infinity, &infinity), Some(0.0));
    }
}
