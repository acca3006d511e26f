//! A client that was created: its devices and memories, asked once, and the threads that do their
//! work.

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

/// Largest copy in bytes that is done on the calling thread, if the device has nothing else to do:
/// it takes longer to wake a thread.
pub(super) const INLINE_BYTES: usize = if cfg!(miri) { 1 << 9 } else { 32 << 10 };

/// A client with what was asked of it.
pub(super) struct OpenClient<P: Plugin> {
    pub(super) client: P::Client,
    pub(super) platform_name: String,
    pub(super) platform_version: String,
    pub(super) devices: Box<[OpenDevice<P>]>,
    pub(super) memories: Box<[OpenMemory<P>]>,
    /// The devices as a host has them, when it asks.
    pub(super) device_handles: OnceLock<Handles<PJRT_Device>>,
    /// The memories as a host has them, when it asks.
    pub(super) memory_handles: OnceLock<Handles<PJRT_Memory>>,
}

/// A device of an [`OpenClient`].
pub(super) struct OpenDevice<P: Plugin> {
    pub(super) client: Weak<OpenClient<P>>,
    pub(super) device: DeviceOf<P>,
    /// Its place among the client's devices, and so its number.
    pub(super) index: usize,
    pub(super) local_hardware_id: i32,
    pub(super) kind: String,
    /// Text for people.
    pub(super) text: String,
    pub(super) attributes: NamedValues,
    /// The place of its first memory among the client's, and how many it has.
    pub(super) memories: Range<usize>,
    /// Queue of copies to the device, in order.
    pub(super) writes: Queue,
    /// Queue of copies from the device, in order.
    pub(super) reads: Queue,
    /// Queue of runs of programs, in order.
    pub(super) runs: Queue,
}

/// A memory of an [`OpenClient`]. A host has its address, and may look at what it begins with.
#[repr(C)]
pub(super) struct OpenMemory<P: Plugin> {
    _head: MemoryHead,
    pub(super) client: Weak<OpenClient<P>>,
    pub(super) memory: MemoryOf<P>,
    /// The place of its device among the client's.
    pub(super) device: usize,
    /// Its place among the client's memories, and so its number.
    pub(super) index: usize,
    pub(super) kind: String,
    /// Number of the memory's kind, equal for memories of one kind.
    pub(super) kind_id: i32,
    /// Text for people.
    pub(super) text: String,
}

impl<P: Plugin> OpenClient<P> {
    /// Asks a client for its devices and their memories.
    ///
    /// # Errors
    /// As the client's; `INTERNAL` if a device has no memory, or there are more than can be
    /// counted.
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

    /// Returns the memory of that place.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub(super) fn memory(&self, index: usize) -> Result<&OpenMemory<P>> {
        self.memories.get(index).ok_or_else(|| Status::internal("there is no such memory"))
    }

    /// Returns the device that has the memory of that place.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub(super) fn device_of(&self, memory: usize) -> Result<&OpenDevice<P>> {
        let device = self.devices.get(self.memory(memory)?.device);
        device.ok_or_else(|| Status::internal("there is no such device"))
    }

    /// Identity of the set of devices: the same for clients of the same devices.
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

/// Gives memories their numbers, and each kind its own.
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

/// Returns a place as the C API counts: it was checked that there are no more.
pub(super) fn id(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

// A client may go with the last piece of its own work. Its queues can be dropped there: none waits
// for the thread that drops it, and who does work of a queue for it has the client for as long.

/// Puts work into a queue, behind what is there, and says how it came out; it may be done when this
/// returns. Work of many bytes is done by the queue's own thread.
pub(super) fn enqueue(
    queue: &Queue,
    bytes: usize,
    completer: Completer,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) {
    let runs_on = if bytes <= INLINE_BYTES { RunsOn::AnyThread } else { RunsOn::Worker };
    // If there is no thread, the task is dropped, and with it the completer, which says so.
    let _ = queue.submit_always(runs_on, move |_| {
        working(|| completer.complete(contain(work)));
        Ok(())
    });
}

/// Copies all of a buffer through memory of the host, in pieces.
///
/// # Errors
/// As the buffers'.
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

/// Does that when all events are done, with the failure of the first that failed.
pub(super) fn after_all(
    mut events: std::vec::IntoIter<Event>,
    work: impl FnOnce(Result<()>) + Send + 'static,
) {
    while let Some(event) = events.next() {
        match event.outcome() {
            Some(Ok(())) => {}
            Some(Err(failure)) => return work(Err(failure)),
            // Boxed, since the work would otherwise be part of its own type.
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

/// Returns an event that is done when something else is, with what it answers then.
pub(super) fn after(event: &Event, work: impl FnOnce(Completer) + Send + 'static) -> Event {
    let (completer, answer) = Event::pending();
    event.on_done(move |outcome| match outcome {
        Ok(()) => work(completer),
        Err(failure) => completer.complete(Err(failure)),
    });
    answer
}
