//! The pump's interface to devices, and its implementation for StreamExecutor.

use serdes::ifrt::DType;
use serdes_stream_executor::{Device, DeviceMemory, HostMemory, Stream, Transfer};
use smallvec::SmallVec;

use super::Buffer;
use crate::Error;

/// Contents of memory: a number of elements of a type, for allocation on devices with typed arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    dtype: DType,
    dims: SmallVec<[i64; 4]>,
    bytes: u64,
}

impl Contents {
    /// Creates the contents of an array of these dimensions; `None` if its elements have no fixed
    /// size, or it exceeds all memory.
    #[must_use]
    pub fn new(dtype: DType, dims: impl IntoIterator<Item = i64>) -> Option<Self> {
        let dims: SmallVec<[i64; 4]> = dims.into_iter().collect();
        let element = u64::from(dtype.unpacked_byte_size()?);
        let extents = dims.iter().map(|&dim| u64::try_from(dim).ok());
        let extents = extents.collect::<Option<SmallVec<[u64; 4]>>>()?;
        let bytes = match extents.contains(&0) {
            true => 0,
            false => extents.iter().try_fold(element, |all, &extent| all.checked_mul(extent))?,
        };
        Some(Self { dtype, dims, bytes })
    }

    /// Creates the contents of bytes that are not an array.
    #[must_use]
    pub fn of_bytes(bytes: u64) -> Self {
        Self { dtype: DType::U8, dims: SmallVec::from([bytes.cast_signed(); 1].as_slice()), bytes }
    }

    /// Returns the type of its elements.
    #[inline]
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns its dimensions.
    #[inline]
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns its length in bytes: dense, each element in whole bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Memory of a device that can be copied in pieces, asynchronously.
///
/// The bytes are those of the array, dense, row-major, little endian. A device with another order
/// or packed elements converts them to this layout; if it can do that only for whole arrays,
/// [`is_read_whole`](Self::is_read_whole) returns true.
///
/// A copy owns its [`HostBuffer`](Self::HostBuffer) until [`wait`](Self::wait) returns it: a buffer
/// that is being filled cannot be read, nor one that is being read be reused. If a transfer is
/// dropped instead, the device must not continue to copy into freed memory. Copies of one stream
/// are executed in order; those of several streams may run concurrently.
///
/// Reads may be requested in any order.
pub trait Memory: Sized + Sync {
    /// Device that holds the memory.
    type Device: Clone + Send + Sync + 'static;
    /// Memory whose bytes are still arriving.
    type Incoming: Incoming<Self>;
    /// Stream that orders copies.
    type Stream;
    /// Host memory that asynchronous copies can use. Buffers of another kind, from the other
    /// direction of a transfer, are filled and read by blocking calls.
    type HostBuffer: Into<Buffer> + TryFrom<Buffer, Error = Buffer>;
    /// A copy in progress, which owns its host buffer.
    type Transfer;
    /// Error of the device.
    type Error;

    /// Allocates memory for an array.
    fn allocate(device: &Self::Device, contents: &Contents) -> Result<Self::Incoming, Self::Error>;

    /// Allocates host memory for copies.
    fn allocate_host(device: &Self::Device, bytes: usize) -> Result<Self::HostBuffer, Self::Error>;

    /// Creates a stream.
    fn create_stream(device: &Self::Device) -> Result<Self::Stream, Self::Error>;

    /// Returns true if the stream belongs to this device.
    fn is_on(stream: &Self::Stream, device: &Self::Device) -> bool;

    /// Returns true if both are the same device.
    fn is_same(one: &Self::Device, other: &Self::Device) -> bool;

    /// Returns the device that holds it.
    fn device(&self) -> &Self::Device;

    /// Returns its length.
    fn bytes(&self) -> u64;

    /// Returns true if the memory can only be read as a whole, into one host buffer; by default any
    /// range of it can be copied.
    fn is_read_whole(&self) -> bool {
        false
    }

