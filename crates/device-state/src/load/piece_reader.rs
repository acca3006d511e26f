//! Reads one piece and compares each chunk with its checksum.

use std::{
    io::{self, Read},
    sync::Arc,
};

use serdes_files::Prefetch;

use super::open_state::OpenState;
use crate::format::{checksum, index::PieceEntry};

/// Reader of one piece, chunk by chunk, each verified before it is returned.
pub(super) struct PieceReader {
    state: Arc<OpenState>,
    piece: PieceEntry,
    next_chunk: u64,
    chunk: Vec<u8>,
    position: usize,
    ahead: Prefetch<'static>,
}

impl PieceReader {
    /// Creates the reader of a piece; `readers` is the number of concurrent readers.
    pub(super) fn new(state: Arc<OpenState>, piece: PieceEntry, readers: usize) -> Self {
        let all = piece.data_offset..piece.data_offset.saturating_add(piece.data_bytes);
        let ahead = Prefetch::one_of(readers, std::iter::once(all));
        Self { state, piece, next_chunk: 0, chunk: Vec::new(), position: 0, ahead }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let state = &self.state;
        let chunk_bytes = u64::from(state.header.chunk_bytes);
        let begin = self.next_chunk * chunk_bytes;
        if begin >= self.piece.data_bytes {
            return Ok(false);
        }
        let length = (self.piece.data_bytes - begin).min(chunk_bytes);
        self.chunk.resize(length as usize, 0);
        let offset = self.piece.data_offset + begin;
        self.ahead.read(&*state.source, &mut self.chunk, offset)?;
        let name = state.index.array(self.piece.array).map_or("", |array| array.name);
        let computed = checksum(&self.chunk);
        if let Err(error) = state.compare_chunk(name, &self.piece, self.next_chunk, computed) {
            self.chunk.clear();
            self.position = 0;
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
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
