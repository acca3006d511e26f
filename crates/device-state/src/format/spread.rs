//! Positions of a merged state's pieces in its parts.
//!
//! The offsets in the index of a merged state are those in the concatenation of its parts.

use super::{
    Error,
    index::{Index, PieceEntry},
    piece::{PieceLayout, header_length},
    role::MergedRole,
};

/// Position of a piece in its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PiecePlace {
    /// Position of the part.
    pub(crate) part: u32,
    /// Offset of the part in the concatenation of all parts, in bytes.
    pub(crate) base: u64,
    /// Number of the piece in its part.
    pub(crate) number: u32,
    /// Offset of the piece's header in its part, in bytes.
    pub(crate) header: u64,
}

/// Returns the place of every piece of a merged state, in the order of the index.
///
/// # Errors
/// [`Error::Corrupt`] unless pieces fill every part from its header to its index.
pub(crate) fn places(
    index: &Index,
    merged: &MergedRole,
    chunk_bytes: u32,
) -> Result<Vec<PiecePlace>, Error> {
    const WHAT: &str = "index: pieces";
    let corrupt = |found: String, expected: String| Error::corrupt(WHAT, found, expected);
    let entries = (0..index.pieces_len() as u32).filter_map(|row| Some((row, index.piece(row)?)));
    let mut pieces: Vec<_> = entries.collect();
    pieces.sort_by_key(|(_, piece)| piece.data_offset);
    let mut pieces = pieces.into_iter().peekable();
    // All are set below: the end of the function checks that every piece is in a part.
    let unset = PiecePlace { part: 0, base: 0, number: 0, header: 0 };
    let mut places = vec![unset; index.pieces_len()];
    for ((part, record), base) in merged.parts.iter().enumerate().zip(merged.bases()) {
        let end = record.trailer.index_offset;
        let (mut position, mut data) = (record.header_bytes, 0_u64);
        let mut number = 0;
        while let Some((row, piece)) =
            pieces.next_if(|(_, piece)| piece.data_offset < base.saturating_add(end))
        {
            let header = piece_header_length(index, &piece);
            let layout = PieceLayout::new(position, header, piece.data_bytes, chunk_bytes)
                .filter(|layout| layout.end <= end)
                .filter(|layout| base.checked_add(layout.data) == Some(piece.data_offset))
                .ok_or_else(|| {
                    corrupt(
                        format!("{} bytes at {}", piece.data_bytes, piece.data_offset),
                        format!("the first place behind {position} of part {part}"),
                    )
                })?;
            if let Some(place) = places.get_mut(row as usize) {
                *place = PiecePlace { part: part as u32, base, number, header: position };
            }
            position = layout.end;
            number += 1;
            data = data.saturating_add(piece.data_bytes);
        }
        if position != end || data != record.trailer.data_bytes {
            return Err(corrupt(
                format!("{data} bytes of data in part {part}, which end at {position}"),
                format!("{} that end at {end}", record.trailer.data_bytes),
            ));
        }
    }
    match pieces.next() {
        None => Ok(places),
        Some((_, piece)) => Err(corrupt(
            format!("{} bytes at {}", piece.data_bytes, piece.data_offset),
            "a place in one of the parts".to_owned(),
        )),
    }
}

/// Returns the length in bytes of the header of a piece in its part.
fn piece_header_length(index: &Index, piece: &PieceEntry) -> u64 {
    let array = index.array(piece.array);
    let name = array.map_or(0, |array| array.name.len());
    let spec = array.map_or(0, |array| index.spec(array.spec).len());
    let domain = index.placement(piece.placement).and_then(|place| place.domain.as_ref());
    header_length(name, spec, domain.map_or(0, Vec::len))
}
