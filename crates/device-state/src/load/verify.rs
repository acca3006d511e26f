//! Verifies every byte of a state without keeping any.

use std::{
    num::NonZero,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, available_parallelism},
};

use serdes_files::{Phase, Prefetch, ProgressMonitor};

use super::Reader;
use crate::{
    Error,
    format::index::PieceEntry,
    pump::{BUFFER_BYTES, ChunkSums},
};

/// Damage of a tensor, found by verification.
#[derive(Debug)]
#[non_exhaustive]
pub struct Damage {
    /// Name of the tensor, or of a file if a part of the state is damaged outside of tensors.
    pub tensor: String,
    /// The damage.
    pub error: Error,
}

impl Reader {
    /// Reads the whole file and compares every byte with the index: data by checksums, headers and
    /// footers byte by byte. Several pieces are read at a time.
    ///
    /// # Errors
    /// If the file cannot be read or the work was cancelled; damage is a result, not an error.
    pub fn verify(&self, monitor: &ProgressMonitor) -> Result<Vec<Damage>, Error> {
        let damage = |error: &Error| matches!(error, Error::Corrupt { .. });
        let mut damaged = self.verify_pieces(monitor, |_| true, damage)?;
        if let Some(merged) = &self.state.merged {
            let parts = merged.parts.verify(|_| true, damage)?.into_iter();
            damaged
                .extend(parts.map(|lost| Damage { tensor: lost.part.name(), error: lost.error }));
        }
        Ok(damaged)
    }

    /// Verifies the pieces whose numbers `chosen` returns; an error that is `damage` affects one
    /// tensor, any other ends the work.
    pub(super) fn verify_pieces(
        &self,
        monitor: &ProgressMonitor,
        chosen: impl Fn(u32) -> bool + Sync,
        damage: impl Fn(&Error) -> bool + Sync,
    ) -> Result<Vec<Damage>, Error> {
        let count = self.state.index.pieces_len();
        monitor.begin(Phase::Verify, self.data_bytes());
        let next = AtomicUsize::new(0);
        let found = Mutex::new((Vec::new(), None));
        let work = || {
            let mut buffer = Vec::new();
            let mut ahead = Prefetch::new(self.pieces_around());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                if !chosen(number as u32) {
                    continue;
                }
                let result = self.verify_piece(number as u32, &mut ahead, &mut buffer, monitor);
                let Err(error) = result else { continue };
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                match error {
                    error if damage(&error) => found.0.push((number, error)),
                    // Further errors cannot be found.
                    error => {
                        next.store(count, Ordering::Relaxed);
                        found.1.get_or_insert(error);
                    }
                }
            }
        };
        // A thread is worth its start for several megabytes.
        let worth = usize::try_from(self.data_bytes() >> 23).unwrap_or(usize::MAX);
        let threads = available_parallelism().map_or(1, NonZero::get).min(count).min(worth);
        // Sources with high latency are read ahead sequentially instead.
        let threads = if self.state.source.answers_late() { 1 } else { threads };
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        let (mut damaged, failure) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failure {
            return Err(error);
        }
        damaged.sort_by_key(|(number, _)| *number);
        let damaged = damaged.into_iter().map(|(number, error)| {
            let tensor = self.name_of(number as u32).to_owned();
            Damage { tensor, error }
        });
        Ok(damaged.collect())
    }

    fn name_of(&self, piece: u32) -> &str {
        let index = &self.state.index;
        let array = index.piece(piece).and_then(|piece| index.array(piece.array));
        array.map_or("", |array| array.name)
    }

    /// Returns the byte ranges of the pieces with the gaps around them.
    fn pieces_around(&self) -> impl Iterator<Item = Range<u64>> + Send {
        let state = &self.state;
        let count = u32::try_from(state.index.pieces_len()).unwrap_or(u32::MAX);
        (0..count).filter_map(|number| {
            let piece = state.index.piece(number)?;
            let end = piece.data_offset.saturating_add(piece.data_bytes);
            if state.salvaged {
                return Some(piece.data_offset..end);
            }
            let (mut before, mut after) = (Vec::new(), Vec::new());
            state.push_words_before(number, &piece, &mut before).ok()?;
            state.push_words_behind(number, &piece, &mut after);
            let begin = piece.data_offset.saturating_sub(before.len() as u64);
            Some(begin..end.saturating_add(after.len() as u64))
        })
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the buffer is as long as the first and longest part"
    )]
    fn verify_piece(
        &self,
        number: u32,
        ahead: &mut Prefetch<'_>,
        buffer: &mut Vec<u8>,
        monitor: &ProgressMonitor,
    ) -> Result<(), Error> {
        let state = &self.state;
        let Some(piece) = state.index.piece(number) else { return Ok(()) };
        let PieceEntry { data_offset, data_bytes, .. } = piece;
        let name = self.name_of(number);
        let io = |error| Error::io("read", &state.path, error);
        let around = if state.salvaged {
            None
        } else {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            state.push_words_before(number, &piece, &mut before)?;
            state.push_words_behind(number, &piece, &mut after);
            // In the order in which they lie in the file.
            let mut found = vec![0; before.len()];
            let offset = data_offset.saturating_sub(before.len() as u64);
            ahead.read(&*state.source, &mut found, offset).map_err(io)?;
            Some((found == before, after))
        };
        buffer.resize(data_bytes.min(BUFFER_BYTES as u64) as usize, 0);
        let mut sums = ChunkSums::new(state.header.chunk_bytes);
        let mut done = 0;
        while done < data_bytes {
            let now = (data_bytes - done).min(BUFFER_BYTES as u64) as usize;
            let part = &mut buffer[..now];
            ahead.read(&*state.source, part, data_offset + done).map_err(io)?;
            sums.update(part);
            done += now as u64;
            monitor.advance(now as u64)?;
        }
        state.compare_sums(name, &piece, &sums.finish())?;
        if let Some((same_before, after)) = around {
            buffer.resize(after.len(), 0);
            ahead.read(&*state.source, buffer, data_offset + data_bytes).map_err(io)?;
            if !same_before || *buffer != after {
                let error = Error::corrupt(
                    &format!("words around the data of {name:?}"),
                    "other bytes".to_owned(),
                    "what the index says".to_owned(),
                );
                return Err(state.in_file_at(data_offset, error));
            }
        }
        Ok(monitor.check()?)
    }
}
