//! The host buffers of a session: bytes on their way from the client to an array, or from an array to the client.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, mpsc, oneshot};

use super::{
    budget::{Account, Holding, Reserve},
    element::zeroed,
    memory::Memory,
    metrics::{Counted, Gauges},
};
use crate::{codec::Status, proxy::status::status};

/// The bytes of a host buffer.
#[derive(Debug)]
pub(super) struct HostBuffer {
    content: Content,
    size: u64,
    _held: Held,
}

#[derive(Debug)]
enum Content {
    /// In the pieces in which they came.
    Pieces(Vec<Bytes>),
    /// Those of a shard, which never change: they are read when they are asked for.
    Memory(Arc<Memory>),
}

/// What a buffer counts for, from its announcement on.
#[derive(Debug)]
pub(super) struct Held {
    _announced: Holding,
    arrived: Option<Holding>,
    _counted: [Counted; 2],
}

impl Held {
    pub(super) fn new(announced: Holding, size: u64, gauges: &Arc<Gauges>) -> Self {
        let counted = [
            gauges.hold(|gauges| &gauges.host_buffers, 1),
            gauges.hold(|gauges| &gauges.host_buffer_bytes, size),
        ];
        Self { _announced: announced, arrived: None, _counted: counted }
    }

    /// Counts for more that has arrived.
    fn add(&mut self, more: Holding) {
        match &mut self.arrived {
            Some(arrived) => arrived.add(more),
            arrived => *arrived = Some(more),
        }
    }
}

impl HostBuffer {
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of a shard, without a copy of them.
    pub(super) fn of_memory(memory: Arc<Memory>, held: Held) -> Self {
        Self { size: memory.size(), content: Content::Memory(memory), _held: held }
    }

    /// The bytes, in pieces. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(super) fn pieces(&self) -> Result<Vec<Bytes>, Status> {
        match &self.content {
            Content::Pieces(pieces) => Ok(pieces.clone()),
            Content::Memory(memory) => Ok(vec![memory.read()?.into()]),
        }
    }

    /// All bytes in one piece. May wait for the device.
    ///
    /// # Errors
    /// As [`pieces`](Self::pieces).
    pub(super) fn whole(&self) -> Result<Bytes, Status> {
        let mut pieces = self.pieces()?;
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

/// Reads a host buffer from its first byte to its last.
#[derive(Debug)]
pub(super) struct HostBufferReader {
    buffer: Arc<HostBuffer>,
    /// The next piece, or the next byte of a memory.
    next: u64,
    /// What was read last and before: its memory is used again when nobody has it any more.
    last: [Bytes; 2],
}

impl HostBufferReader {
    /// Bytes that are read from a device at a time: much for a call into the plug-in, little for the caches of a processor.
    const STEP: u64 = 4 << 20;

    /// The most bytes of a buffer that are on the host because it is read.
    pub(super) fn most_ahead(buffer: &HostBuffer) -> u64 {
        match buffer.content {
            Content::Pieces(_) => 0,
            Content::Memory(_) => buffer.size.min(2 * Self::STEP),
        }
    }

    pub(super) fn new(buffer: Arc<HostBuffer>) -> Self {
        Self { buffer, next: 0, last: Default::default() }
    }

    /// The next bytes; none at the end. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(super) fn read(&mut self) -> Result<Option<Bytes>, Status> {
        match &self.buffer.content {
            Content::Pieces(pieces) => {
                let piece = usize::try_from(self.next).ok().and_then(|next| pieces.get(next));
                self.next += 1;
                Ok(piece.cloned())
            }
            Content::Memory(memory) => {
                let length = memory.size().saturating_sub(self.next).min(Self::STEP);
                if length == 0 {
                    return Ok(None);
                }
                let [last, before] = &mut self.last;
                std::mem::swap(last, before);
                let used = std::mem::take(last).try_into_mut();
                let mut target = match used.ok().filter(|used| used.len() as u64 == length) {
                    Some(used) => used,
                    None => BytesMut::from(Bytes::from(zeroed(length)?)),
                };
                memory.read_part(self.next, &mut target)?;
                self.next += length;
                *last = target.freeze();
                Ok(Some(last.clone()))
            }
        }
    }
}

/// Puts a buffer together from pieces.
#[derive(Debug)]
pub(super) struct HostBufferBuilder {
    pieces: Vec<Bytes>,
    /// Small pieces are put together: each would keep the memory alive that it was received in.
    tail: BytesMut,
    size: u64,
    /// Bytes that room has been taken for.
    covered: u64,
    announced: u64,
    held: Held,
}

