//! Detection of the index of a bundle by its content.

use serdes_files::ReadAt;

use crate::table::Table;

/// Returns true if a table is the index of a bundle, and not a file of a V1 checkpoint.
///
/// Both formats have a message under the empty key, whose fields a parser of the other format would
/// skip; the first tag tells them apart. Field 1 is a number in a bundle (`num_shards`), and a
/// message in a V1 checkpoint.
pub fn is_index(source: &dyn ReadAt) -> bool {
    let header = Table::open(source).and_then(|table| table.get(b""));
    matches!(header, Ok(Some(value)) if matches!(value.first(), Some(0x08 | 0x10 | 0x1a)))
}
