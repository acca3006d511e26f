//! The host buffers of a session: bytes on their way from the client to an array, or from an array to the client.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::{
    limits::Share,
    metrics::{Counted, Gauges},
};
use crate::{codec::Status, proxy::status::status};

/// Bytes in the pieces in which they came.
#[derive(Debug)]
pub(super) struct HostBuffer {
    pieces: Vec<Bytes>,
    size: u64,
    _held: Held,
}

/// What a buffer counts for, from its announcement on.
#[derive(Debug)]
pub(super) struct Held {
    _shares: [Share; 2],
    _counted: [Counted; 2],
}

impl Held {
    pub(super) fn new(shares: [Share; 2], size: u64, gauges: &Arc<Gauges>) -> Self {
        let counted = [
            gauges.hold(|gauges| &gauges.host_buffers, 1),
            gauges.hold(|gauges| &gauges.host_buffer_bytes, size),
        ];
        Self { _shares: shares, _counted: counted }
    }
}

impl HostBuffer {
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &piece[..])
    }

    /// All bytes in one piece.
    pub(super) fn whole(&self) -> Bytes {
        match &self.pieces[..] {
            [] => Bytes::new(),
            [one] => one.clone(),
            pieces => pieces.concat().into(),
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
    announced: u64,
    held: Held,
}

impl HostBufferBuilder {
    const SMALL: usize = 1 << 16;

    pub(super) fn new(announced: u64, held: Held) -> Self {
        Self { pieces: Vec::new(), tail: BytesMut::new(), size: 0, announced, held }
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
        Ok(HostBuffer { pieces: self.pieces, size: self.size, _held: self.held })
    }

    fn wrong_size(&self) -> Status {
        status!(
            DataLoss,
            "the host buffer was announced with {} bytes; received {}{}",
            self.announced,
            self.size,
            if self.size > self.announced { " so far" } else { "" },
        )
    }
}

type Waiter = oneshot::Sender<Result<Arc<HostBuffer>, Status>>;

#[derive(Debug, Default)]
struct Slot {
    /// Somebody is making the buffer.
    arriving: bool,
    buffer: Option<Arc<HostBuffer>>,
    /// Arrays that wait for the buffer; each takes one.
    takers: VecDeque<Waiter>,
    /// Look-ups that wait for the buffer.
    readers: Vec<Waiter>,
    /// The array that needed it could not be made: the next buffer is dropped.
    unwanted: bool,
}

#[derive(Debug, Default)]
struct Slots {
    by_handle: HashMap<u64, Slot>,
    closed: bool,
}

/// The host buffers of a session, by handle.
#[derive(Debug)]
pub(super) struct HostBuffers {
    slots: Mutex<Slots>,
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
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { slots: Mutex::default(), limit })
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

    /// Takes the buffer of `handle` out of the store; the result comes when it has arrived.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many; CANCELLED after the end.
    pub(super) fn take(
        &self,
        handle: u64,
    ) -> Result<oneshot::Receiver<Result<Arc<HostBuffer>, Status>>, Status> {
        let mut slots = self.lock();
        let slot = slots.slot(handle, self.limit)?;
        let (sender, receiver) = oneshot::channel();
        match slot.buffer.take() {
            Some(buffer) => {
                slots.tidy(handle);
                drop(sender.send(Ok(buffer)));
            }
            None => slot.takers.push_back(sender),
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
            std::mem::take(&mut slots.by_handle)
        };
        for slot in slots.into_values() {
            for waiter in slot.takers.into_iter().chain(slot.readers) {
                drop(waiter.send(Err(over())));
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
            Entry::Vacant(slot) if count < limit => Ok(slot.insert(Slot::default())),
            Entry::Vacant(_) => Err(status!(
                ResourceExhausted,
                "the session has {count} host buffers; delete some first"
            )),
        }
    }

    /// Forgets a slot that says nothing any more.
    fn tidy(&mut self, handle: u64) {
        if let Some(slot) = self.by_handle.get_mut(&handle) {
            slot.takers.retain(|waiter| !waiter.is_closed());
            if !slot.arriving && slot.buffer.is_none() && slot.takers.is_empty() && !slot.unwanted {
                self.by_handle.remove(&handle);
            }
        }
    }
}

impl Filling {
    /// Gives the buffer to those who wait for it, or puts it into the store.
    pub(super) fn finish(mut self, buffer: HostBuffer) {
        self.done = true;
        self.deliver(Ok(Arc::new(buffer)));
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
                        Some(taker) => rest = taker.send(Ok(buffer)).err().and_then(Result::ok),
                        None => slot.buffer = Some(buffer),
                    }
                }
            }
            Err(status) => {
                for taker in slot.takers.drain(..) {
                    drop(taker.send(Err(status.clone())));
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
