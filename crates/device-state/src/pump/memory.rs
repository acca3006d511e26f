//! The pump's interface to devices, and its implementation for StreamExecutor.

use serdes::ifrt::DType;
use serdes_stream_executor::{Device, DeviceMemory, HostMemory, Stream, Transfer};
use smallvec::SmallVec;

use super::Buffer;
use crate::Error;

/// Contents of memory: a number of elements of a type. Devices that know arrays, and not only
/// bytes, allocate by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    dtype: DType,
    dims: SmallVec<[i64; 4]>,
    bytes: u64,
}

impl Contents {
    /// Creates an array of these dimensions; `None` if its elements have no size, or it is longer
    /// than any memory.
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

    /// Returns a number of bytes that are no array.
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
/// The bytes are those of the array, dense, row-major, little endian. A device that keeps them in
/// another order or packs narrow elements hands them over in this one, and where it can do that for
/// whole arrays only, says so by [`is_read_whole`](Self::is_read_whole).
///
/// A copy takes a [`HostBuffer`](Self::HostBuffer) and has it alone until [`wait`](Self::wait)
/// gives it back: a buffer that is being filled cannot be read, nor one that is being read be
/// reused. A transfer that is dropped instead must not leave the device copying into memory that is
/// gone. Copies of one stream are done in the order in which they were begun; those of several may
/// be under way at a time.
///
/// Reads may come in any order.
pub trait Memory: Sized + Sync {
    /// Device that holds the memory.
    type Device: Clone + Send + Sync + 'static;
    /// Memory whose bytes are still arriving.
    type Incoming: Incoming<Self>;
    /// Stream that orders copies.
    type Stream;
    /// Host memory that asynchronous copies can use. A buffer of another kind, which the other half
    /// of a trip may have left, is filled and read by calls that wait.
    type HostBuffer: Into<Buffer> + TryFrom<Buffer, Error = Buffer>;
    /// A copy under way, which keeps its host buffer.
    type Transfer;
    /// Error of the device.
    type Error;

    /// Allocates memory for an array.
    fn allocate(device: &Self::Device, contents: &Contents) -> Result<Self::Incoming, Self::Error>;

    /// Allocates host memory for its copies.
    fn allocate_host(device: &Self::Device, bytes: usize) -> Result<Self::HostBuffer, Self::Error>;

    /// Makes a stream.
    fn create_stream(device: &Self::Device) -> Result<Self::Stream, Self::Error>;

    /// Returns true if the stream is one of this device.
    fn is_on(stream: &Self::Stream, device: &Self::Device) -> bool;

    /// Returns true if these are one device.
    fn is_same(one: &Self::Device, other: &Self::Device) -> bool;

    /// Returns the device that holds it.
    fn device(&self) -> &Self::Device;

    /// Returns its length.
    fn bytes(&self) -> u64;

    /// Returns true if it can only be read as a whole, so that one host buffer must hold all of it;
    /// by default any range of it can be copied by itself.
    fn is_read_whole(&self) -> bool {
        false
    }

    /// Begins to copy `bytes` bytes from `offset` on to the beginning of `target`.
    fn begin_read(
        &self,
        stream: &Self::Stream,
        offset: u64,
        bytes: usize,
        target: Self::HostBuffer,
    ) -> Result<Self::Transfer, Self::Error>;

    /// Waits until a copy is done, and gives its host buffer back.
    fn wait(transfer: Self::Transfer) -> Result<Self::HostBuffer, Self::Error>;

    /// Fills `target` from `offset` on, and waits for it.
    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), Self::Error>;

    /// Returns an error of the device as one of a state: what was being done, with the bytes of
    /// which tensor.
    fn failed(action: &'static str, name: &str, error: Self::Error) -> Error;
}

/// Memory whose bytes are on their way.
///
/// Writes come front to back and end with the last byte of the memory, so that a device that wants
/// to know the last piece can tell it by offset and length. A plug-in that takes whole arrays only
/// gathers the pieces itself and hands them over with the last one. Memory of no bytes gets no
/// write.
pub trait Incoming<M: Memory>: Sized {
    /// Returns the device that holds it.
    fn device(&self) -> &M::Device;

    /// Returns its length.
    fn bytes(&self) -> u64;

    /// Begins to copy the first `bytes` bytes of `source` to `offset`.
    fn begin_write(
        &mut self,
        stream: &M::Stream,
        offset: u64,
        bytes: usize,
        source: M::HostBuffer,
    ) -> Result<M::Transfer, M::Error>;

    /// Copies `source` to `offset`, and waits for it.
    fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), M::Error>;

    /// Returns the memory, all of whose copies were waited for.
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
