//! The host buffers of a session, and the requests that wait for them.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serdes::codec::Status;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use super::HostBuffer;
use crate::{
    server::budget::{Permit, Quota, Reserve},
    status::status,
};

/// Longest time that a look-up waits for the request that creates its buffer.
const EARLY: Duration = Duration::from_millis(50);
/// Maximum number of such waits of a session. Further look-ups fail at once.
const MOST_EARLY: usize = 64;

type Waiter = oneshot::Sender<Result<Arc<HostBuffer>, Status>>;

/// A host buffer for an array: complete, or as a stream.
#[derive(Debug)]
pub(crate) enum Arrival {
    Whole(Arc<HostBuffer>),
    Stream(Incoming),
}

/// A host buffer that is streamed into an array. Its bytes are not stored: the transfer proceeds as
/// fast as they are taken.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) size: u64,
    pieces: mpsc::Receiver<Result<Piece, Status>>,
}

/// Bytes in transfer to an array, as they arrived.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<Bytes>,
    /// Permit for the bytes until they are on the device.
    pub(crate) _room: Option<Permit>,
}

impl Piece {
    pub(crate) fn size(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.len() as u64).sum()
    }
}

impl Incoming {
    /// Waits for pieces; returns those that have arrived, at least one and at most about `most`
    /// bytes.
    ///
    /// # Errors
    /// The reason why the transfer ended.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Piece>, Status> {
        let broken = || status!(Unavailable, "the transfer of the host buffer broke off");
        let first = self.pieces.recv().await.unwrap_or_else(|| Err(broken()))?;
        let mut bytes = first.size();
        let mut pieces = vec![first];
        while bytes < most as u64
            && let Ok(piece) = self.pieces.try_recv()
        {
            let piece = piece?;
            bytes = bytes.saturating_add(piece.size());
            pieces.push(piece);
        }
        Ok(pieces)
    }
}

/// An array that waits for its buffer.
#[derive(Debug)]
struct Taker {
    sender: oneshot::Sender<Result<Arrival, Status>>,
    /// True if the array can take a stream.
    streams: bool,
}

#[derive(Debug, Default)]
struct Slot {
    /// True if the buffer is being created.
    arriving: bool,
    buffer: Option<Arc<HostBuffer>>,
    /// Arrays that wait for the buffer; each takes one.
    takers: VecDeque<Taker>,
    /// Look-ups that wait for the buffer.
    readers: Vec<Waiter>,
    /// True if the array that needed the buffer could not be created: the next buffer is dropped.
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
pub(crate) struct HostBuffers {
    slots: Mutex<Slots>,
    /// Notified when an array starts to wait for a buffer.
    takers: Notify,
    /// Notified when the creation of a buffer starts.
    fillings: Notify,
    /// Permits for look-ups that wait for the creation.
    early: Semaphore,
    limit: usize,
}

/// The exclusive right to create the buffer of a handle. If it is dropped without a buffer, all
/// requests that wait for it fail.
#[derive(Debug)]
pub(crate) struct Filling {
    buffers: Arc<HostBuffers>,
    handle: u64,
    failure: Status,
    done: bool,
}

impl HostBuffers {
    /// Creates storage for at most `limit` buffers at a time, which count for `quota`.
    pub(crate) fn new(limit: usize, quota: Quota) -> Arc<Self> {
        let (by_handle, reserve) = (HashMap::new(), Reserve::new(quota));
        let slots = Mutex::new(Slots { by_handle, reserve, closed: false });
        let early = Semaphore::new(MOST_EARLY);
        Arc::new(Self { slots, takers: Notify::new(), fillings: Notify::new(), early, limit })
    }

    /// Returns true if there is no buffer, and no request waits for one.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_handle.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a buffer for `handle`.
    ///
    /// # Errors
    /// ALREADY_EXISTS if there is one or another one is announced; RESOURCE_EXHAUSTED if there are
    /// too many; CANCELLED after the end.
    pub(crate) fn fill(self: &Arc<Self>, handle: u64) -> Result<Filling, Status> {
        let mut slots = self.lock();
        let slot = slots.slot(handle, self.limit)?;
        if slot.arriving || slot.buffer.is_some() {
            return Err(status!(
                AlreadyExists,
                "host buffer {handle} is there already; use each handle once"
            ));
        }
        slot.arriving = true;
        drop(slots);
        self.fillings.notify_waiters();
        Ok(Filling {
            buffers: Arc::clone(self),
            handle,
            failure: status!(Unavailable, "the transfer of host buffer {handle} broke off"),
            done: false,
        })
    }

