//! Writes device memory.

use std::collections::VecDeque;

use super::{Filled, IN_FLIGHT, Incoming, Memory, Returns, STREAMED_FROM, Streams};
use crate::Error;

/// Copies to device memory, some of them in progress. The caller may switch between memories: the
/// last copies of one are in progress while the first of the next begin.
pub(crate) struct ToDevice<M: Memory> {
    streams: Streams<M>,
    under_way: VecDeque<M::Transfer>,
    /// Channel for buffers whose bytes have arrived.
    returns: Returns,
}

impl<M: Memory> ToDevice<M> {
    /// Creates a writer without copies in progress; buffers go back to `returns`.
    pub(crate) fn new(returns: Returns) -> Self {
        let under_way = VecDeque::with_capacity(IN_FLIGHT);
        Self { streams: Streams::new(), under_way, returns }
    }

    /// Copies a buffer to `offset` of `memory`. The copy may still be in progress when this
    /// returns; fewer than [`IN_FLIGHT`] are. Nothing may be pushed after an error.
    pub(crate) fn push(
        &mut self,
        name: &str,
        memory: &mut M::Incoming,
        offset: u64,
        filled: Filled,
    ) -> Result<(), Error> {
        let failed = |error| M::failed("writing", name, error);
        if memory.bytes() < STREAMED_FROM {
            memory.write(offset, &filled).map_err(failed)?;
            self.returns.give(filled.into_buffer());
            return Ok(());
        }
        let (buffer, bytes) = filled.into_parts();
        match M::HostBuffer::try_from(buffer) {
            Ok(host) => {
                let device = memory.device().clone();
                let stream = self.streams.of(&device).map_err(failed)?;
                let transfer = memory.begin_write(stream, offset, bytes, host).map_err(failed)?;
                self.under_way.push_back(transfer);
                self.settle(IN_FLIGHT - 1)
            }
            Err(buffer) => {
                let filled = Filled::new(buffer, bytes)?;
                memory.write(offset, &filled).map_err(failed)?;
                self.returns.give(filled.into_buffer());
                Ok(())
            }
        }
    }

    /// Waits until at most `left` copies are in progress.
    fn settle(&mut self, left: usize) -> Result<(), Error> {
        while self.under_way.len() > left {
            let Some(transfer) = self.under_way.pop_front() else { break };
            let host = M::wait(transfer).map_err(|error| M::failed("writing", "data", error))?;
            self.returns.give(host.into());
        }
        Ok(())
    }

    /// Waits until every byte has arrived.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.settle(0)
    }
}
