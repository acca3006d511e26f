//! Memory of shards, on a device or in its pinned host memory, including shards whose bytes have
//! not arrived yet.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serdes::{codec::Status, ifrt::ArraySpec};
use serdes_device_state::{Contents, Tensor, Writer};
use serdes_pjrt::{Array, Client, ElementType, IncomingArray, MemorySpace as PjrtSpace};
use serdes_stream_executor::{Device, DeviceMemory, Error, HostMemory};

use super::{
    device::ServedDevice,
    element::{STEP, zeroed},
    space::Kind,
};
use crate::{
    server::{
        budget::Share,
        metrics::{Counted, Gauges},
        promise::{Promise, Promised},
    },
    status::{of_device, of_pjrt, status},
};

/// Location of a shard's bytes.
#[derive(Debug)]
pub(crate) enum Bytes {
    Device(DeviceMemory),
    Host(HostMemory),
    Pjrt(Array),
}

impl Bytes {
    /// Returns the array of a PJRT client that holds the bytes, if there is one.
    pub(crate) const fn pjrt_array(&self) -> Option<&Array> {
        match self {
            Self::Pjrt(array) => Some(array),
            Self::Device(_) | Self::Host(_) => None,
        }
    }
}

/// Bytes that are being written.
#[derive(Debug)]
enum Incoming {
    Device(DeviceMemory),
    Host(HostMemory),
    Pjrt(IncomingArray),
}

/// The memory of a shard, which is written once, when it is created.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Replaced by the same bytes elsewhere when they move to another client of the plug-in.
    bytes: RwLock<Arc<Bytes>>,
    /// Held while the bytes move.
    moving: Mutex<()>,
    contents: Contents,
    /// Completes when a program has written the bytes; `None` if no program does.
    computed: Option<Promised<()>>,
    _share: Share,
    _counted: [Counted; 2],
}

/// Writer that fills a memory from its first byte.
#[derive(Debug)]
pub(crate) struct MemoryWriter {
    bytes: Incoming,
    contents: Contents,
    written: u64,
    share: Share,
    gauges: Arc<Gauges>,
}

impl MemoryWriter {
    /// Creates memory for `contents`. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; an error of the plug-in.
    pub(crate) fn new(
        device: &ServedDevice,
        kind: Kind,
        contents: &Contents,
        share: Share,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, Status> {
        let size = contents.bytes();
        let bytes = match (device, kind) {
            (ServedDevice::StreamExecutor(device), Kind::Device) => {
                Incoming::Device(device.allocate(size).map_err(|error| of_device(&error))?)
            }
            (ServedDevice::StreamExecutor(device), Kind::PinnedHost | Kind::UnpinnedHost) => {
                Incoming::Host(pinned(device, size)?)
            }
            (ServedDevice::Pjrt(device), kind) => {
                Incoming::Pjrt(incoming(device.space(kind), contents)?)
            }
        };
        let (contents, gauges) = (contents.clone(), Arc::clone(gauges));
        Ok(Self { bytes, contents, written: 0, share, gauges })
    }

    /// Writes the next bytes. Waits for the device.
    ///
    /// # Errors
    /// INTERNAL for more bytes than the memory has; an error of the plug-in.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Status> {
        let end = self.written.saturating_add(piece.len() as u64);
        if end > self.contents.bytes() {
            return Err(status!(Internal, "{end} bytes are more than {}", self.contents.bytes()));
        }
        match &mut self.bytes {
            Incoming::Device(memory) => {
                let device = memory.device().clone();
                device
                    .copy_to_device(piece, memory, self.written)
                    .map_err(|error| of_device(&error))?;
            }
            Incoming::Host(memory) => {
                let target = usize::try_from(self.written)
                    .ok()
                    .and_then(|start| memory.get_mut(start..)?.get_mut(..piece.len()));
                target
                    .ok_or_else(|| status!(Internal, "more bytes than memory"))?
                    .copy_from_slice(piece);
            }
            Incoming::Pjrt(array) => {
                array.write(self.written, piece).map_err(|error| of_pjrt(&error))?;
            }
        }
        self.written = end;
        Ok(())
    }

