//! State shared by a reader and its tensors; and the expected bytes around each piece.

use std::{path::PathBuf, sync::OnceLock};

use serdes_files::ReadAt;

use super::spec::KnownSpec;
use crate::{
    Error, Part, SaveId,
    format::{
        self,
        header::Header,
        index::{Index, PieceEntry},
        piece::{self, PieceHeader, chunk_count},
        role::Role,
        spread::PiecePlace,
    },
    store::Spread,
};

/// State shared by a reader and all of its tensors.
pub(crate) struct OpenState {
    pub(crate) source: Box<dyn ReadAt>,
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) header_bytes: u64,
    pub(crate) index: Index,
    pub(crate) file_bytes: u64,
    pub(super) data_bytes: u64,
    /// True if the index was created from the pieces that were found, so that it lacks some facts.
    pub(super) salvaged: bool,
    pub(super) specs: Vec<OnceLock<KnownSpec>>,
    /// Parts of a merged state; offsets in its index and in `source` are those in the concatenation
    /// of all parts.
    pub(super) merged: Option<Spread>,
}

impl OpenState {
    /// Returns the file's part of a save; `None` if the file is a state.
    pub(super) fn part(&self) -> Option<Part> {
        match self.header.role {
            Role::Part(part) => Part::new(SaveId(part.save), part.number, part.count).ok(),
            _ => None,
        }
    }

    /// Appends the expected bytes before a piece's data, from the end of the previous piece.
    pub(super) fn push_words_before(
        &self,
        number: u32,
        piece: &PieceEntry,
        words: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let array = self.index.array(piece.array);
        let placement = self.index.placement(piece.placement);
        let (Some(array), Some(placement)) = (array, placement) else { return Ok(()) };
        // The header begins where the previous piece ended, followed by padding. In a merged state
        // this refers to the piece's part, which has its own offsets and numbers.
        let (base, number, begin) = match self.place(number) {
            Some(place) => (place.base, place.number, place.header),
            None => {
                let before = number.checked_sub(1).and_then(|before| self.index.piece(before));
                (0, number, before.map_or(self.header_bytes, |before| self.end_of(&before)))
            }
        };
        let data_offset = piece.data_offset.saturating_sub(base);
        let start = words.len();
        PieceHeader {
            name: array.name,
            spec: self.index.spec(array.spec),
            number,
            device: placement.device,
            domain: placement.domain.clone(),
            data_offset,
            data_bytes: piece.data_bytes,
        }
        .encode_into(words)?;
        if let Ok(gap) = usize::try_from(data_offset.saturating_sub(begin)) {
            words.resize(start + gap, 0);
        }
        Ok(())
    }

    /// Appends the expected bytes after a piece's data, up to the next piece.
    pub(super) fn push_words_behind(&self, number: u32, piece: &PieceEntry, words: &mut Vec<u8>) {
        let place = self.place(number);
        let (base, number) = place.map_or((0, number), |place| (place.base, place.number));
        let data_offset = piece.data_offset.saturating_sub(base);
        let sums = self.index.checksums_of(piece, self.header.chunk_bytes);
        let start = words.len();
        piece::encode_footer_into(number, sums, words);
        let footer = data_offset + piece.data_bytes;
        let length = self.end_of(&PieceEntry { data_offset, ..*piece }) - footer;
        words.resize(start + length as usize, 0);
    }

    /// Returns the position of a piece of a merged state in its part.
    fn place(&self, number: u32) -> Option<&PiecePlace> {
        self.merged.as_ref().and_then(|merged| merged.places.get(number as usize))
    }

    /// Compares the checksums of a piece's chunks with those in the index.
    pub(super) fn compare_sums(
        &self,
        name: &str,
        piece: &PieceEntry,
        sums: &[u32],
    ) -> Result<(), Error> {
        (0..).zip(sums).try_for_each(|(chunk, sum)| self.compare_chunk(name, piece, chunk, *sum))
    }

    /// Compares the checksum of one chunk of a piece with that in the index.
    pub(super) fn compare_chunk(
        &self,
        name: &str,
        piece: &PieceEntry,
        chunk: u64,
        computed: u32,
    ) -> Result<(), Error> {
        let stored = self.index.checksum(u64::from(piece.first_chunk) + chunk);
        if stored == computed {
            return Ok(());
        }
        let begin = chunk * u64::from(self.header.chunk_bytes);
        let place = format!("data of {name:?}, chunk {chunk} from its byte {begin} on");
        let error = Error::checksum(&place, stored, computed);
        Err(self.in_file_at(piece.data_offset, error))
    }

    /// Adds to an error the file that has a byte of the state: the state, or one of its parts.
    pub(super) fn in_file_at(&self, offset: u64, error: Error) -> Error {
        let part = self.merged.as_ref().and_then(|merged| merged.parts.path_at(offset));
        error.in_file(part.as_deref().unwrap_or(&self.path))
    }

    /// Returns the offset at which the next piece or the index begins.
    fn end_of(&self, piece: &PieceEntry) -> u64 {
        let footer = piece.data_offset.saturating_add(piece.data_bytes);
        let sums = 4 * chunk_count(piece.data_bytes, self.header.chunk_bytes) + 12;
        footer.saturating_add(sums).next_multiple_of(format::ALIGNMENT)
    }
}
