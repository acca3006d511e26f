//! Errors for remote files that were replaced after they were opened.

use std::{fmt, io};

/// Longest property of a server's answer that a message repeats, in characters.
const SHOWN: usize = 80;

/// Message of an error about a file that changed while it was read.
#[derive(Debug)]
struct Changed(String);

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what) = self;
        f.write_str("the file changed while it was read, or was replaced: ")?;
        write!(f, "{what}; open it again and read it again")
    }
}

impl std::error::Error for Changed {}

/// Returns the error for a file whose property `found` differs from the `expected` one.
pub fn changed(found: impl fmt::Display, expected: impl fmt::Display) -> io::Error {
    io::Error::other(Changed(format!("found {found}, expected {expected}")))
}

/// Returns true if an error is about a file that changed while it was read.
pub fn is_changed(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Changed>())
}

/// Formats a property of a file from a server as `NAME VALUE`, cut off and with control characters
/// escaped; `no NAME` if it has no value.
pub fn header_text(name: &str, value: Option<&[u8]>) -> String {
    let Some(value) = value else { return format!("no {name}") };
    let value = String::from_utf8_lossy(value);
    let shown: String = value.chars().take(SHOWN).collect();
    format!("{name} {}", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_says_what_was_found_and_does_nothing_to_a_terminal() {
        let found = header_text("ETag", Some("\u{9b}2J\"b\"".as_bytes()));
        let error = changed(found, header_text("ETag", None));
        let text = error.to_string();
        assert!(text.contains("expected no ETag; open it again"), "{text}");
        assert!(!text.contains(char::is_control), "{text:?}");
        assert!(is_changed(&error) && !is_changed(&io::Error::other("x")));
        assert!(header_text("ETag", Some(&[b'a'; 10_000])).len() < 100);
    }
}
