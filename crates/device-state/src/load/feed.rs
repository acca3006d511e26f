//! The extents of a plan, read ahead and verified.

use std::{
    rc::Rc,
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use serdes_files::Prefetch;

use super::{
    open_state::OpenState,
    plan::{Plan, ReadExtent, Source},
};
use crate::{
    Error,
    format::checksum,
    pump::{Buffer, Filled, IN_FLIGHT, Pool, Returns, has_second_core},
};

/// Number of extents that are read ahead.
const AHEAD: usize = IN_FLIGHT;

/// An extent that was read; its buffer returns to the pool on drop.
pub(super) struct Arrived {
    pub(super) extent: ReadExtent,
    /// `None` once the buffer was taken.
    filled: Option<Filled>,
    returns: Returns,
}

impl Arrived {
    /// Returns its bytes from offset `offset` of the file.
    pub(super) fn from(&self, offset: u64) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.extent.offset)?).ok()?;
        self.filled.as_ref()?.get(from..)
    }

    /// Returns the buffer, for a caller that returns it to the pool itself.
    pub(super) fn take(mut self) -> Option<Filled> {
        self.filled.take()
    }
}

impl Drop for Arrived {
    fn drop(&mut self) {
        if let Some(filled) = self.filled.take() {
            self.returns.give(filled.into_buffer());
        }
    }
}

/// The extents of a plan, in order.
pub(super) enum Feed<'a> {
    /// Extents are read on demand.
    Inline(Reading<'a>),
    /// Another thread reads the extents ahead.
    Ahead(Receiver<Result<Arrived, Error>>),
}

impl Feed<'_> {
    /// Returns the next extent.
    pub(super) fn next(&mut self) -> Result<Arrived, Error> {
        match self {
            Self::Inline(reading) => reading.next().unwrap_or_else(|| Err(ended())),
            Self::Ahead(arrived) => arrived.recv().unwrap_or_else(|_| Err(ended())),
        }
    }
}

/// Returns the error for runs beyond the plan's extents, which cannot occur because both come from
/// the same blocks.
fn ended() -> Error {
    Error::invalid("the reading thread ended".to_owned())
}

/// Calls `run` with the extents of a plan, in buffers that `make` allocates; a thread reads ahead
/// if there is a core for it.
pub(super) fn with_feed<T>(
    state: &OpenState,
    plan: &Plan<'_>,
    make: impl Fn(usize) -> Result<Buffer, Error> + Send,
    run: impl FnOnce(&mut Feed<'_>, Returns) -> Result<T, Error>,
) -> Result<T, Error> {
    let late = state.source.answers_late();
    let announced: Vec<_> = match late {
        true => plan.extents()?.map(|extent| extent.range()).collect(),
        false => Vec::new(),
    };
    let bytes = plan.longest_extent();
    let threaded = has_second_core() && plan.is_long();
    let (pool, returns) = match threaded {
        true => Pool::bounded(2 * IN_FLIGHT + plan.most_held(), bytes),
        false => Pool::new(bytes),
    };
    let mut reading = Reading {
        state,
        plan,
        extents: Box::new(plan.extents()?),
        ahead: Prefetch::new(announced.into_iter()),
        pool,
        returns: returns.clone(),
        make: Box::new(make),
    };
    if !threaded {
        return run(&mut Feed::Inline(reading), returns);
    }
    thread::scope(|scope| {
        let (send, arrived) = sync_channel(AHEAD);
        scope.spawn(move || {
            // The channel closes early when the receiver has stopped.
            while let Some(read) = reading.next() {
                let stop = read.is_err();
                if send.send(read).is_err() || stop {
                    return;
                }
            }
        });
        run(&mut Feed::Ahead(arrived), returns)
    })
}

/// Reader of the extents.
pub(super) struct Reading<'a> {
    state: &'a OpenState,
    plan: &'a Plan<'a>,
    extents: Box<dyn Iterator<Item = ReadExtent> + Send + 'a>,
    ahead: Prefetch<'a>,
    pool: Pool,
    returns: Returns,
    make: Box<dyn Fn(usize) -> Result<Buffer, Error> + Send + 'a>,
}

impl Reading<'_> {
    fn next(&mut self) -> Option<Result<Arrived, Error>> {
        let extent = self.extents.next()?;
        Some(self.read(extent))
    }

    fn read(&mut self, extent: ReadExtent) -> Result<Arrived, Error> {
        let buffer = self.pool.take(extent.bytes, &self.make)?;
        let mut filled = Filled::new(buffer, extent.bytes)?;
        let read = self.ahead.read(&*self.state.source, &mut filled, extent.offset);
        read.map_err(|error| Error::io("read", &self.state.path, error))?;
        let checked = self.check(&extent, &filled);
        checked.map_err(|error| self.state.in_file_at(extent.offset, error))?;
        Ok(Arrived { extent, filled: Some(filled), returns: self.returns.clone() })
    }

    /// Compares the chunks of an extent with their checksums, and the headers and footers between
    /// the data of several pieces with the index.
    #[expect(
        clippy::indexing_slicing,
        reason = "a plan makes its extents of its own sources; `rest` is cut to its own length"
    )]
    fn check(&self, extent: &ReadExtent, bytes: &[u8]) -> Result<(), Error> {
        let sources = &self.plan.sources[extent.sources.clone()];
        let (mut end, mut words) = (0, Vec::new());
        for (position, source) in sources.iter().enumerate() {
            let offset = source.piece.data_offset;
            // Several pieces all begin in the extent; a single one may have begun before.
            let begin = offset.saturating_sub(extent.offset) as usize;
            let first = extent.offset.saturating_sub(offset);
            if position > 0 {
                self.state.push_words_before(source.number, &source.piece, &mut words)?;
            }
            let rest =
                bytes.get(end..).and_then(|bytes| bytes.split_at_checked(begin - end.min(begin)));
            let Some((_, rest)) = rest.filter(|(between, _)| *between == words) else {
                return Err(Error::corrupt(
                    &format!("words before the data of {:?}", source.name),
                    "other bytes".to_owned(),
                    "what the index says".to_owned(),
                ));
            };
            let left = source.piece.data_bytes.saturating_sub(first);
            let data = &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            self.check_data(source, first, data)?;
            end = begin + data.len();
            words.clear();
            self.state.push_words_behind(source.number, &source.piece, &mut words);
        }
        Ok(())
    }

    /// Verifies chunks of a piece from its byte `first`, which is the start of a chunk.
    fn check_data(&self, source: &Source<'_>, first: u64, data: &[u8]) -> Result<(), Error> {
        let chunk_bytes = self.state.header.chunk_bytes;
        let numbers = first / u64::from(chunk_bytes)..;
        for (number, chunk) in numbers.zip(data.chunks(chunk_bytes as usize)) {
            self.state.compare_chunk(source.name, &source.piece, number, checksum(chunk))?;
        }
        Ok(())
    }
}

/// A shared extent.
pub(super) type Held = Rc<Arrived>;
