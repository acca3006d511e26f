//! Reads device memory.

use std::collections::VecDeque;

use super::{Filled, IN_FLIGHT, Memory, Pool, PoolError, STREAMED_FROM, Streams, capacity_at};
use crate::Error;

/// Reader of device memory in sequential buffers that are filled ahead of the consumer. Ends after
/// the first error.
///
/// The consumer must return its buffers to the pool. A [bounded](Pool::bounded) pool needs more
/// than [`IN_FLIGHT`] buffers, or the reader deadlocks.
pub(crate) struct FromDevice<'a, M: Memory> {
    name: &'a str,
    memory: &'a M,
    streams: &'a mut Streams<M>,
    pool: &'a mut Pool,
    /// Position of the first byte in the file.
    position: u64,
    requested: u64,
    under_way: VecDeque<Arriving<M>>,
}

/// Requested bytes.
enum Arriving<M: Memory> {
    /// A copy, and its length.
    Copy(M::Transfer, usize),
    /// Bytes that have arrived.
    Here(Filled),
}

impl<'a, M: Memory> FromDevice<'a, M> {
    /// Creates a reader of all of `memory`, with buffers of `pool`; `name` is for messages.
    pub(crate) fn new(
        name: &'a str,
        memory: &'a M,
        streams: &'a mut Streams<M>,
        pool: &'a mut Pool,
    ) -> Self {
        let under_way = VecDeque::with_capacity(IN_FLIGHT);
        Self { name, memory, streams, pool, position: 0, requested: 0, under_way }
    }

    /// Sets the position of the first byte in the file, which determines the buffers' lengths.
    pub(crate) fn at(self, position: u64) -> Self {
        Self { position, ..self }
    }

    /// Requests the next bytes.
    fn request(&mut self) -> Result<(), PoolError> {
        let Self { name, memory, .. } = *self;
        let failed = |error| M::failed("reading", name, error);
        let left = memory.bytes() - self.requested;
        let bytes = match memory.is_read_whole() {
            true => left,
            false => left.min(capacity_at(self.position + self.requested) as u64),
        };
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::TooLarge { what: "device memory", found: bytes })?;
        let buffer = self.pool.take(bytes, |bytes| {
            let buffer = M::allocate_host(memory.device(), bytes);
            buffer.map(Into::into).map_err(failed)
        })?;
        let arriving = match M::HostBuffer::try_from(buffer) {
            Ok(host) if memory.bytes() >= STREAMED_FROM => {
                let stream = self.streams.of(memory.device()).map_err(failed)?;
                let transfer = memory.begin_read(stream, self.requested, bytes, host);
                Arriving::Copy(transfer.map_err(failed)?, bytes)
            }
            other => {
                let buffer = other.map_or_else(|buffer| buffer, Into::into);
                let mut filled = Filled::new(buffer, bytes)?;
                memory.read(self.requested, &mut filled).map_err(failed)?;
                Arriving::Here(filled)
            }
        };
        self.under_way.push_back(arriving);
        self.requested += bytes as u64;
        Ok(())
    }

    fn arrive(&mut self) -> Result<Option<Filled>, PoolError> {
        while self.requested < self.memory.bytes() && self.under_way.len() < IN_FLIGHT {
            self.request()?;
        }
        Ok(match self.under_way.pop_front() {
            None => None,
            Some(Arriving::Here(filled)) => Some(filled),
            Some(Arriving::Copy(transfer, bytes)) => {
                let host = M::wait(transfer);
                let host = host.map_err(|error| M::failed("reading", self.name, error))?;
                Some(Filled::new(host.into(), bytes)?)
            }
        })
    }
}

impl<M: Memory> Iterator for FromDevice<'_, M> {
    type Item = Result<Filled, PoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.arrive();
        if result.is_err() {
            self.requested = self.memory.bytes();
            self.under_way.clear();
        }
        result.transpose()
    }
}
