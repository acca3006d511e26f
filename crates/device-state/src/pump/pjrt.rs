//! The pump's interface to PJRT clients: arrays, read in pieces if the plug-in supports it, and
//! otherwise as a whole.

use serdes::ifrt::DType;
use serdes_pjrt::{
    Array, ArrayTransfer, ElementType, HostMemory, IncomingArray, MemorySpace, PjrtError,
};

use super::{Contents, Incoming, Memory};
use crate::Error;

/// Converts a type by name; the numbers differ.
fn element_type(dtype: DType) -> Result<ElementType, PjrtError> {
    ElementType::of_name(dtype.name()).ok_or_else(|| PjrtError::InvalidArgument {
        what: "the element type",
        found: dtype.name().to_owned(),
        expected: "one that PJRT has; arrays of others stay on the host".to_owned(),
    })
}

impl Memory for Array {
    type Device = MemorySpace;
    type Incoming = IncomingArray;
    /// The plug-in orders its copies itself.
    type Stream = ();
    type HostBuffer = HostMemory;
    type Transfer = ArrayTransfer;
    type Error = PjrtError;

    fn allocate(space: &MemorySpace, contents: &Contents) -> Result<IncomingArray, PjrtError> {
        IncomingArray::new(space, element_type(contents.dtype())?, contents.dims())
    }

    fn allocate_host(space: &MemorySpace, bytes: usize) -> Result<HostMemory, PjrtError> {
        space.client().allocate_host(bytes)
    }

    fn create_stream(_: &MemorySpace) -> Result<(), PjrtError> {
        Ok(())
    }

    fn is_on((): &(), _: &MemorySpace) -> bool {
        true
    }

    fn is_same(one: &MemorySpace, other: &MemorySpace) -> bool {
        one == other
    }

    fn device(&self) -> &MemorySpace {
        self.space()
    }

    fn bytes(&self) -> u64 {
        Self::bytes(self) as u64
    }

    fn is_read_whole(&self) -> bool {
        Self::is_read_whole(self)
    }

    fn begin_read(
        &self,
        (): &(),
        offset: u64,
        bytes: usize,
        target: HostMemory,
    ) -> Result<ArrayTransfer, PjrtError> {
        Self::begin_read(self, offset, bytes, target)
    }

    fn wait(transfer: ArrayTransfer) -> Result<HostMemory, PjrtError> {
        transfer.wait()
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), PjrtError> {
        Self::read(self, offset, target)
    }

    fn failed(action: &'static str, name: &str, error: PjrtError) -> Error {
        Error::pjrt(action, name, error)
    }
}

impl Incoming<Array> for IncomingArray {
    fn device(&self) -> &MemorySpace {
        self.space()
    }

    fn bytes(&self) -> u64 {
        Self::bytes(self) as u64
    }

    fn begin_write(
        &mut self,
        (): &(),
        offset: u64,
        bytes: usize,
        source: HostMemory,
    ) -> Result<ArrayTransfer, PjrtError> {
        Self::begin_write(self, offset, bytes, source)
    }

    fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), PjrtError> {
        Self::write(self, offset, source)
    }

    fn finish(self) -> Result<Array, PjrtError> {
        Self::finish(self)
    }
}
