//! Numbers as Python reads them.

/// Parses an integer as `int(text, 0)` does, and as octal with a leading zero; returns its value,
/// if it fits.
///
/// Returns `None` for text that is not an integer; values beyond 65 bits are saturated, as no field
/// holds them.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let plus = signed && !negative;
    let prefix = digits.get(..2).unwrap_or_default();
    let (radix, digits) = match prefix {
        "0x" | "0X" => (16, underscore_after_prefix(digits)),
        "0o" | "0O" => (8, underscore_after_prefix(digits)),
        "0b" | "0B" => (2, underscore_after_prefix(digits)),
        _ if digits.len() > 1
            && digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            // C's octal form. Python itself accepts only zeros here, and so does the parser after a
            // plus sign.
            if plus && digits.bytes().any(|byte| byte != b'0') {
                return None;
            }
            (8, digits)
        }
        _ if digits.starts_with('0') && digits.bytes().any(|byte| !matches!(byte, b'0' | b'_')) => {
            return None;
        }
        _ => (10, digits),
    };
    let mut value = 0_i128;
    let mut after_digit = false;
    for character in digits.chars() {
        if character == '_' {
            if !after_digit {
                return None;
            }
            after_digit = false;
            continue;
        }
        let digit = character.to_digit(radix)?;
        value = (value * i128::from(radix) + i128::from(digit)).min(1 << 80);
        after_digit = true;
    }
    if !after_digit {
        return None;
    }
    Some(if negative { -value } else { value })
}

/// Returns true for an integer other than zero in C's octal form, which Python's own parser of
/// integers refuses.
pub(super) fn is_octal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.bytes().any(|byte| byte != b'0')
}

/// Returns the digits behind a prefix like `0x`; one underscore may come between.
fn underscore_after_prefix(digits: &str) -> &str {
    let rest = digits.get(2..).unwrap_or_default();
    rest.strip_prefix('_').unwrap_or(rest)
}

/// Returns a floating-point number as Python's text parser reads it; `old` selects the parser of
/// protobuf 4, which accepts leading zeros, but no `F`.
pub(super) fn float(text: &str, old: bool) -> Option<f64> {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let mut bytes = magnitude.bytes();
    if !old && bytes.next() == Some(b'0') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    if let Some(value) = python_float(text) {
        return Some(value);
    }
    match magnitude.to_ascii_lowercase().as_str() {
        "inff" | "infinityf" => Some(f64::INFINITY),
        "nanf" if magnitude == text => Some(f64::NAN),
        _ if old => python_float(text.trim_end_matches('f')),
        _ => python_float(text.trim_end_matches(['f', 'F'])),
    }
}

/// Parses like Python's `float(text)`: digits may be grouped by single underscores.
fn python_float(text: &str) -> Option<f64> {
    if !text.contains('_') {
        return text.parse().ok();
    }
    let bytes = text.as_bytes();
    let is_digit = |position: Option<usize>| {
        position.and_then(|position| bytes.get(position)).is_some_and(|byte| byte.is_ascii_digit())
    };
    for (position, byte) in bytes.iter().enumerate() {
        if *byte == b'_'
            && !(is_digit(position.checked_sub(1)) && is_digit(position.checked_add(1)))
        {
            return None;
        }
    }
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_python_reads_them() {
        let good = [
            ("0", 0),
            ("12", 12),
            ("-5", -5),
            ("+5", 5),
            ("0x1F", 31),
            ("-0X1f", -31),
            ("0o17", 15),
            ("017", 15),
            ("-017", -15),
            ("0b101", 5),
            ("1_000", 1000),
            ("0x_1", 1),
            ("00", 0),
            ("+00", 0),
            ("0_0", 0),
        ];
        for (text, value) in good {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in [
            "", "-", "08", "0x", "1__0", "_1", "1_", "1.0", "1e3", "+010", "01_0", "0xg", "a", "1f",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert!(integer(&"9".repeat(4000)).unwrap() > i128::from(u64::MAX));
    }

    #[test]
    fn floats_are_read_as_python_reads_them() {
        for text in [
            "1",
            "1.5",
            ".5",
            "1.",
            "1e5",
            "-1e-5",
            "1.0f",
            "inf",
            "-INF",
            "infinityf",
            "nan",
            "nanf",
            "1_0.5",
            "0.5",
            "0",
        ] {
            assert!(float(text, false).is_some() && float(text, true).is_some(), "{text}");
        }
        for text in ["", "0x10", "1_", "f", "1..0", "e5", "true"] {
            assert!(float(text, false).is_none() && float(text, true).is_none(), "{text}");
        }
        for text in ["01", "-01.5", "00", "00f"] {
            assert!(float(text, false).is_none() && float(text, true).is_some(), "{text}");
        }
        assert!(float("0.5F", false).is_some() && float("0.5F", true).is_none());
    }
}