    /// Copies the next bytes, at most `most`, from a memory of the same size; returns true if they
    /// were the last ones. Waits for the device.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn copy_next(&mut self, source: &Memory, most: u64) -> Result<bool, Status> {
        let size = self.contents.bytes();
        let most = if source.step() == u64::MAX { size } else { most };
        let length = size.saturating_sub(self.written).min(most);
        if let (Bytes::Device(from), Incoming::Device(to)) = (&*source.bytes(), &self.bytes) {
            let device = to.device();
            match device.copy_on_device(from, self.written, to, self.written, length) {
                Ok(()) => {
                    self.written += length;
                    return Ok(self.written == size);
                }
                // The plug-in cannot copy between devices: copy through the host.
                Err(Error::Unsupported { .. }) => {}
                Err(error) => return Err(of_device(&error)),
            }
        }
        let mut piece = zeroed(length)?;
        source.read_part(self.written, &mut piece)?;
        self.push(&piece)?;
        Ok(self.written == size)
    }

    /// Returns the filled memory.
    ///
    /// # Errors
    /// INTERNAL if bytes are missing; an error of the plug-in.
    pub(crate) fn finish(self) -> Result<Memory, Status> {
        let Self { bytes, contents, written, share, gauges } = self;
        if written != contents.bytes() {
            return Err(status!(Internal, "{written} of {} bytes were written", contents.bytes()));
        }
        let bytes = match bytes {
            Incoming::Device(memory) => Bytes::Device(memory),
            Incoming::Host(memory) => Bytes::Host(memory),
            Incoming::Pjrt(array) => Bytes::Pjrt(array.finish().map_err(|e| of_pjrt(&e))?),
        };
        Ok(Memory::new(bytes, contents, share, &gauges))
    }
}

impl Memory {
    /// Creates memory with the bytes of `pieces`. Waits for the device.
    ///
    /// # Errors
    /// As [`MemoryWriter::push`] and [`MemoryWriter::finish`].
    pub(crate) fn write<'a>(
        device: &ServedDevice,
        kind: Kind,
        contents: &Contents,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        share: Share,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, Status> {
        let mut writer = MemoryWriter::new(device, kind, contents, share, gauges)?;
        for piece in pieces {
            writer.push(piece)?;
        }
        writer.finish()
    }