    /// Starts a copy of `bytes` bytes from `offset` to the beginning of `target`.
    fn begin_read(
        &self,
        stream: &Self::Stream,
        offset: u64,
        bytes: usize,
        target: Self::HostBuffer,
    ) -> Result<Self::Transfer, Self::Error>;

    /// Waits for a copy, and returns its host buffer.
    fn wait(transfer: Self::Transfer) -> Result<Self::HostBuffer, Self::Error>;

    /// Fills `target` from `offset`, and waits for it.
    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), Self::Error>;

    /// Converts an error of the device, with the operation and the tensor's name.
    fn failed(action: &'static str, name: &str, error: Self::Error) -> Error;
}

/// Memory whose bytes are being written.
///
/// Writes are sequential and end with the last byte of the memory, so that a device can detect the
/// last piece by offset and length. A plug-in that accepts only whole arrays collects the pieces
/// itself and passes them on with the last one. Empty memory gets no write.
pub trait Incoming<M: Memory>: Sized {
    /// Returns the device that holds it.
    fn device(&self) -> &M::Device;

    /// Returns its length.
    fn bytes(&self) -> u64;

    /// Starts a copy of the first `bytes` bytes of `source` to `offset`.
    fn begin_write(
        &mut self,
        stream: &M::Stream,
        offset: u64,
        bytes: usize,
        source: M::HostBuffer,
    ) -> Result<M::Transfer, M::Error>;

    /// Copies `source` to `offset`, and waits for it.
    fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), M::Error>;

    /// Returns the memory, after all its copies were waited for.
    fn finish(self) -> Result<M, M::Error>;
}

impl Memory for DeviceMemory {
    type Device = Device;
    type Incoming = Self;
    type Stream = Stream;
    type HostBuffer = HostMemory;
    type Transfer = Transfer;
    type Error = serdes_stream_executor::Error;

    fn allocate(device: &Device, contents: &Contents) -> Result<Self, Self::Error> {
        device.allocate(contents.bytes)
    }

    fn allocate_host(device: &Device, bytes: usize) -> Result<HostMemory, Self::Error> {
        device.allocate_host(bytes)
    }

    fn create_stream(device: &Device) -> Result<Stream, Self::Error> {
        device.create_stream()
    }

    fn is_on(stream: &Stream, device: &Device) -> bool {
        stream.device().is(device)
    }

    fn is_same(one: &Device, other: &Device) -> bool {
        one.is(other)
    }

    fn device(&self) -> &Device {
        Self::device(self)
    }

    fn bytes(&self) -> u64 {
        self.size()
    }

    fn begin_read(
        &self,
        stream: &Stream,
        offset: u64,
        bytes: usize,
        target: HostMemory,
    ) -> Result<Transfer, Self::Error> {
        stream.copy_to_host(self, offset, bytes, target)
    }

    fn wait(transfer: Transfer) -> Result<HostMemory, Self::Error> {
        transfer.wait()
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), Self::Error> {
        Self::device(self).copy_to_host(self, offset, target)
    }

    fn failed(action: &'static str, name: &str, error: Self::Error) -> Error {
        Error::device(action, name, error)
    }
}

impl Incoming<Self> for DeviceMemory {
    fn device(&self) -> &Device {
        Self::device(self)
    }

    fn bytes(&self) -> u64 {
        self.size()
    }

    fn begin_write(
        &mut self,
        stream: &Stream,
        offset: u64,
        bytes: usize,
        source: HostMemory,
    ) -> Result<Transfer, serdes_stream_executor::Error> {
        stream.copy_to_device(source, bytes, self, offset)
    }

    fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), serdes_stream_executor::Error> {
        Self::device(self).copy_to_device(source, self, offset)
    }

    fn finish(self) -> Result<Self, serdes_stream_executor::Error> {
        Ok(self)
    }
}
