//! An open client: its devices and memories, queried once, and the threads that do their work.

use std::{
    ops::Range,
    sync::{Arc, OnceLock, Weak},
};

use serdes_abi::pjrt::args::{PJRT_Device, PJRT_Memory};

use super::{
    Buffer, Client, Device, Event, Memory, Plugin,
    border::{Handles, MemoryHead, NamedValues},
    device,
    event::{Completer, working},
};
use crate::{
    Result, Status,
    panic::contain,
    queue::{Queue, RunsOn},
};

pub(super) type DeviceOf<P> = <<P as Plugin>::Client as Client>::Device;
pub(super) type MemoryOf<P> = <DeviceOf<P> as Device>::Memory;
pub(super) type BufferOf<P> = device::BufferOf<<P as Plugin>::Client>;

/// The largest copy in bytes that is done on the calling thread, if the device is idle: waking a
/// thread takes longer.
pub(super) const INLINE_BYTES: usize = if cfg!(miri) { 1 << 9 } else { 32 << 10 };

/// A client with its devices and memories.
pub(super) struct OpenClient<P: Plugin> {
    pub(super) client: P::Client,
    pub(super) platform_name: String,
    pub(super) platform_version: String,
    pub(super) devices: Box<[OpenDevice<P>]>,
    pub(super) memories: Box<[OpenMemory<P>]>,
    /// The handles of the devices, created on the host's first query.
    pub(super) device_handles: OnceLock<Handles<PJRT_Device>>,
    /// The handles of the memories, created on the host's first query.
    pub(super) memory_handles: OnceLock<Handles<PJRT_Memory>>,
}

/// A device of an [`OpenClient`].
pub(super) struct OpenDevice<P: Plugin> {
    pub(super) client: Weak<OpenClient<P>>,
    pub(super) device: DeviceOf<P>,
    /// Its index in the client, which is also its number.
    pub(super) index: usize,
    pub(super) local_hardware_id: i32,
    pub(super) kind: String,
    /// A description for people.
    pub(super) text: String,
    pub(super) attributes: NamedValues,
    /// The range of its memories in the client's list.
    pub(super) memories: Range<usize>,
    /// The queue of copies to the device, in order.
    pub(super) writes: Queue,
    /// The queue of copies from the device, in order.
    pub(super) reads: Queue,
    /// The queue of program runs, in order.
    pub(super) runs: Queue,
}

/// A memory of an [`OpenClient`]. A host holds its address, and may read its first fields.
#[repr(C)]
pub(super) struct OpenMemory<P: Plugin> {
    _head: MemoryHead,
    pub(super) client: Weak<OpenClient<P>>,
    pub(super) memory: MemoryOf<P>,
    /// The index of its device in the client.
    pub(super) device: usize,
    /// Its index in the client, which is also its number.
    pub(super) index: usize,
    pub(super) kind: String,
    /// The number of the memory's kind, equal for memories of the same kind.
    pub(super) kind_id: i32,
    /// A description for people.
    pub(super) text: String,
}

impl<P: Plugin> OpenClient<P> {
    /// Queries the devices of a client and their memories.
    ///
    /// # Errors
    /// The client's errors; `INTERNAL` if a device has no memory, or there are more than can be
    /// numbered.
    pub(super) fn new(client: P::Client) -> Result<Arc<Self>> {
        let platform_name = client.platform_name().to_owned();
        let platform_version = client.platform_version().to_owned();
        let mut found = Vec::new();
        for device in client.devices()? {
            let memories = device.memories()?;
            if memories.is_empty() {
                return Err(Status::internal("the plug-in has a device without a memory"));
            }
            found.push((device, memories));
        }
        let all: usize = found.iter().map(|(_, memories)| memories.len()).sum();
        if i32::try_from(all).is_err() {
            return Err(Status::internal("the plug-in has more memories than can be counted"));
        }
        Ok(Arc::new_cyclic(|own| {
            let (mut devices, mut memories) = (Vec::new(), Vec::new());
            for (device, its_memories) in found {
                let index = devices.len();
                let first = memories.len();
                memories.extend(
                    its_memories.into_iter().map(|memory| OpenMemory::new(memory, index, own)),
                );
                devices.push(OpenDevice::new(
                    device,
                    index,
                    first..memories.len(),
                    &platform_name,
                    own,
                ));
            }
            number(&mut memories);
            Self {
                client,
                platform_name,
                platform_version,
                devices: devices.into_boxed_slice(),
                memories: memories.into_boxed_slice(),
                device_handles: OnceLock::new(),
                memory_handles: OnceLock::new(),
            }
        }))
    }