    /// Restores a tensor of a state directly from the file into the device's memory.
    ///
    /// # Errors
    /// The error that the state or the plug-in reports.
    pub(crate) fn restore(
        tensor: &Tensor,
        device: &ServedDevice,
        share: Share,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, serdes_device_state::Error> {
        let bytes = match device {
            ServedDevice::StreamExecutor(device) => Bytes::Device(tensor.restore(device)?),
            ServedDevice::Pjrt(device) => Bytes::Pjrt(tensor.restore(device.space(Kind::Device))?),
        };
        Ok(Self::new(bytes, tensor.contents()?, share, gauges))
    }

    fn new(bytes: Bytes, contents: Contents, share: Share, gauges: &Arc<Gauges>) -> Self {
        let counted = [
            gauges.hold(|gauges| &gauges.shards, 1),
            gauges.hold(|gauges| &gauges.shard_bytes, contents.bytes()),
        ];
        Self {
            bytes: RwLock::new(Arc::new(bytes)),
            moving: Mutex::default(),
            contents,
            computed: None,
            _share: share,
            _counted: counted,
        }
    }

    /// Returns memory that a program writes on a device; `computed` completes when it is written.
    pub(crate) fn of_program(
        array: Array,
        contents: Contents,
        computed: Promised<()>,
        share: Share,
        gauges: &Arc<Gauges>,
    ) -> Self {
        let memory = Self::new(Bytes::Pjrt(array), contents, share, gauges);
        Self { computed: Some(computed), ..memory }
    }

    /// Returns the bytes at their current location.
    pub(crate) fn bytes(&self) -> Arc<Bytes> {
        Arc::clone(&self.bytes.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the array of a PJRT client that holds the bytes, for a program to use; releases its
    /// permit.
    pub(crate) fn into_pjrt_array(self) -> Option<Array> {
        let bytes = self.bytes.into_inner().unwrap_or_else(PoisonError::into_inner);
        match Arc::into_inner(bytes)? {
            Bytes::Pjrt(array) => Some(array),
            Bytes::Device(_) | Bytes::Host(_) => None,
        }
    }

    /// Returns true if the memory can be passed to programs of this PJRT client.
    pub(crate) fn is_of(&self, client: &Client) -> bool {
        self.bytes().pjrt_array().is_none_or(|array| array.buffer().client() == *client)
    }

    /// Moves the bytes to a device of `client`, through the host, if they belong to another client
    /// of the plug-in. Waits for the devices.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; an error of the plug-in.
    pub(crate) fn move_to(
        &self,
        client: &Client,
        device: &ServedDevice,
        kind: Kind,
    ) -> Result<(), Status> {
        let _moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let ServedDevice::Pjrt(device) = device else { return Ok(()) };
        if self.is_of(client) {
            return Ok(());
        }
        let mut moved = incoming(device.space(kind), &self.contents)?;
        let (size, step) = (self.size(), self.step());
        let mut written = 0;
        while written < size {
            let mut piece = zeroed(step.min(size - written))?;
            self.read_part(written, &mut piece)?;
            moved.write(written, &piece).map_err(|error| of_pjrt(&error))?;
            written += piece.len() as u64;
        }
        let moved = Bytes::Pjrt(moved.finish().map_err(|error| of_pjrt(&error))?);
        *self.bytes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(moved);
        Ok(())
    }

    /// Adds the bytes to a state directly from their device; returns false if they are not on a
    /// device.
    ///
    /// # Errors
    /// The error that the device or the file reports.
    pub(crate) fn add_to(
        &self,
        writer: &mut Writer,
        name: &str,
        spec: &ArraySpec,
    ) -> Result<bool, serdes_device_state::Error> {
        match &*self.bytes() {
            Bytes::Device(memory) => writer.add(name, spec, memory)?,
            Bytes::Pjrt(array) => writer.add(name, spec, array)?,
            Bytes::Host(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the bytes into host memory. Waits for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; an error of the plug-in.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Status> {
        match &*self.bytes() {
            Bytes::Device(memory) => {
                memory.device().download(memory).map_err(|error| of_device(&error))
            }
            Bytes::Host(memory) => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(memory.len()).map_err(|_| {
                    status!(ResourceExhausted, "the host has no {} bytes left", memory.len())
                })?;
                bytes.extend_from_slice(memory);
                Ok(bytes)
            }
            Bytes::Pjrt(array) => array.buffer().read().map_err(|error| of_pjrt(&error)),
        }
    }

    /// Reads the bytes from `offset` that fill `target`. Waits for the device.
    ///
    /// # Errors
    /// INTERNAL if there are too few bytes, or only [larger reads](Self::step) are possible; an
    /// error of the plug-in.
    pub(crate) fn read_part(&self, offset: u64, target: &mut [u8]) -> Result<(), Status> {
        match &*self.bytes() {
            Bytes::Device(memory) => memory
                .device()
                .copy_to_host(memory, offset, target)
                .map_err(|error| of_device(&error)),
            Bytes::Host(memory) => {
                let source = usize::try_from(offset)
                    .ok()
                    .and_then(|start| memory.get(start..)?.get(..target.len()));
                let source = source.ok_or_else(|| {
                    status!(
                        Internal,
                        "{} bytes at {offset} are outside of {}",
                        target.len(),
                        self.size()
                    )
                })?;
                target.copy_from_slice(source);
                Ok(())
            }
            Bytes::Pjrt(array) => array.read(offset, target).map_err(|error| of_pjrt(&error)),
        }
    }

    /// Returns the number of bytes to read at a time: a limited number, or all if the plug-in reads
    /// arrays only as a whole.
    pub(crate) fn step(&self) -> u64 {
        match &*self.bytes() {
            Bytes::Pjrt(array) if array.is_read_whole() => u64::MAX,
            _ => STEP as u64,
        }
    }

    /// Returns the type and shape of the contents.
    pub(crate) const fn contents(&self) -> &Contents {
        &self.contents
    }

    pub(crate) const fn size(&self) -> u64 {
        self.contents.bytes()
    }
}

/// Creates an array of a PJRT client for writing.
fn incoming(space: &PjrtSpace, contents: &Contents) -> Result<IncomingArray, Status> {
    let element_type = ElementType::of_name(contents.dtype().name()).ok_or_else(|| {
        status!(Unimplemented, "PJRT has no elements of the type {}", contents.dtype())
    })?;
    IncomingArray::new(space, element_type, contents.dims()).map_err(|error| of_pjrt(&error))
}

fn pinned(device: &Device, size: u64) -> Result<HostMemory, Status> {
    let size = usize::try_from(size).map_err(|_| {
        status!(ResourceExhausted, "{size} bytes are more than this machine addresses")
    })?;
    device.allocate_host(size).map_err(|error| of_device(&error))
}

/// The memory of a shard, available or pending. Clones refer to the same memory.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    memory: Arc<Promised<Arc<Memory>>>,
    is_of_program: bool,
}

impl Buffer {
    /// Creates a pending memory and the promise that completes it.
    pub(crate) fn coming() -> (Promise<Arc<Memory>>, Self) {
        let (promise, promised) = Promised::coming();
        (promise, Self { memory: Arc::new(promised), is_of_program: false })
    }

    /// Creates the pending memory that a program will write, and its promise.
    pub(crate) fn of_program() -> (Promise<Arc<Memory>>, Self) {
        let (promise, buffer) = Self::coming();
        (promise, Self { is_of_program: true, ..buffer })
    }

    /// Returns true if a program writes the memory, so that it arrives whatever its client does.
    pub(crate) const fn is_of_program(&self) -> bool {
        self.is_of_program
    }

    /// Creates a buffer whose memory is available or has failed.
    pub(crate) fn known(result: Result<Arc<Memory>, Status>) -> Self {
        Self { memory: Arc::new(Promised::known(result)), is_of_program: false }
    }

    /// Returns the memory with its bytes, or the reason for its failure; `None` if the bytes have
    /// not arrived or a program has not computed them yet.
    pub(crate) fn now(&self) -> Option<Result<Arc<Memory>, Status>> {
        let memory = match self.memory.now()? {
            Ok(memory) => memory,
            failed => return Some(failed),
        };
        match memory.computed.as_ref().map(Promised::now) {
            None | Some(Some(Ok(()))) => Some(Ok(memory)),
            Some(Some(Err(status))) => Some(Err(status)),
            Some(None) => None,
        }
    }

    /// Waits for the memory and its bytes.
    ///
    /// # Errors
    /// The reason why the bytes will never arrive.
    pub(crate) async fn wait(&self) -> Result<Arc<Memory>, Status> {
        let memory = self.memory.wait().await?;
        if let Some(computed) = &memory.computed {
            computed.wait().await?;
        }
        Ok(memory)
    }

    /// Waits until the memory can be passed to a program: another program may still be computing
    /// its bytes, and if that one fails, so does the program that uses them.
    ///
    /// # Errors
    /// The reason why the memory will never be available.
    pub(crate) async fn wait_for_place(&self) -> Result<Arc<Memory>, Status> {
        self.memory.wait().await
    }

    /// Returns the memory, marked if this is its only reference.
    ///
    /// # Errors
    /// The reason why it is missing; INTERNAL if it has not arrived yet.
    pub(crate) fn into_place(self) -> Result<Place, Status> {
        let (memory, is_sole) = match Arc::try_unwrap(self.memory) {
            Ok(promised) => (promised.now(), true),
            Err(promised) => (promised.now(), false),
        };
        let memory = memory
            .unwrap_or_else(|| Err(status!(Internal, "an array is used before it is there")))?;
        if !is_sole {
            return Ok(Place::Shared(memory));
        }
        Ok(Arc::try_unwrap(memory).map_or_else(Place::Shared, Place::Sole))
    }
}

/// Memory that is passed to a program.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, while a program is launched")]
pub(crate) enum Place {
    /// The only reference: the program may overwrite the memory.
    Sole(Memory),
    Shared(Arc<Memory>),
}
