//! The bytes of one host buffer: in transfer from the client to an array, or from an array to the
//! client.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serdes::codec::Status;

use crate::{
    server::{
        arrays::{Memory, MemoryReader, Next, Pieces, STEP},
        budget::Permit,
        metrics::{Counted, Gauges},
    },
    status::status,
};

/// The bytes of a host buffer.
#[derive(Debug)]
pub(crate) struct HostBuffer {
    content: Content,
    size: u64,
    _held: Held,
}

#[derive(Debug)]
enum Content {
    /// The pieces in which the bytes arrived.
    Pieces(Vec<Bytes>),
    /// The memory of a shard, which never changes and is read on demand.
    Memory(Arc<Memory>),
}

/// Permits of a buffer, held from its announcement.
#[derive(Debug)]
pub(crate) struct Held {
    _announced: Permit,
    arrived: Option<Permit>,
    _counted: [Counted; 2],
}

impl Held {
    pub(crate) fn new(announced: Permit, size: u64, gauges: &Arc<Gauges>) -> Self {
        let counted = [
            gauges.hold(|gauges| &gauges.host_buffers, 1),
            gauges.hold(|gauges| &gauges.host_buffer_bytes, size),
        ];
        Self { _announced: announced, arrived: None, _counted: counted }
    }

    /// Adds a permit for more bytes that have arrived.
    fn add(&mut self, more: Permit) {
        match &mut self.arrived {
            Some(arrived) => arrived.add(more),
            arrived => *arrived = Some(more),
        }
    }
}

impl HostBuffer {
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Creates a buffer of bytes on the host.
    pub(crate) fn of_bytes(bytes: Bytes, held: Held) -> Self {
        let size = bytes.len() as u64;
        Self { size, content: Content::Pieces(vec![bytes]), _held: held }
    }

    /// Returns the pieces of a buffer on the host.
    pub(crate) fn pieces(&self) -> Option<&[Bytes]> {
        match &self.content {
            Content::Pieces(pieces) => Some(pieces),
            Content::Memory(_) => None,
        }
    }

    /// Returns true if the buffer is on the host, and so short that a scheduling turn costs more
    /// than its bytes.
    pub(crate) fn is_small(&self) -> bool {
        const SMALL: u64 = 64 << 10;
        self.size <= SMALL && self.pieces().is_some()
    }

    /// Creates a buffer of a shard's bytes, without copying them.
    pub(crate) fn of_memory(memory: Arc<Memory>, held: Held) -> Self {
        Self { size: memory.size(), content: Content::Memory(memory), _held: held }
    }

    /// Returns all bytes in one piece. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; an error of the plug-in.
    pub(crate) fn whole(&self) -> Result<Bytes, Status> {
        let mut pieces = match &self.content {
            Content::Pieces(pieces) => pieces.clone(),
            Content::Memory(memory) => vec![memory.read()?.into()],
        };
        if pieces.len() == 1 {
            return Ok(pieces.swap_remove(0));
        }
        let mut whole = Vec::new();
        let length = pieces.iter().map(Bytes::len).sum();
        whole
            .try_reserve_exact(length)
            .map_err(|_| status!(ResourceExhausted, "the host has no {length} bytes left"))?;
        pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        Ok(whole.into())
    }
}

/// Reader of a host buffer from its first byte to its last.
#[derive(Debug)]
pub(crate) struct HostBufferReader {
    /// Reader of the shard, for a buffer of a shard's bytes.
    memory: Option<MemoryReader>,
    next_piece: usize,
    buffer: Arc<HostBuffer>,
}

impl HostBufferReader {
    /// Returns the maximum host memory in bytes that reading a buffer takes.
    pub(crate) fn most_ahead(buffer: &HostBuffer) -> u64 {
        match buffer.content {
            Content::Pieces(_) => 0,
            Content::Memory(_) => buffer.size.min(2 * STEP as u64),
        }
    }

    pub(crate) fn new(buffer: Arc<HostBuffer>) -> Self {
        let memory = match &buffer.content {
            Content::Pieces(_) => None,
            Content::Memory(memory) => Some(MemoryReader::new(Arc::clone(memory))),
        };
        Self { memory, next_piece: 0, buffer }
    }
}

impl Pieces for HostBufferReader {
    fn next(&mut self) -> Result<Next, Status> {
        match (&mut self.memory, &self.buffer.content) {
            (Some(memory), _) => memory.next(),
            (None, Content::Pieces(pieces)) => {
                let piece = pieces.get(self.next_piece).cloned();
                self.next_piece += 1;
                Ok(piece.map_or(Next::End, Next::Bytes))
            }
            (None, Content::Memory(_)) => Ok(Next::End),
        }
    }
}

/// Builds a buffer from pieces.
#[derive(Debug)]
pub(crate) struct HostBufferBuilder {
    pieces: Vec<Bytes>,
    /// Small pieces are joined: each would keep its receive buffer alive.
    tail: BytesMut,
    size: u64,
    /// Bytes that the permits cover.
    covered: u64,
    announced: u64,
    held: Held,
}

impl HostBufferBuilder {
    const SMALL: usize = 1 << 16;

    pub(crate) fn new(announced: u64, held: Held) -> Self {
        let (pieces, tail) = (Vec::new(), BytesMut::new());
        Self { pieces, tail, size: 0, covered: 0, announced, held }
    }

    /// Returns the additional permit, in bytes, that `bytes` more received bytes need. It covers
    /// more than a small piece at a time, and never more than was announced.
    pub(crate) fn needs(&self, bytes: u64) -> u64 {
        let needed = self.size.saturating_add(bytes);
        if needed <= self.covered {
            return 0;
        }
        let step =
            needed.max(self.covered.saturating_add(Self::SMALL as u64)).min(self.announced.max(1));
        step.saturating_sub(self.covered)
    }

    /// Adds a permit.
    pub(crate) fn cover(&mut self, bytes: u64, room: Permit) {
        self.covered += bytes;
        self.held.add(room);
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// DATA_LOSS if there are more bytes than announced.
    pub(crate) fn push(&mut self, piece: Bytes) -> Result<(), Status> {
        self.size = self.size.saturating_add(piece.len() as u64);
        if self.size > self.announced {
            return Err(self.wrong_size());
        }
        if piece.len() < Self::SMALL && self.size < self.announced || !self.tail.is_empty() {
            self.tail.extend_from_slice(&piece);
            if self.tail.len() >= 1 << 20 {
                self.pieces.push(self.tail.split().freeze());
            }
        } else if !piece.is_empty() {
            self.pieces.push(piece);
        }
        Ok(())
    }

    /// Returns the buffer.
    ///
    /// # Errors
    /// DATA_LOSS if there are fewer bytes than announced.
    pub(crate) fn finish(mut self) -> Result<HostBuffer, Status> {
        if self.size != self.announced {
            return Err(self.wrong_size());
        }
        if !self.tail.is_empty() {
            self.pieces.push(self.tail.freeze());
        }
        Ok(HostBuffer { content: Content::Pieces(self.pieces), size: self.size, _held: self.held })
    }

    fn wrong_size(&self) -> Status {
        wrong_size(self.announced, self.size)
    }
}

pub(crate) fn wrong_size(announced: u64, received: u64) -> Status {
    let so_far = if received > announced { " so far" } else { "" };
    status!(
        DataLoss,
        "the host buffer was announced with {announced} bytes; received {received}{so_far}"
    )
}
