//! Arrays in the memories of a client: creation, reads, copies and deletion.

use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Buffer, Event, Memory, Plugin, Shape,
    client::{BufferOf, OpenClient, OpenMemory, after, copy_through_host, enqueue},
    event::Completer,
    host_array::HostArray,
};
use crate::{HostSource, HostTarget, Result, Status};

/// The time from which the host memory that an array is created from may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lent {
    /// When the call returns.
    DuringCall,
    /// When an event is done.
    UntilDone,
}

/// An array in a memory.
pub(super) struct Array<P: Plugin> {
    client: Arc<OpenClient<P>>,
    /// The index of its memory in the client.
    memory: usize,
    shape: Shape,
    minor_to_major: Vec<i64>,
    /// Done when its bytes are written.
    ready: Event,
    /// `None` after deletion.
    storage: Mutex<Option<Arc<BufferOf<P>>>>,
    /// References to its bytes, one for each hold by the host, which keep them after deletion.
    held: Mutex<Vec<Arc<BufferOf<P>>>>,
}

impl<P: Plugin> Array<P> {
    /// Creates an array whose bytes are written by someone else.
    pub(super) fn allocate(
        client: &Arc<OpenClient<P>>,
        memory: usize,
        shape: Shape,
        ready: Event,
    ) -> Result<Self> {
        let storage = client.memory(memory)?.memory.allocate(shape.device_bytes() as u64)?;
        Ok(Self::of(client, memory, shape, ready, Some(storage)))
    }

    /// Creates an array that has failed.
    pub(super) fn failed(
        client: &Arc<OpenClient<P>>,
        memory: usize,
        shape: Shape,
        failure: Status,
    ) -> Self {
        Self::of(client, memory, shape, Event::done(Err(failure)), None)
    }

    fn of(
        client: &Arc<OpenClient<P>>,
        memory: usize,
        shape: Shape,
        ready: Event,
        storage: Option<BufferOf<P>>,
    ) -> Self {
        Self {
            client: Arc::clone(client),
            memory,
            minor_to_major: shape.minor_to_major(),
            shape,
            ready,
            storage: Mutex::new(storage.map(Arc::new)),
            held: Mutex::default(),
        }
    }

    /// Creates an array from host memory; returns it, and an event that is done when the memory may
    /// be reused.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough memory; the buffer's errors, if the host memory
    /// is lent for the call only.
    pub(super) fn put(
        client: &Arc<OpenClient<P>>,
        memory: usize,
        layout: HostArray,
        shape: Shape,
        source: HostSource,
        lent: Lent,
    ) -> Result<(Self, Event)> {
        let bytes = shape.device_bytes();
        let write = move |storage: &BufferOf<P>| {
            layout.gather(&source, |place, piece| storage.write(place, piece))
        };
        if bytes == 0 || lent == Lent::DuringCall {
            let array = Self::allocate(client, memory, shape, Event::done(Ok(())))?;
            if bytes > 0 {
                write(&*array.storage()?)?;
            }
            return Ok((array, Event::done(Ok(()))));
        }
        let (completer, ready) = Event::pending();
        let array = Self::allocate(client, memory, shape, ready.clone())?;
        let storage = array.storage()?;
        enqueue(&client.device_of(memory)?.writes, bytes, completer, move || write(&storage));
        // A failed write does not read the memory any more, so it completes the event too.
        let (completer, done) = Event::pending();
        ready.on_done(|_| completer.complete(Ok(())));
        Ok((array, done))
    }

    pub(super) fn client(&self) -> &Arc<OpenClient<P>> {
        &self.client
    }

    pub(super) fn memory(&self) -> Result<&OpenMemory<P>> {
        self.client.memory(self.memory)
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn minor_to_major(&self) -> &[i64] {
        &self.minor_to_major
    }

    pub(super) fn ready(&self) -> &Event {
        &self.ready
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<BufferOf<P>>>> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the buffer with its bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is deleted; its failure, if it has failed.
    pub(super) fn storage(&self) -> Result<Arc<BufferOf<P>>> {
        if let Some(storage) = &*self.lock() {
            return Ok(Arc::clone(storage));
        }
        match self.ready.outcome() {
            Some(Err(failure)) => Err(failure),
            _ => Err(Status::invalid_argument(format!(
                "the array {} was deleted or donated",
                self.shape
            ))),
        }
    }

    /// Frees its bytes when no operation that was begun needs them any more.
    pub(super) fn delete(&self) {
        let storage = self.lock().take();
        drop(storage);
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.lock().is_none()
    }

    /// Keeps its bytes, even after deletion, until [`Self::release`] or its end.
    ///
    /// # Errors
    /// As [`Self::storage`].
    pub(super) fn hold(&self) -> Result<()> {
        let storage = self.storage()?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(storage);
        Ok(())
    }

    /// Reverts one [`Self::hold`].
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if there is none.
    pub(super) fn release(&self) -> Result<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).pop();
        held.map(drop).ok_or_else(|| {
            Status::failed_precondition(
                "no hold is left: the array was released more often than held",
            )
        })
    }

