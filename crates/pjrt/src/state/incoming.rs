//! An array whose bytes are being sent to a device.

use serdes_abi::pjrt::ElementType;

use super::{Array, ArrayTransfer, MemorySpace, transfer::PIECES_FROM};
use crate::{Buffer, HostArray, HostMemory, IncomingBuffer, PjrtError};

/// An array that is written front to back.
///
/// A long array is sent in the pieces in which it arrives, if the plug-in supports that. Otherwise
/// the pieces are gathered on the host, and the array is put with the last of them.
#[derive(Debug)]
pub struct IncomingArray {
    space: MemorySpace,
    element_type: ElementType,
    dims: Vec<i64>,
    bytes: usize,
    /// The number of bytes that have arrived.
    written: usize,
    route: Route,
}

#[derive(Debug)]
enum Route {
    /// The plug-in accepts pieces.
    Pieces(IncomingBuffer),
    /// The plug-in accepts whole arrays only; contains the bytes so far.
    Gathered(Vec<u8>),
    /// The whole array was put.
    Put(Buffer),
}

impl IncomingArray {
    /// Creates an array of these dimensions, without any bytes yet.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for a type that the plug-in's version does not know, or an
    /// invalid array; [`PjrtError::Status`] from the plug-in, for example if the device has not
    /// enough memory.
    pub fn new(
        space: &MemorySpace,
        element_type: ElementType,
        dims: &[i64],
    ) -> Result<Self, PjrtError> {
        let minor = space.client().minor();
        if element_type.number_in(minor).is_none() {
            return Err(PjrtError::InvalidArgument {
                what: "the element type",
                found: element_type.name().to_owned(),
                expected: format!(
                    "one that the plug-in of PJRT {minor} knows; use a newer plug-in"
                ),
            });
        }
        let bytes = HostArray::new(element_type, dims).extent()?;
        let route = if bytes < PIECES_FROM || element_type.may_be_packed() {
            Route::Gathered(Vec::new())
        } else {
            match space.client().create_for_transfer(element_type, dims, space.target()) {
                Ok(incoming) => Route::Pieces(incoming),
                Err(error) if error.is_unsupported() => Route::Gathered(Vec::new()),
                Err(error) => return Err(error),
            }
        };
        let (space, dims) = (space.clone(), dims.to_vec());
        Ok(Self { space, element_type, dims, bytes, written: 0, route })
    }

    /// Returns the size on the host, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory that receives the array.
    #[must_use]
    pub const fn space(&self) -> &MemorySpace {
        &self.space
    }

    /// Returns true if its pieces are passed to the plug-in as they arrive.
    #[must_use]
    pub const fn takes_pieces(&self) -> bool {
        matches!(self.route, Route::Pieces(_))
    }

    /// Copies the next bytes, which begin at `offset`, and waits until `data` is not needed any
    /// more.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for bytes that are not the next ones; [`PjrtError::Status`] from
    /// the plug-in.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), PjrtError> {
        let end = self.end_of_next(offset, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.route {
            Route::Pieces(incoming) => incoming.write(self.written, data, end == self.bytes)?,
            Route::Gathered(_) if data.len() == self.bytes => self.put(data)?,
            Route::Gathered(gathered) => {
                let left = self.bytes - gathered.len();
                gathered
                    .try_reserve_exact(left)
                    .map_err(|_| PjrtError::OutOfHostMemory { bytes: left })?;
                gathered.extend_from_slice(data);
                if end == self.bytes {
                    let all = std::mem::take(gathered);
                    self.put(&all)?;
                }
            }
            // Nothing is left to write: `end_of_next` has refused further bytes.
            Route::Put(_) => {}
        }
        self.written = end;
        Ok(())
    }

    /// Begins to copy the next bytes, which begin at `offset`: the first `bytes` bytes of `source`.
    ///
    /// # Errors
    /// As [`Self::write`]; [`PjrtError::InvalidArgument`] if `source` is shorter.
    pub fn begin_write(
        &mut self,
        offset: u64,
        bytes: usize,
        source: HostMemory,
    ) -> Result<ArrayTransfer, PjrtError> {
        let end = self.end_of_next(offset, bytes)?;
        if let Route::Pieces(incoming) = &mut self.route {
            let is_last = end == self.bytes;
            let transfer = incoming.begin_write(self.written, bytes, is_last, source)?;
            self.written = end;
            return Ok(ArrayTransfer::under_way(transfer));
        }
        let Some(data) = source.get(..bytes) else {
            return Err(PjrtError::InvalidArgument {
                what: "the memory that is written from",
                found: format!("{} bytes", source.len()),
                expected: format!("{bytes} and more"),
            });
        };
        self.write(offset, data)?;
        Ok(ArrayTransfer::done(source))
    }

    fn put(&mut self, data: &[u8]) -> Result<(), PjrtError> {
        let array = HostArray::new(self.element_type, &self.dims);
        let buffer = self.space.client().put(&array, data, self.space.target())?;
        self.route = Route::Put(buffer);
        Ok(())
    }

    /// Returns the array, when the whole of it is on the device.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if bytes are missing; [`PjrtError::Status`] from the plug-in.
    pub fn finish(mut self) -> Result<Array, PjrtError> {
        if self.bytes == 0 {
            self.put(&[])?;
        }
        let buffer = match self.route {
            Route::Pieces(incoming) => incoming.into_buffer()?,
            Route::Put(buffer) => {
                if let Some(ready) = buffer.ready()? {
                    ready.wait()?;
                }
                buffer
            }
            Route::Gathered(gathered) => {
                return Err(PjrtError::InvalidArgument {
                    what: "the data of the array",
                    found: format!("{} bytes", gathered.len()),
                    expected: format!("all {} of them", self.bytes),
                });
            }
        };
        Array::in_space(buffer, &self.space)
    }

    /// Returns the offset of the end of the next bytes, if `offset` continues the bytes so far and
    /// the array is long enough.
    fn end_of_next(&self, offset: u64, bytes: usize) -> Result<usize, PjrtError> {
        let end = self.written.checked_add(bytes).filter(|&end| end <= self.bytes);
        end.filter(|_| offset == self.written as u64).ok_or_else(|| PjrtError::OutOfRange {
            what: "rest of the array, which is written front to back",
            offset: offset.into(),
            bytes: bytes as u128,
            size: (self.bytes - self.written) as u64,
        })
    }
}
