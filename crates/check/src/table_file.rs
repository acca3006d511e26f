//! Checks the files from which lookup tables are initialized when a model is loaded, reading them
//! as the operation does.
//!
//! Keys are compared by their bytes; the check that a column is a number of the table's type is
//! left to TensorFlow.
//!
//! Depends on lines and columns, but not on the model.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasher,
    io::{self, BufRead, BufReader, Read},
};

use serdes_files::ReadAt;
use serdes_graphs::graph::TableLines;

use super::{Reason, rule::messages};

/// Limit on the length of a line, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// Number of characters of a key that a message shows.
const SHOWN: usize = 64;

/// Returns the reason why a table cannot be filled from a file; `None` for a file that cannot be
/// read or has lines longer than 1 MiB.
pub(super) fn reason(file: &dyn ReadAt, lines: &TableLines) -> Option<Reason> {
    let size = file.size().ok()?;
    let mut reader = BufReader::with_capacity(1 << 16, Bytes { file, at: 0, size });
    let mut table = Table { lines, values: HashMap::default(), hasher: Default::default() };
    let (mut line, mut count) = (Vec::new(), 0_u64);
    let wanted = u64::try_from(lines.count).ok();
    loop {
        line.clear();
        reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        let is_ended = line.last() == Some(&b'\n');
        if !is_ended && line.len() as u64 == LONGEST_LINE {
            return None;
        }
        if is_ended {
            line.pop();
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let is_over = !is_ended && line.is_empty();
        if is_over && wanted.is_some_and(|wanted| count < wanted) {
            return Some(messages::table_has_few_lines(count, lines.count).into());
        }
        if is_over || wanted.is_some_and(|wanted| count >= wanted) {
            return None;
        }
        count += 1;
        if let Some(found) = table.add(&line, count) {
            return Some(found);
        }
    }
}

/// The keys read so far.
struct Table<'l> {
    lines: &'l TableLines,
    /// The hash of each key, with the hash of its value.
    values: HashMap<u64, u64, foldhash::fast::RandomState>,
    hasher: foldhash::quality::RandomState,
}

impl Table<'_> {
    /// Adds a line with this number, counted from 1; returns the reason if it is refused.
    fn add(&mut self, line: &[u8], number: u64) -> Option<Reason> {
        let TableLines { key, value, delimiter, .. } = self.lines;
        if line.is_empty() {
            return Some(messages::table_has_empty_line(number).into());
        }
        let [delimiter] = delimiter.as_slice() else { return None };
        let last = *key.max(value);
        if last >= 0 {
            let expected = last.saturating_add(1);
            let found = line.iter().filter(|byte| *byte == delimiter).count() as i64 + 1;
            if found < expected {
                return Some(messages::table_has_few_columns(number, found, expected).into());
            }
        }
        let column = |index: i64| match index {
            TableLines::WHOLE_LINE => Some(line),
            TableLines::LINE_NUMBER => None,
            _ => line.split(|byte| byte == delimiter).nth(usize::try_from(index).ok()?),
        };
        // The value is the line number, which differs for each line.
        let key = column(*key)?;
        let value = column(*value).map_or(number, |value| self.hash_of_value(value));
        match self.values.entry(self.hasher.hash_one(key)) {
            Entry::Vacant(entry) => {
                entry.insert(value);
                None
            }
            Entry::Occupied(entry) if *entry.get() == value => None,
            Entry::Occupied(_) => {
                let shown: String = String::from_utf8_lossy(key).chars().take(SHOWN).collect();
                let reason = messages::table_has_key_twice(number, format_args!("{shown:?}"));
                Some(reason.into())
            }
        }
    }

    /// Returns the hash of a value, equal for different spellings of one number.
    fn hash_of_value(&self, value: &[u8]) -> u64 {
        let text = std::str::from_utf8(value).unwrap_or_default().trim();
        match (text.parse::<i128>(), text.parse::<f64>()) {
            (Ok(number), _) => self.hasher.hash_one(number),
            (_, Ok(number)) => self.hasher.hash_one((number + 0.0).to_bits()),
            _ => self.hasher.hash_one(value),
        }
    }
}

/// Reads a file from beginning to end.
struct Bytes<'f> {
    file: &'f dyn ReadAt,
    at: u64,
    size: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size - self.at).unwrap_or(usize::MAX).min(out.len());
        let (out, _) = out.split_at_mut(left);
        let count = self.file.read_at(out, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, key: i64, value: i64, count: i64) -> String {
        let lines = TableLines { key, value, count, ..TableLines::default() };
        reason(&text.as_bytes().to_vec(), &lines).map_or_else(String::new, |one| one.to_string())
    }

    #[test]
    fn reason_is_what_the_operation_finds_in_a_file() {
        let (line, number) = (TableLines::WHOLE_LINE, TableLines::LINE_NUMBER);
        for (text, key, value, count, expected) in [
            ("a\nb\nc\n", line, number, -1, ""),
            ("a\nb\na\n", line, number, -1, "line 3 has the key \"a\""),
            ("a\nb\nb", line, number, -1, "line 3"),
            ("a\r\nb\r\na\n", line, number, -1, "line 3"),
            ("a\nb\na\n", number, line, -1, ""),
            ("a\n\nb\n", line, number, -1, "line 2 is empty"),
            ("a\t1\nb\t2\na\t1\n", 0, 1, -1, ""),
            ("a\t1\nb\t2\na\t3\n", 0, 1, -1, "line 3"),
            ("a\t1\nb\n", 0, 1, -1, "line 2 has 1 columns"),
            ("a\nb\nc\na\n", line, number, 3, ""),
            ("a\nb\n", line, number, 3, "2 lines"),
            ("a\0x\na\0y\n", line, number, -1, ""),
        ] {
            let said = said(text, key, value, count);
            assert_eq!(said.contains(expected), !expected.is_empty() || said.is_empty(), "{said}");
            assert_eq!(said.is_empty(), expected.is_empty(), "{text:?}: {said}");
        }
    }
}
