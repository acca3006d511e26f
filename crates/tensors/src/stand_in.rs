//! Detects placeholders of tensor files that were never fetched or never written.

use serdes_files::{ReadAt, read_at::read_up_to};

/// Number of bytes at the start of the file that are checked.
const HEAD: usize = 4096;

/// Maximum number of characters of a text that are repeated.
const SHOWN: usize = 60;

/// First bytes of a pointer of git-lfs.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Describes a file that is not a tensor file: a git-lfs pointer, a web page, a text, zeros. `None`
/// if its beginning is none of these.
pub(super) fn describe(file: &dyn ReadAt) -> Option<String> {
    let mut head = [0; HEAD];
    let head = read_up_to(file, &mut head, 0).ok()?;
    if head.is_empty() {
        return Some("an empty file".to_owned());
    }
    if head.iter().all(|byte| *byte == 0) {
        return Some("zeros, as in a file that was made and never filled".to_owned());
    }
    if head.starts_with(LFS) {
        return Some("a pointer of git-lfs to a file that was not fetched".to_owned());
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut off at the end of the head.
        Err(error) if error.error_len().is_none() && head.len() == HEAD => {
            std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let start = text.trim_start();
    let begins =
        |word: &str| start.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if begins("<!doctype html") || begins("<html") {
        return Some("a page of HTML, perhaps one that asks to log in".to_owned());
    }
    let line: String = start.lines().next()?.chars().take(SHOWN).collect();
    Some(format!("a text that begins {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_in_for_a_file_is_described() {
        for (bytes, expected) in [
            (&b""[..], Some("an empty file")),
            (&[0; 5000], Some("zeros, as in a file that was made and never filled")),
            (b"Entry not found", Some("a text that begins \"Entry not found\"")),
            (
                b"version https://git-lfs.github.com/spec/v1\n",
                Some("a pointer of git-lfs to a file that was not fetched"),
            ),
            (b"\n<!DOCTYPE html><p>", Some("a page of HTML, perhaps one that asks to log in")),
            (b"\x80\x02", None),
            (b"a\x01", None),
        ] {
            assert_eq!(describe(&bytes.to_vec()).as_deref(), expected, "{bytes:?}");
        }
        let long = "\u{e9}".repeat(HEAD);
        assert!(describe(&format!("x{long}").into_bytes()).unwrap().len() < 4 * SHOWN);
    }
}
