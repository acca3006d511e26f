//! Recognises strings that Python rejects as names or as integers.
//!
//! Decides ASCII strings, for which every release of Python gives the same answer; strings with
//! other letters are undecided. Does not depend on the use of a name.

/// The keywords of Python since 3.7, which are not identifiers.
const KEYWORDS: [&[u8]; 35] = [
    b"False",
    b"None",
    b"True",
    b"and",
    b"as",
    b"assert",
    b"async",
    b"await",
    b"break",
    b"class",
    b"continue",
    b"def",
    b"del",
    b"elif",
    b"else",
    b"except",
    b"finally",
    b"for",
    b"from",
    b"global",
    b"if",
    b"import",
    b"in",
    b"is",
    b"lambda",
    b"nonlocal",
    b"not",
    b"or",
    b"pass",
    b"raise",
    b"return",
    b"try",
    b"while",
    b"with",
    b"yield",
];

/// Returns true if a string is certainly not an identifier.
pub(super) fn is_no_identifier(name: &[u8]) -> bool {
    let Some((first, rest)) = name.split_first() else { return true };
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.is_ascii()
        && !(is_letter(first) && rest.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit()))
}

/// Returns true if a string is certainly not a valid name of a named tuple (`is_type`) or of one of
/// its fields, which may not begin with an underscore.
pub(super) fn is_no_field(name: &[u8], is_type: bool) -> bool {
    let is_hidden = !is_type && name.first() == Some(&b'_');
    is_hidden || is_no_identifier(name) || KEYWORDS.contains(&name)
}

/// Returns the name of a parameter as TensorFlow derives it from a string: each byte that is
/// neither a letter nor a digit becomes an underscore, and `arg_` is put before a name that does
/// not begin with a letter. `None` if the string is empty or not ASCII.
pub(super) fn parameter_name(name: &[u8]) -> Option<impl Iterator<Item = u8>> {
    let first = name.first()?;
    if !name.is_ascii() {
        return None;
    }
    let beginning: &[u8] = if first.is_ascii_alphabetic() { b"" } else { b"arg_" };
    let escaped = |byte: &u8| if byte.is_ascii_alphanumeric() { *byte } else { b'_' };
    Some(beginning.iter().copied().chain(name.iter().map(escaped)))
}

/// Returns true if Python certainly rejects a string as an integer. Python accepts spaces around
/// it, a sign, and single underscores between digits.
pub(super) fn is_no_integer(text: &[u8]) -> bool {
    let digits = text.trim_ascii();
    let digits = digits.strip_prefix(b"-").or(digits.strip_prefix(b"+")).unwrap_or(digits);
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    // A string with control characters is undecided: Python treats some of them as spaces.
    let is_printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    text.iter().all(is_printable) && !digits.split(|byte| *byte == b'_').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_python_does_and_letters_beyond_ascii_are_not() {
        for name in ["FullArgSpec", "_a", "a1", "é"] {
            assert!(!is_no_identifier(name.as_bytes()), "{name}");
        }
        for name in ["", "1a", "a-b", "a b"] {
            assert!(is_no_identifier(name.as_bytes()), "{name}");
        }
        for (name, as_field, as_type) in [
            ("args", false, false),
            ("_args", true, false),
            ("class", true, true),
            ("", true, true),
        ] {
            assert_eq!(is_no_field(name.as_bytes(), false), as_field, "{name}");
            assert_eq!(is_no_field(name.as_bytes(), true), as_type, "{name}");
        }
    }

    #[test]
    fn a_parameter_gets_a_name_that_python_takes() {
        for (name, expected) in [
            ("x", Some("x")),
            ("a b/c", Some("a_b_c")),
            ("1x", Some("arg_1x")),
            ("_x", Some("arg__x")),
            ("", None),
            ("é", None),
        ] {
            let made: Option<Vec<u8>> = parameter_name(name.as_bytes()).map(Iterator::collect);
            assert_eq!(made.as_deref(), expected.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn a_number_is_what_python_makes_one_of() {
        for text in ["0", "12", "-1", "+3", " 4 ", "1_0", "٣", "\u{1c}7"] {
            assert!(!is_no_integer(text.as_bytes()), "{text:?}");
        }
        for text in ["", " ", "x", "0x", "1__0", "_1", "1_", "--1", "1.0"] {
            assert!(is_no_integer(text.as_bytes()), "{text:?}");
        }
    }
}
