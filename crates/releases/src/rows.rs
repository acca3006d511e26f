//! The form of the files: a row a line, so that a release is one line of a difference.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// A file of the table that is not in its form.
#[derive(Debug, thiserror::Error)]
#[error("the table of releases is not as data/schema.json describes it: {0}")]
pub struct TableError(#[from] serde_json::Error);

/// A space behind each comma and each colon.
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

/// Returns a row on one line.
pub(crate) fn row(row: &impl Serialize) -> Result<String, TableError> {
    let mut bytes = Vec::new();
    row.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a list, a row a line.
pub(crate) fn list<T: Serialize>(rows: &[T]) -> Result<String, TableError> {
    let rows = rows.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[\n{}\n]", rows.join(",\n")))
}