    /// Returns the memory at this index.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub(super) fn memory(&self, index: usize) -> Result<&OpenMemory<P>> {
        self.memories.get(index).ok_or_else(|| Status::internal("there is no such memory"))
    }

    /// Returns the device of the memory at this index.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub(super) fn device_of(&self, memory: usize) -> Result<&OpenDevice<P>> {
        let device = self.devices.get(self.memory(memory)?.device);
        device.ok_or_else(|| Status::internal("there is no such device"))
    }

    /// Returns the identity of the set of devices: the same for clients with the same devices.
    pub(super) fn topology(&self) -> String {
        let mut text = format!("{}\n{}\n", self.platform_name, self.platform_version);
        for device in &self.devices {
            let memories = self.memories.get(device.memories.clone()).unwrap_or_default();
            let kinds: Vec<&str> = memories.iter().map(|memory| memory.kind.as_str()).collect();
            text += &format!("{} {} {kinds:?}\n", device.index, device.kind);
        }
        text
    }
}

impl<P: Plugin> OpenDevice<P> {
    fn new(
        device: DeviceOf<P>,
        index: usize,
        memories: Range<usize>,
        platform: &str,
        client: &Weak<OpenClient<P>>,
    ) -> Self {
        Self {
            client: Weak::clone(client),
            local_hardware_id: device.local_hardware_id().unwrap_or_else(|| id(index)),
            kind: device.kind().to_owned(),
            text: format!("{platform}:{index}"),
            attributes: NamedValues::new(device.attributes()),
            device,
            index,
            memories,
            writes: Queue::new(),
            reads: Queue::new(),
            runs: Queue::new(),
        }
    }
}

impl<P: Plugin> OpenMemory<P> {
    fn new(memory: MemoryOf<P>, device: usize, client: &Weak<OpenClient<P>>) -> Self {
        let kind = memory.kind().to_owned();
        Self {
            _head: MemoryHead::new(),
            client: Weak::clone(client),
            memory,
            device,
            index: 0,
            text: String::new(),
            kind,
            kind_id: 0,
        }
    }
}

/// Sets the numbers of memories and of their kinds.
fn number<P: Plugin>(memories: &mut [OpenMemory<P>]) {
    let mut kinds: Vec<String> = Vec::new();
    for (index, memory) in memories.iter_mut().enumerate() {
        memory.index = index;
        memory.text = format!("memory {index} of device {}: {}", memory.device, memory.kind);
        let known = kinds.iter().position(|kind| *kind == memory.kind);
        memory.kind_id = id(known.unwrap_or(kinds.len()));
        if known.is_none() {
            kinds.push(memory.kind.clone());
        }
    }
}

/// Returns an index in the type that the C API uses; the number of items was checked before.
pub(super) fn id(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

// The last piece of a client's work may drop the client. Its queues can be dropped there: none of
// them waits for the thread that drops it, and every thread that runs a queue's work for it holds
// the client meanwhile.

/// Puts work into a queue, after its present work, and completes `completer` with the result. The
/// work may be done when this returns. Work on many bytes is done by the queue's own thread.
pub(super) fn enqueue(
    queue: &Queue,
    bytes: usize,
    completer: Completer,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) {
    let runs_on = if bytes <= INLINE_BYTES { RunsOn::AnyThread } else { RunsOn::Worker };
    // If there is no thread, the task is dropped, and with it the completer, which reports that.
    let _ = queue.submit_always(runs_on, move |_| {
        working(|| completer.complete(contain(work)));
        Ok(())
    });
}

/// Copies a whole buffer through host memory, in pieces.
///
/// # Errors
/// The errors of the buffers.
pub(super) fn copy_through_host<B: Buffer>(source: &B, target: &B, size: usize) -> Result<()> {
    const PIECE: usize = if cfg!(miri) { 1 << 9 } else { 1 << 20 };
    let mut staging = vec![0_u8; PIECE.min(size)];
    let mut done = 0;
    while done < size {
        let length = PIECE.min(size - done);
        let start = staging.as_mut_ptr();
        // SAFETY: `staging` has at least `length` bytes, and is used for nothing else meanwhile.
        let mut read = unsafe { crate::HostTarget::from_raw(start.cast(), length) };
        source.read(done as u64, &mut read)?;
        // SAFETY: as above; the read is over.
        let written = unsafe { crate::HostSource::from_raw(start.cast(), length) };
        target.write(done as u64, &written)?;
        done += length;
    }
    Ok(())
}

/// Calls `work` when all events are done, with the failure of the first one that failed.
pub(super) fn after_all(
    mut events: std::vec::IntoIter<Event>,
    work: impl FnOnce(Result<()>) + Send + 'static,
) {
    while let Some(event) = events.next() {
        match event.outcome() {
            Some(Ok(())) => {}
            Some(Err(failure)) => return work(Err(failure)),
            // Boxed, since the closure would otherwise contain its own type.
            None => {
                let work: Box<dyn FnOnce(Result<()>) + Send> = Box::new(work);
                return event.on_done(move |outcome| match outcome {
                    Ok(()) => after_all(events, work),
                    Err(failure) => work(Err(failure)),
                });
            }
        }
    }
    work(Ok(()));
}

/// Returns an event that `work` completes; `work` is called when `event` is done.
pub(super) fn after(event: &Event, work: impl FnOnce(Completer) + Send + 'static) -> Event {
    let (completer, answer) = Event::pending();
    event.on_done(move |outcome| match outcome {
        Ok(()) => work(completer),
        Err(failure) => completer.complete(Err(failure)),
    });
    answer
}