    /// Takes the buffer of `handle` out of the store; the result arrives when the buffer is
    /// complete, or, if the taker `streams`, when it starts to arrive.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many; CANCELLED after the end.
    pub(crate) fn take(
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

    /// Drops the buffer of `handle`, now or when it arrives: no request will use it.
    pub(crate) fn discard(&self, handle: u64) {
        let mut slots = self.lock();
        if let Ok(slot) = slots.slot(handle, self.limit)
            && slot.buffer.take().is_none()
        {
            slot.unwanted = true;
        }
        slots.tidy(handle);
    }

    /// Returns the buffer of `handle`, which stays in the store. Waits for one that is announced.
    ///
    /// # Errors
    /// NOT_FOUND if there is no buffer; CANCELLED if the session ends.
    pub(crate) async fn look_up(&self, handle: u64) -> Result<Arc<HostBuffer>, Status> {
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

    /// Like [`look_up`](Self::look_up), for a caller that may have overtaken the request that
    /// creates the buffer on another connection: waits a moment for that.
    ///
    /// # Errors
    /// As [`look_up`](Self::look_up).
    pub(crate) async fn look_up_early(&self, handle: u64) -> Result<Arc<HostBuffer>, Status> {
        let Ok(_early) = self.early.try_acquire() else { return self.look_up(handle).await };
        let mut overdue = std::pin::pin!(tokio::time::sleep(EARLY));
        loop {
            let begins = self.fillings.notified();
            if !self.is_unknown(handle) {
                return self.look_up(handle).await;
            }
            tokio::select! {
                () = begins => {}
                () = &mut overdue => return Err(unknown(handle)),
            }
        }
    }

    fn is_unknown(&self, handle: u64) -> bool {
        let slots = self.lock();
        let slot = slots.by_handle.get(&handle);
        !slots.closed && !slot.is_some_and(|slot| slot.arriving || slot.buffer.is_some())
    }

    /// Drops the buffer of `handle`.
    ///
    /// # Errors
    /// NOT_FOUND if there is no buffer.
    pub(crate) fn delete(&self, handle: u64) -> Result<(), Status> {
        let mut slots = self.lock();
        let slot = slots.by_handle.get_mut(&handle).ok_or_else(|| unknown(handle))?;
        slot.buffer.take().ok_or_else(|| unknown(handle))?;
        slots.tidy(handle);
        Ok(())
    }

    /// Drops all buffers, and fails all requests that wait for one.
    pub(crate) fn close(&self) {
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

    /// Removes an unused slot.
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
    /// Capacity of the channel between a transfer and the array that takes the pieces.
    const PIECES: usize = 4;

    /// Passes the buffer to those who wait for it, or stores it.
    pub(crate) fn finish(mut self, buffer: HostBuffer) {
        self.done = true;
        self.deliver(Ok(Arc::new(buffer)));
    }

    /// Returns the channel to an array that waits for the buffer and takes a stream, if there is
    /// one.
    pub(crate) fn stream(&self, size: u64) -> Option<mpsc::Sender<Result<Piece, Status>>> {
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

    /// Like [`stream`](Self::stream), but waits for an array; `None` if that array takes only
    /// complete buffers.
    pub(crate) async fn streams_to(
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

    /// Completes the transfer after all bytes went to the [`stream`](Self::stream).
    pub(crate) fn streamed(mut self) {
        self.done = true;
        let mut slots = self.buffers.lock();
        let Some(slot) = slots.by_handle.get_mut(&self.handle) else { return };
        slot.arriving = false;
        for reader in slot.readers.drain(..) {
            drop(reader.send(Err(unknown(self.handle))));
        }
        slots.tidy(self.handle);
    }

    /// Fails the requests that wait for the buffer.
    pub(crate) fn fail(mut self, status: Status) {
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
                            // If a taker is gone, the next one gets the buffer.
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