impl HostBufferBuilder {
    const SMALL: usize = 1 << 16;

    pub(super) fn new(announced: u64, held: Held) -> Self {
        let (pieces, tail) = (Vec::new(), BytesMut::new());
        Self { pieces, tail, size: 0, covered: 0, announced, held }
    }

    /// How much room a piece of that many bytes needs more. It is taken for more than a small piece at a time, and never for more than
    /// what was announced.
    pub(super) fn needs(&self, piece: usize) -> u64 {
        let needed = self.size.saturating_add(piece as u64);
        if needed <= self.covered {
            return 0;
        }
        let step =
            needed.max(self.covered.saturating_add(Self::SMALL as u64)).min(self.announced.max(1));
        step.saturating_sub(self.covered)
    }

    /// Has that much room more.
    pub(super) fn cover(&mut self, bytes: u64, room: Holding) {
        self.covered += bytes;
        self.held.add(room);
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// DATA_LOSS if these are more bytes than announced.
    pub(super) fn push(&mut self, piece: Bytes) -> Result<(), Status> {
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

    /// The buffer.
    ///
    /// # Errors
    /// DATA_LOSS if these are fewer bytes than announced.
    pub(super) fn finish(mut self) -> Result<HostBuffer, Status> {
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

pub(super) fn wrong_size(announced: u64, received: u64) -> Status {
    let so_far = if received > announced { " so far" } else { "" };
    status!(
        DataLoss,
        "the host buffer was announced with {announced} bytes; received {received}{so_far}"
    )
}

type Waiter = oneshot::Sender<Result<Arc<HostBuffer>, Status>>;

/// A host buffer that an array takes: whole, or as it comes.
#[derive(Debug)]
pub(super) enum Arrival {
    Whole(Arc<HostBuffer>),
    Stream(Incoming),
}

/// A host buffer on its way into an array. Its bytes are in no store: the transfer goes on as fast as they are taken.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) size: u64,
    pieces: mpsc::Receiver<Result<Piece, Status>>,
}

/// Bytes on their way into an array, and the room that they take until they are there.
pub(super) type Piece = (Bytes, Option<Holding>);

impl Incoming {
    /// The pieces that are there, at least one and at most about `most` bytes. Waits for it.
    ///
    /// # Errors
    /// Why the transfer broke off.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<Piece>, Status> {
        let broken = || status!(Unavailable, "the transfer of the host buffer broke off");
        let first = self.pieces.recv().await.unwrap_or_else(|| Err(broken()))?;
        let mut bytes = first.0.len();
        let mut pieces = vec![first];
        while bytes < most
            && let Ok(piece) = self.pieces.try_recv()
        {
            let piece = piece?;
            bytes = bytes.saturating_add(piece.0.len());
            pieces.push(piece);
        }
        Ok(pieces)
    }
}

/// An array that waits for its buffer.
#[derive(Debug)]
struct Taker {
    sender: oneshot::Sender<Result<Arrival, Status>>,
    /// It can take the bytes as they come.
    streams: bool,
}

#[derive(Debug, Default)]
struct Slot {
    /// Somebody is making the buffer.
    arriving: bool,
    buffer: Option<Arc<HostBuffer>>,
    /// Arrays that wait for the buffer; each takes one.
    takers: VecDeque<Taker>,
    /// Look-ups that wait for the buffer.
    readers: Vec<Waiter>,
    /// The array that needed it could not be made: the next buffer is dropped.
    unwanted: bool,
}

#[derive(Debug)]
struct Slots {
    by_handle: HashMap<u64, Slot>,
    reserve: Reserve,
    closed: bool,
}

/// The host buffers of a session, by handle.
#[derive(Debug)]
pub(super) struct HostBuffers {
    slots: Mutex<Slots>,
    /// Told when an array begins to wait for a buffer.
    takers: Notify,
    limit: usize,
}

/// The right to fill in a handle. Dropping it without a buffer makes everybody who waits for it fail.
#[derive(Debug)]
pub(super) struct Filling {
    buffers: Arc<HostBuffers>,
    handle: u64,
    failure: Status,
    done: bool,
}

impl HostBuffers {
    /// At most `limit` at a time, which count for `account`.
    pub(super) fn new(limit: usize, account: Account) -> Arc<Self> {
        let (by_handle, reserve) = (HashMap::new(), Reserve::new(account));
        let slots = Mutex::new(Slots { by_handle, reserve, closed: false });
        Arc::new(Self { slots, takers: Notify::new(), limit })
    }

    /// Whether there is none, and none is waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().by_handle.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a buffer for `handle`.
    ///
    /// # Errors
    /// ALREADY_EXISTS if there is one or another one is on its way; RESOURCE_EXHAUSTED if there are too many; CANCELLED after the end.
    pub(super) fn fill(self: &Arc<Self>, handle: u64) -> Result<Filling, Status> {
        let mut slots = self.lock();
        let slot = slots.slot(handle, self.limit)?;
        if slot.arriving || slot.buffer.is_some() {
            return Err(status!(
                AlreadyExists,
                "host buffer {handle} is there already; use each handle once"
            ));
        }
        slot.arriving = true;
        Ok(Filling {
            buffers: Arc::clone(self),
            handle,
            failure: status!(Unavailable, "the transfer of host buffer {handle} broke off"),
            done: false,
        })
    }

    /// Takes the buffer of `handle` out of the store; the result comes when it has arrived, or, for one that `streams`, when it begins to.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many; CANCELLED after the end.
    pub(super) fn take(
        &self,
        handle: u64,
        streams: bool,
    ) -> Result<oneshot::Receiver<Result<Arrival, Status>>, Status> {
        let mut slots = self.lock();
        let slot = slots.slot(handle, self.limit)?;
        let (sender, receiver) = oneshot::channel();
        match slot.buffer.take() {
            Some(buffer) => {
                slots.tidy(handle);
                drop(sender.send(Ok(Arrival::Whole(buffer))));
            }
            None => {
                slot.takers.push_back(Taker { sender, streams });
                self.takers.notify_waiters();
            }
        }
        Ok(receiver)
    }

    /// Drops the buffer of `handle`, now or when it arrives: nobody will ask for it.
    pub(super) fn discard(&self, handle: u64) {
        let mut slots = self.lock();
        if let Ok(slot) = slots.slot(handle, self.limit)
            && slot.buffer.take().is_none()
        {
            slot.unwanted = true;
        }
        slots.tidy(handle);
    }

    /// The buffer of `handle`, which stays in the store. One that is on its way is waited for.
    ///
    /// # Errors
    /// NOT_FOUND if there is none; CANCELLED if the session ends.
    pub(super) async fn look_up(&self, handle: u64) -> Result<Arc<HostBuffer>, Status> {
        let receiver = {
            let mut slots = self.lock();
            let slot = slots
                .by_handle
                .get_mut(&handle)
                .filter(|slot| slot.arriving || slot.buffer.is_some());
            let slot = slot.ok_or_else(|| unknown(handle))?;
            if let Some(buffer) = &slot.buffer {
                return Ok(Arc::clone(buffer));
            }
            let (sender, receiver) = oneshot::channel();
            slot.readers.push(sender);
            receiver
        };
        receiver.await.unwrap_or_else(|_| Err(over()))
    }

    /// Drops the buffer of `handle`.
    ///
    /// # Errors
    /// NOT_FOUND if there is none.
    pub(super) fn delete(&self, handle: u64) -> Result<(), Status> {
        let mut slots = self.lock();
        let slot = slots.by_handle.get_mut(&handle).ok_or_else(|| unknown(handle))?;
        slot.buffer.take().ok_or_else(|| unknown(handle))?;
        slots.tidy(handle);
        Ok(())
    }

    /// Drops all buffers, and fails all who wait for one.
    pub(super) fn close(&self) {
        let slots = {
            let mut slots = self.lock();
            slots.closed = true;
            slots.reserve.clear();
            std::mem::take(&mut slots.by_handle)
        };
        for slot in slots.into_values() {
            for taker in slot.takers {
                drop(taker.sender.send(Err(over())));
            }
            for reader in slot.readers {
                drop(reader.send(Err(over())));
            }
        }
    }
}

impl Slots {
    fn slot(&mut self, handle: u64, limit: usize) -> Result<&mut Slot, Status> {
        if self.closed {
            return Err(over());
        }
        let count = self.by_handle.len();
        match self.by_handle.entry(handle) {
            Entry::Occupied(slot) => Ok(slot.into_mut()),
            Entry::Vacant(slot) if count < limit => {
                self.reserve.make(count + 1)?;
                Ok(slot.insert(Slot::default()))
            }
            Entry::Vacant(_) => Err(status!(
                ResourceExhausted,
                "the session has {count} host buffers, and the limit `session-handles` of this server is {limit}; delete some first"
            )),
        }
    }

    /// Forgets a slot that says nothing any more.
    fn tidy(&mut self, handle: u64) {
        if let Some(slot) = self.by_handle.get_mut(&handle) {
            slot.takers.retain(|taker| !taker.sender.is_closed());
            if !slot.arriving && slot.buffer.is_none() && slot.takers.is_empty() && !slot.unwanted {
                self.by_handle.remove(&handle);
                self.reserve.shrink(self.by_handle.len());
            }
        }
    }
}

impl Filling {
    /// Pieces between a transfer and the array that takes them.
    const PIECES: usize = 4;

    /// Gives the buffer to those who wait for it, or puts it into the store.
    pub(super) fn finish(mut self, buffer: HostBuffer) {
        self.done = true;
        self.deliver(Ok(Arc::new(buffer)));
    }

    /// Where the bytes go as they come, if an array waits for them that takes them so.
    pub(super) fn stream(&self, size: u64) -> Option<mpsc::Sender<Result<Piece, Status>>> {
        let mut slots = self.buffers.lock();
        let slot = slots.by_handle.get_mut(&self.handle)?;
        slot.takers.retain(|taker| !taker.sender.is_closed());
        if !slot.takers.front()?.streams {
            return None;
        }
        let taker = slot.takers.pop_front()?;
        let (sender, pieces) = mpsc::channel(Self::PIECES);
        taker.sender.send(Ok(Arrival::Stream(Incoming { size, pieces }))).ok()?;
        Some(sender)
    }

    /// As [`stream`](Self::stream), when an array waits for the bytes; `None` if the one that does takes only all of them at once.
    pub(super) async fn streams_to(
        &self,
        size: u64,
    ) -> Option<mpsc::Sender<Result<Piece, Status>>> {
        loop {
            let comes = self.buffers.takers.notified();
            let mut comes = std::pin::pin!(comes);
            comes.as_mut().enable();
            if let Some(sender) = self.stream(size) {
                return Some(sender);
            }
            if self.is_awaited() {
                return None;
            }
            comes.await;
        }
    }

    fn is_awaited(&self) -> bool {
        let slots = self.buffers.lock();
        slots.by_handle.get(&self.handle).is_none_or(|slot| !slot.takers.is_empty())
    }

    /// Says that all bytes have gone where [`stream`](Self::stream) said.
    pub(super) fn streamed(mut self) {
        self.done = true;
        let mut slots = self.buffers.lock();
        let Some(slot) = slots.by_handle.get_mut(&self.handle) else { return };
        slot.arriving = false;
        for reader in slot.readers.drain(..) {
            drop(reader.send(Err(unknown(self.handle))));
        }
        slots.tidy(self.handle);
    }

    /// Fails those who wait for the buffer.
    pub(super) fn fail(mut self, status: Status) {
        self.failure = status;
    }

    fn deliver(&self, result: Result<Arc<HostBuffer>, Status>) {
        let mut slots = self.buffers.lock();
        let Some(slot) = slots.by_handle.get_mut(&self.handle) else { return };
        slot.arriving = false;
        for reader in slot.readers.drain(..) {
            drop(reader.send(result.clone()));
        }
        match result {
            Ok(buffer) => {
                if std::mem::take(&mut slot.unwanted) && slot.takers.is_empty() {
                    slots.tidy(self.handle);
                    return;
                }
                let mut rest = Some(buffer);
                while let Some(buffer) = rest.take() {
                    match slot.takers.pop_front() {
                        Some(taker) => {
                            // A taker that has gone leaves it to the next.
                            if let Err(Ok(Arrival::Whole(buffer))) =
                                taker.sender.send(Ok(Arrival::Whole(buffer)))
                            {
                                rest = Some(buffer);
                            }
                        }
                        None => slot.buffer = Some(buffer),
                    }
                }
            }
            Err(status) => {
                for taker in slot.takers.drain(..) {
                    drop(taker.sender.send(Err(status.clone())));
                }
            }
        }
        slots.tidy(self.handle);
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if !self.done {
            self.deliver(Err(self.failure.clone()));
        }
    }
}

fn over() -> Status {
    status!(Cancelled, "the session is over")
}

fn unknown(handle: u64) -> Status {
    status!(
        NotFound,
        "there is no host buffer {handle} in this session; it was never stored, or was taken or deleted"
    )
}
