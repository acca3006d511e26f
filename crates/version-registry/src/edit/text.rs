//! Positions in the text of a versions.toml, and changes there.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::error::EditError;
use crate::{Date, ReleaseNumber};

/// A text with pending changes.
pub(super) struct Source<'t> {
    file: &'t str,
    text: &'t str,
    changes: Vec<(Range<usize>, String)>,
}

impl<'t> Source<'t> {
    /// Creates an editor of a text that breaks no rule.
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, changes: Vec::new() }
    }

    /// Replaces the day of `as_of`.
    pub(super) fn set_as_of(&mut self, day: Date) {
        let root = self.root();
        if let Some(value) = root.as_ref().and_then(|root| root.get_ref().get("as_of")) {
            self.changes.push((value.span(), day.to_string()));
        }
    }

    /// Replaces the release of the line at index `at`, or adds one below its minimum.
    pub(super) fn set_release(&mut self, at: usize, release: ReleaseNumber) {
        let root = self.root();
        let Some(line) = root.as_ref().and_then(|root| element(root, "line", at)) else { return };
        if let Some(value) = line.get("release") {
            self.changes.push((value.span(), format!("\"{release}\"")));
        } else if let Some((key, minimum)) = line.get_key_value("minimum") {
            let place = self.next_row(minimum.span().end);
            let indent = self.indent(key.span().start);
            let row = self.row_behind(place, &format!("{indent}release = \"{release}\""));
            self.changes.push((place..place, row));
        }
    }

    /// Adds a table after the last entry of the line at index `at`.
    pub(super) fn add_entry(&mut self, at: usize, table: &str) -> Result<(), EditError> {
        let root = self.root();
        let line = root.as_ref().and_then(|root| element(root, "line", at));
        let name = line.and_then(|line| line.get("name")).map(Spanned::get_ref);
        let entries = line.and_then(|line| line.get("entry")).map(Spanned::get_ref);
        let Some(DeValue::Array(entries)) = entries else { return Ok(()) };
        let Some(last) = entries.iter().next_back() else { return Ok(()) };
        let header = last.span();
        if !self.text.get(header.clone()).is_some_and(|header| header.starts_with("[[")) {
            let before = self.text.as_bytes().get(..header.start).unwrap_or_default();
            let row = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let line = match name {
                Some(DeValue::String(name)) => name.to_string(),
                _ => String::new(),
            };
            return Err(EditError::InlineEntries { file: self.file.to_owned(), row, line });
        }
        let end = match last.get_ref() {
            DeValue::Table(fields) => fields.iter().map(|(_, value)| value.span().end).max(),
            _ => None,
        };
        let end = end.unwrap_or(header.end);
        let place = self.next_row(end);
        let break_ = self.row_break();
        let mut added = self.row_behind(place, "");
        let indent = self.indent(header.start);
        for row in table.lines() {
            added.push_str(indent);
            added.push_str(row);
            added.push_str(break_);
        }
        self.changes.push((place..place, added));
        Ok(())
    }

    /// Returns the text with the changes applied.
    pub(super) fn finish(mut self) -> String {
        self.changes.sort_by_key(|(place, _)| place.start);
        let mut text = self.text.to_owned();
        for (place, new) in self.changes.iter().rev() {
            text.replace_range(place.clone(), new);
        }
        text
    }

    /// Returns the start of the row after the one with the byte at `end`, which may end with a
    /// comment.
    fn next_row(&self, end: usize) -> usize {
        let rest = self.text.get(end..).unwrap_or_default();
        end + rest.find('\n').map_or(rest.len(), |newline| newline + 1)
    }

    /// Returns a row to insert at `place`, with the line break that the row above may lack.
    fn row_behind(&self, place: usize, row: &str) -> String {
        let break_ = self.row_break();
        let is_whole = self.text.get(..place).is_some_and(|before| before.ends_with('\n'));
        format!("{}{row}{break_}", if is_whole { "" } else { break_ })
    }

    /// Returns the line break of the text.
    fn row_break(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Returns the tables of the text. They exist, since the text was parsed before.
    fn root(&self) -> Option<Spanned<DeTable<'t>>> {
        DeTable::parse(self.text).ok()
    }

    /// Returns the spaces before the header at `start`.
    fn indent(&self, start: usize) -> &'t str {
        let before = self.text.get(..start).unwrap_or_default();
        let row = before.rfind('\n').map_or(0, |newline| newline + 1);
        let spaces = before.get(row..).unwrap_or_default();
        if spaces.bytes().all(|byte| byte == b' ' || byte == b'\t') { spaces } else { "" }
    }
}

/// Returns the table at an index of an array of tables.
fn element<'v, 't>(
    root: &'v Spanned<DeTable<'t>>,
    key: &str,
    at: usize,
) -> Option<&'v DeTable<'t>> {
    let DeValue::Array(items) = root.get_ref().get(key)?.get_ref() else { return None };
    match items.get(at)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}
