//! The format of the files: one row per line, so that a release is one line of a diff.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The error of a table file that does not have its format.
#[derive(Debug, thiserror::Error)]
#[error("the table of releases is not as data/schema.json describes it: {0}")]
pub struct TableError(#[from] serde_json::Error);

/// A formatter of JSON with a space after each comma and each colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}

/// Formats a row on one line.
pub(crate) fn row(row: &impl Serialize) -> Result<String, TableError> {
    let mut bytes = Vec::new();
    row.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Formats a list with one row per line.
pub(crate) fn list<T: Serialize>(rows: &[T]) -> Result<String, TableError> {
    let rows = rows.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[\n{}\n]", rows.join(",\n")))
}
