//! The bytes of pieces: what must stand around them, and what they must sum to.

use std::io::{self, Read};

use super::{
    Reader, Tensor,
    ahead::Ahead,
    assemble::{Assembler, Router},
    reader::Shared,
};
use crate::device_state::{
    Error,
    format::{
        self, checksum,
        index::PieceEntry,
        piece::{self, PieceHeader, chunk_count},
        spread::PiecePlace,
    },
    pump::ChunkSums,
};

impl Shared {
    /// Appends the words before a piece's data as they must be, from the end of the piece before.
    pub(super) fn push_words_before(
        &self,
        number: u32,
        piece: &PieceEntry,
        words: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let array = self.index.array(piece.array);
        let placement = self.index.placement(piece.placement);
        let (Some(array), Some(placement)) = (array, placement) else { return Ok(()) };
        // The header begins where the piece before ended, zeros fill the rest. In a merged state
        // that is in the part of the piece, which counts its own bytes and pieces.
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

    /// Appends the words behind a piece's data as they must be, up to the next piece.
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

    /// Where a piece of a merged state lies in its part.
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
        Err(Error::checksum(&place, stored, computed))
    }

    /// Where the next piece or the index begins.
    fn end_of(&self, piece: &PieceEntry) -> u64 {
        let footer = piece.data_offset.saturating_add(piece.data_bytes);
        let sums = 4 * chunk_count(piece.data_bytes, self.header.chunk_bytes) + 12;
        footer.saturating_add(sums).next_multiple_of(format::ALIGNMENT)
    }
}

/// Checksums of a tensor's bytes as they come from elsewhere.
pub(crate) struct PieceSums(Sums);

enum Sums {
    /// Its one piece.
    Whole(ChunkSums),
    /// Its pieces, to which the bytes are given out.
    Shards(Router),
    /// It cannot be cut, so that nothing is ever equal to it.
    Never,
}

impl PieceSums {
    /// The next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Sums::Whole(sums) => sums.update(bytes),
            Sums::Shards(router) => router.update(bytes),
            Sums::Never => {}
        }
    }

    /// Whether all bytes were those of `tensor`.
    pub(crate) fn compare(self, tensor: &Tensor) -> Result<(), Error> {
        let holds = |piece: &PieceEntry, sums: &[u32]| {
            tensor.reader.shared.compare_sums(tensor.name(), piece, sums).is_ok()
        };
        let same = match self.0 {
            Sums::Whole(sums) => {
                let sums = sums.finish();
                tensor.pieces().all(|(_, piece)| holds(&piece, &sums))
            }
            Sums::Shards(router) => router.finish().all(|(piece, sums)| holds(&piece, &sums)),
            Sums::Never => false,
        };
        if same { Ok(()) } else { Err(Error::ReadBack { name: tensor.name().to_owned() }) }
    }
}

impl Tensor {
    /// Begins summing bytes that should be this tensor's.
    pub(crate) fn sums(&self) -> PieceSums {
        if self.is_whole() {
            return PieceSums(Sums::Whole(ChunkSums::new(self.reader.chunk_bytes())));
        }
        PieceSums(Router::new(self).map_or(Sums::Never, Sums::Shards))
    }
}

/// The data of one piece, chunk by chunk, each checked before it is given out.
pub(super) struct PieceReader {
    reader: Reader,
    number: u32,
    piece: PieceEntry,
    next_chunk: u64,
    chunk: Vec<u8>,
    position: usize,
    ahead: Ahead<'static>,
}

impl PieceReader {
    /// The reader of a piece, one of `readers` that are read at a time.
    pub(super) fn new(reader: Reader, number: u32, piece: PieceEntry, readers: usize) -> Self {
        let all = piece.data_offset..piece.data_offset.saturating_add(piece.data_bytes);
        let ahead = Ahead::one_of(readers, std::iter::once(all));
        Self { reader, number, piece, next_chunk: 0, chunk: Vec::new(), position: 0, ahead }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let shared = &self.reader.shared;
        let chunk_bytes = u64::from(shared.header.chunk_bytes);
        let begin = self.next_chunk * chunk_bytes;
        if begin >= self.piece.data_bytes {
            return Ok(false);
        }
        let length = (self.piece.data_bytes - begin).min(chunk_bytes);
        self.chunk.resize(length as usize, 0);
        let offset = self.piece.data_offset + begin;
        self.ahead.read(&*shared.source, &mut self.chunk, offset)?;
        let stored = shared.index.checksum(u64::from(self.piece.first_chunk) + self.next_chunk);
        let computed = checksum(&self.chunk);
        if stored != computed {
            let message = format!(
                "chunk {} of piece {} has checksum {computed:08x}, not {stored:08x}",
                self.next_chunk, self.number
            );
            self.chunk.clear();
            self.position = 0;
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.next_chunk += 1;
        self.position = 0;
        Ok(true)
    }
}

impl Read for PieceReader {
    #[expect(clippy::indexing_slicing, reason = "`position` is at most the length of the chunk")]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.position == self.chunk.len() && !self.fill()? {
            return Ok(0);
        }
        let count = (&self.chunk[self.position..]).read(out)?;
        self.position += count;
        Ok(count)
    }
}

/// The data of a tensor, row by row, whatever pieces it is stored in.
pub(super) enum TensorReader {
    /// Its one piece.
    Whole(PieceReader),
    /// Its shards, put together.
    Shards(Box<Assembler>),
}

impl Read for TensorReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Whole(piece) => piece.read(out),
            Self::Shards(assembler) => assembler.read(out),
        }
    }
}
