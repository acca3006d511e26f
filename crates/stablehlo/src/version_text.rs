//! Parsing of versions.

use std::str::FromStr;

use super::{StableHloError, StableHloVersion};

/// Parses three decimal numbers with points between them.
impl FromStr for StableHloVersion {
    type Err = StableHloError;

    fn from_str(text: &str) -> Result<Self, StableHloError> {
        let invalid = || StableHloError::NoVersion { found: text.chars().take(40).collect() };
        let mut numbers = text.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
            is_number.then(|| part.parse().ok()).flatten()
        });
        let mut next = || numbers.next().flatten();
        let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
            return Err(invalid());
        };
        if numbers.next().is_some() {
            return Err(invalid());
        }
        Ok(Self { major, minor, patch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        let version: StableHloVersion = "1.13.7".parse().unwrap();
        assert_eq!(version, StableHloVersion::new(1, 13, 7));
        assert_eq!((version.to_string(), version.release().patch), ("1.13.7".to_owned(), 0));
        for wrong in ["1.2", "1.2.3.4", "1.+2.3", "a.b.c", "", "1.2.99999999999"] {
            assert!(wrong.parse::<StableHloVersion>().is_err(), "{wrong}");
        }
    }
}
