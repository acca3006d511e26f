//! Positions of a merged state's pieces in its parts.
//!
//! The index of a merged state counts offsets as if the parts lay one behind the other.

use super::{
    Error,
    index::Index,
    piece::{PieceLayout, header_length},
    role::MergedRole,
};

/// Position of a piece in its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PiecePlace {
    /// Position of the part.
    pub(crate) part: u32,
    /// Offset of the part, if all lie one behind the other.
    pub(crate) base: u64,
    /// The piece's number in its part.
    pub(crate) number: u32,
    /// Offset of the piece's header in its part, in bytes.
    pub(crate) header: u64,
}

/// The place of every piece of a merged state, in the order of the index; every part is filled
/// with pieces from its header to its index, so that no byte is without an owner.
pub(crate) fn places(
    index: &Index,
    merged: &MergedRole,
    chunk_bytes: u32,
) -> Result<Vec<PiecePlace>, Error> {
    const WHAT: &str = "index: pieces";
    let wrong = |found: String, expected: String| Error::corrupt(WHAT, found, expected);
    let entries = (0..index.pieces_len() as u32).filter_map(|row| Some((row, index.piece(row)?)));
    let mut order: Vec<_> = entries.collect();
    order.sort_by_key(|(_, piece)| piece.data_offset);
    let mut order = order.into_iter().peekable();
    let none = PiecePlace { part: 0, base: 0, number: 0, header: 0 };
    let mut places = vec![none; index.pieces_len()];
    for ((part, record), base) in merged.parts.iter().enumerate().zip(merged.bases()) {
        let end = record.trailer.index_offset;
        let (mut position, mut data) = (record.header_bytes, 0_u64);
        let mut number = 0;
        while let Some((row, piece)) =
            order.next_if(|(_, piece)| piece.data_offset < base.saturating_add(end))
        {
            let name = index.array(piece.array).map_or(0, |array| array.name.len());
            let spec = index.array(piece.array).map_or(0, |array| index.spec(array.spec).len());
            let domain = index.placement(piece.placement).and_then(|place| place.domain.as_ref());
            let header = header_length(name, spec, domain.map_or(0, Vec::len));
            let layout = PieceLayout::new(position, header, piece.data_bytes, chunk_bytes)
                .filter(|layout| layout.end <= end)
                .filter(|layout| base.checked_add(layout.data) == Some(piece.data_offset))
                .ok_or_else(|| {
                    wrong(
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
            return Err(wrong(
                format!("{data} bytes of data in part {part}, which end at {position}"),
                format!("{} that end at {end}", record.trailer.data_bytes),
            ));
        }
    }
    match order.next() {
        None => Ok(places),
        Some((_, piece)) => Err(wrong(
            format!("{} bytes at {}", piece.data_bytes, piece.data_offset),
            "a place in one of the parts".to_owned(),
        )),
    }
}
