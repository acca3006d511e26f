//! Numbers on the command line, in the form in which they are printed.

use std::{fmt::Display, str::FromStr};

/// Parses a number without a plus sign, leading zeros or blanks.
pub(crate) fn plain_number<T: FromStr + Display>(text: &str) -> Option<T> {
    let number: T = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Parses a non-negative integer, for the argument parser.
pub(crate) fn whole_number<T: FromStr + Display>(text: &str) -> Result<T, String> {
    let number = plain_number(text).filter(|_| !text.starts_with('-'));
    number.ok_or_else(|| "expected a whole number without a sign".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_written_as_they_are_printed() {
        assert_eq!(plain_number::<i32>("0"), Some(0));
        assert_eq!(plain_number::<i32>("12"), Some(12));
        for text in ["+1", "-0", "01", " 1", "1 ", "1_0", "0x1", "\u{661}", "", "99999999999"] {
            assert_eq!(plain_number::<i32>(text), None, "{text:?}");
        }
        assert_eq!(whole_number::<u32>("7"), Ok(7));
        assert!(whole_number::<i32>("-7").is_err() && whole_number::<u32>("+7").is_err());
    }
}