    /// Returns the address of its bytes on the device.
    ///
    /// # Errors
    /// As [`Self::storage`]; `UNIMPLEMENTED` if the device does not return it.
    pub(super) fn address(&self) -> Result<NonNull<c_void>> {
        let address = self.storage()?.address();
        address.ok_or_else(|| Status::unimplemented("this plug-in does not say where arrays lie"))
    }

    /// Copies its elements to the host, in the layout `layout`.
    ///
    /// # Errors
    /// As [`Self::storage`].
    pub(super) fn read(&self, layout: HostArray, mut target: HostTarget) -> Result<Event> {
        self.copy_out(self.shape.device_bytes(), move |storage| {
            layout.scatter(&mut target, |place, piece| storage.read(place, piece))
        })
    }

    /// Copies bytes from the device's memory unchanged, from `offset`.
    ///
    /// # Errors
    /// As [`Self::storage`]; `INVALID_ARGUMENT` if they are not inside the array.
    pub(super) fn read_raw(&self, offset: i64, target: HostTarget) -> Result<Event> {
        let bytes = self.range(offset, i64::try_from(target.len()).unwrap_or(i64::MAX))?;
        let mut target = target;
        self.copy_out(bytes.len(), move |storage| storage.read(bytes.start as u64, &mut target))
    }

    /// Returns the range of these bytes in the device's memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they are not all inside the array.
    pub(super) fn range(&self, offset: i64, size: i64) -> Result<std::ops::Range<usize>> {
        let all = self.shape.device_bytes();
        let start = usize::try_from(offset).ok();
        let end =
            start.zip(usize::try_from(size).ok()).and_then(|(start, size)| start.checked_add(size));
        match start.zip(end) {
            Some((start, end)) if end <= all => Ok(start..end),
            _ => Err(Status::invalid_argument(format!(
                "{size} bytes at {offset} do not lie in the {all} bytes of the array {}",
                self.shape
            ))),
        }
    }

    /// Calls `work` with its bytes when they are written, after earlier reads.
    fn copy_out(
        &self,
        bytes: usize,
        work: impl FnOnce(&BufferOf<P>) -> Result<()> + Send + 'static,
    ) -> Result<Event> {
        let storage = self.storage()?;
        if bytes == 0 {
            return Ok(self.ready.clone());
        }
        let (client, memory) = (Arc::clone(&self.client), self.memory);
        Ok(after(&self.ready, move |completer| {
            submit(&client, memory, Way::Out, bytes, completer, move || work(&storage));
        }))
    }

    /// Returns a copy of it in another memory, of any client of the plug-in.
    ///
    /// # Errors
    /// As [`Self::storage`], and [`Self::allocate`].
    pub(super) fn copy_to(&self, client: &Arc<OpenClient<P>>, memory: usize) -> Result<Self> {
        let source = self.storage()?;
        let (completer, ready) = Event::pending();
        let copy = Self::allocate(client, memory, self.shape.clone(), ready)?;
        let (target, bytes) = (copy.storage()?, self.shape.device_bytes());
        let client = Arc::clone(client);
        self.ready.on_done(move |outcome| match outcome {
            Ok(()) if bytes == 0 => completer.complete(Ok(())),
            Ok(()) => submit(&client, memory, Way::In, bytes, completer, move || {
                match target.copy_from(&source)? {
                    true => Ok(()),
                    false => copy_through_host(&*source, &*target, bytes),
                }
            }),
            Err(failure) => completer
                .complete(Err(failure.context("the array that was to be copied had failed"))),
        });
        Ok(copy)
    }
}

/// The direction of a copy: to a device or from it.
#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

/// Like [`enqueue`], for the queue of a memory's device.
fn submit<P: Plugin>(
    client: &Arc<OpenClient<P>>,
    memory: usize,
    way: Way,
    bytes: usize,
    completer: Completer,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) {
    match client.device_of(memory) {
        Ok(device) => {
            let queue = match way {
                Way::In => &device.writes,
                Way::Out => &device.reads,
            };
            enqueue(queue, bytes, completer, work);
        }
        Err(failure) => completer.complete(Err(failure)),
    }
}
