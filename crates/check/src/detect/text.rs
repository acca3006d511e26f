//! Texts: HTML, JSON, and anything readable.
//!
//! A binary graph is never text: the tag of a node's operation, without which no importer accepts a
//! node, is the control character 0x12, and so are the tags of libraries (0x12) and of the numbers
//! of versions (0x08).

use std::{io, path::Path};

use serde::de::IgnoredAny;
use serdes_checkpoints::checkpoint_state::begins_like_state;
use serdes_tensors as tensor_io;

use super::{
    super::Kind,
    file::{File, HEAD},
};

/// The first bytes of a git-lfs pointer, which stands in place of a file that was not fetched.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Number of bytes that are searched for the beginning of an HTML page.
const PREAMBLE: usize = 1024;

/// Returns true if the bytes are a pointer of git-lfs.
pub(in super::super) fn is_pointer_of_git_lfs(head: &[u8]) -> bool {
    head.starts_with(LFS)
}

/// Returns the kind of a text with a mark, which takes precedence over the name.
pub(super) fn marked(file: &File<'_>) -> Option<Kind> {
    let head = without_mark(file.head);
    let start = head.trim_ascii_start();
    if is_html(start) {
        Some(Kind::Html)
    } else if matches!(start.first(), Some(b'{' | b'[')) && is_json(head, file.is_whole()) {
        let is_index =
            tensor_io::is_index(Path::new(file.name)) || tensor_io::begins_like_index(head);
        Some(if is_index { Kind::ShardIndex } else { Kind::Json })
    } else if begins_like_state(head) {
        Some(Kind::CheckpointState)
    } else if is_pointer_of_git_lfs(head) {
        Some(Kind::Text)
    } else {
        None
    }
}

/// Returns the bytes without the byte order mark of UTF-8.
fn without_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)
}

fn is_html(start: &[u8]) -> bool {
    let begins = |word: &str| {
        start.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    };
    if ["<!doctype html", "<html", "<head", "<body"].iter().any(|word| begins(word)) {
        return true;
    }
    let preamble = start.get(..start.len().min(PREAMBLE)).unwrap_or_default();
    (begins("<!--") || begins("<?xml"))
        && preamble.windows(5).any(|word| word.eq_ignore_ascii_case(b"<html"))
}

/// Returns true if the bytes, as far as they were read, are one or more JSON values and nothing
/// else.
pub(super) fn is_json(bytes: &[u8], whole: bool) -> bool {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    let mut any = false;
    loop {
        match values.next() {
            Some(Ok(_)) => any = true,
            // Cut off, by the limit or already in the file: the bytes up to there are valid.
            Some(Err(error)) => return error.is_eof() && (any || !whole || bytes.len() > 1),
            None => return any,
        }
    }
}

/// Returns true if both ends of a file are text.
pub(super) fn is_text(file: &File<'_>) -> io::Result<bool> {
    if matches!(file.head, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Ok(true);
    }
    let Some(high) = high_bytes(file.head, file.is_whole()) else { return Ok(false) };
    if !has_words(file.head) || is_cut_in_a_name(file) {
        return Ok(false);
    }
    if file.is_whole() {
        // A short text in an older encoding has few characters outside ASCII.
        return Ok(high * 8 <= file.head.len());
    }
    if high > 0 {
        return Ok(false);
    }
    let mut tail = [0; HEAD];
    let tail = file.read(&mut tail, file.size.saturating_sub(HEAD as u64))?;
    // The first character may be cut.
    let cut = tail.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    Ok(high_bytes(tail.get(cut..).unwrap_or_default(), true) == Some(0))
}

/// Returns true if the text has a letter, a digit or a character outside ASCII.
fn has_words(head: &[u8]) -> bool {
    head.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// Returns true if a file may be a graph that was cut off in the name of its first node: the tag
/// and length of the node and of its name can all be printable characters.
fn is_cut_in_a_name(file: &File<'_>) -> bool {
    matches!(file.head, [0x0a, node, 0x0a, length, name @ ..] if length < node && name.len() <= usize::from(*length))
}

/// Returns the number of bytes that are not UTF-8; `None` if the bytes have control characters that
/// texts do not have: all except white space, form feeds and escapes.
fn high_bytes(bytes: &[u8], whole: bool) -> Option<usize> {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    if bytes.iter().any(is_control) {
        return None;
    }
    Some(match std::str::from_utf8(bytes) {
        Ok(_) => 0,
        Err(error) if !whole && error.error_len().is_none() => 0,
        Err(_) => bytes.iter().filter(|byte| **byte >= 0x80).count(),
    })
}
