//! The host buffers of a session, and who waits for which.

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

/// Longest time that a look-up waits for the request that makes its buffer.
const EARLY: Duration = Duration::from_millis(50);
/// Look-ups of a session that wait so at a time. The others are told at once.
const MOST_EARLY: usize = 64;

type Waiter = oneshot::Sender<Result<Arc<HostBuffer>, Status>>;

/// A host buffer that an array takes: whole, or as it comes.
#[derive(Debug)]
pub(crate) enum Arrival {
    Whole(Arc<HostBuffer>),
    Stream(Incoming),
}

/// A host buffer on its way into an array. Its bytes are in no store: the transfer goes on as fast
/// as they are taken.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) size: u64,
    pieces: mpsc::Receiver<Result<Piece, Status>>,
}

/// Bytes on their way into an array, in the pieces in which they came.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<Bytes>,
    /// The room that they take until they are there.
    pub(crate) _room: Option<Permit>,
}

impl Piece {
    pub(crate) fn size(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.len() as u64).sum()
    }
}

impl Incoming {
    /// Returns the pieces that are there, at least one and at most about `most` bytes. Waits for
    /// it.
    ///
    /// # Errors
    /// Why the transfer broke off.
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
pub(crate) struct HostBuffers {
    slots: Mutex<Slots>,
    /// Told when an array begins to wait for a buffer.
    takers: Notify,
    /// Told when somebody begins to make a buffer.
    fillings: Notify,
    /// Permits for look-ups that wait for that.
    early: Semaphore,
    limit: usize,
}

/// The right to fill in a handle. Dropping it without a buffer makes everybody who waits for it
/// fail.
#[derive(Debug)]
pub(crate) struct Filling {
    buffers: Arc<HostBuffers>,
    handle: u64,
    failure: Status,
    done: bool,
}

impl HostBuffers {
    /// At most `limit` at a time, which count for `quota`.
    pub(crate) fn new(limit: usize, quota: Quota) -> Arc<Self> {
        let (by_handle, reserve) = (HashMap::new(), Reserve::new(quota));
        let slots = Mutex::new(Slots { by_handle, reserve, closed: false });
        let early = Semaphore::new(MOST_EARLY);
        Arc::new(Self { slots, takers: Notify::new(), fillings: Notify::new(), early, limit })
    }

    /// Returns true if there is no buffer, and no request that waits for one.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_handle.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a buffer for `handle`.
    ///
    /// # Errors
    /// ALREADY_EXISTS if there is one or another one is on its way; RESOURCE_EXHAUSTED if there are
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

    /// Takes the buffer of `handle` out of the store; the result comes when it has arrived, or, for
    /// one that `streams`, when it begins to.
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

    /// Returns the buffer of `handle`, which stays in the store. One that is on its way is waited
    /// for.
    ///
    /// # Errors
    /// NOT_FOUND if there is none; CANCELLED if the session ends.
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

    /// Like [`look_up`](Self::look_up), for one who may have been faster than the request that
    /// makes the buffer, because it came another way: that is waited for a moment.
    ///
    /// # Errors
    /// As there.
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
    /// NOT_FOUND if there is none.
    pub(crate) fn delete(&self, handle: u64) -> Result<(), Status> {
        let mut slots = self.lock();
        let slot = slots.by_handle.get_mut(&handle).ok_or_else(|| unknown(handle))?;
        slot.buffer.take().ok_or_else(|| unknown(handle))?;
        slots.tidy(handle);
        Ok(())
    }

    /// Drops all buffers, and fails all who wait for one.
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
    pub(crate) fn finish(mut self, buffer: HostBuffer) {
        self.done = true;
        self.deliver(Ok(Arc::new(buffer)));
    }

    /// Channel to an array that waits for the buffer and reads its bytes as they arrive, if there
    /// is one.
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

    /// Like [`stream`](Self::stream), when an array waits for the bytes; `None` if the one that
    /// does takes only all of them at once.
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

    /// Says that all bytes have gone where [`stream`](Self::stream) said.
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

    /// Fails those who wait for the buffer.
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
