//! An array whose bytes are on their way.

use super::{Array, MemorySpace};
use crate::pjrt::{Buffer, ElementType, HostArray, PjrtError};

/// An array that is written front to back.
#[derive(Debug)]
pub struct IncomingArray {
    space: MemorySpace,
    element_type: ElementType,
    dims: Vec<i64>,
    bytes: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Bytes that came in parts, for a plug-in that takes whole arrays.
    Gathered(Vec<u8>),
    /// All of it is there.
    Put(Buffer),
}

impl IncomingArray {
    /// An array of these dimensions, none of whose bytes is there.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for a type that the plug-in's version does not know, or what
    /// is no array.
    pub fn new(
        space: &MemorySpace,
        element_type: ElementType,
        dims: &[i64],
    ) -> Result<Self, PjrtError> {
        let minor = space.client().minor();
        if element_type.number(minor).is_none() {
            return Err(PjrtError::InvalidArgument {
                what: "the element type",
                found: element_type.name().to_owned(),
                expected: format!(
                    "one that the plug-in of PJRT {minor} knows; use a newer plug-in"
                ),
            });
        }
        let bytes = HostArray::new(element_type, dims).extent()?;
        let state = State::Gathered(Vec::new());
        Ok(Self { space: space.clone(), element_type, dims: dims.to_vec(), bytes, state })
    }

    /// Its length on the host, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it goes.
    #[must_use]
    pub const fn space(&self) -> &MemorySpace {
        &self.space
    }

    /// Copies the next bytes, those from `offset` on.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for bytes that are not the next ones; [`PjrtError::Status`] as the
    /// plug-in's.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), PjrtError> {
        let State::Gathered(gathered) = &mut self.state else {
            return Err(self.outside(offset, data.len()));
        };
        let end = gathered.len().checked_add(data.len()).filter(|&end| end <= self.bytes);
        if offset != gathered.len() as u64 || end.is_none() {
            return Err(self.outside(offset, data.len()));
        }
        if data.len() == self.bytes {
            return self.put(data);
        }
        if gathered.try_reserve_exact(self.bytes - gathered.len()).is_err() {
            return Err(self.no_memory());
        }
        gathered.extend_from_slice(data);
        if gathered.len() == self.bytes {
            let all = std::mem::take(gathered);
            return self.put(&all);
        }
        Ok(())
    }

    fn put(&mut self, data: &[u8]) -> Result<(), PjrtError> {
        let array = HostArray::new(self.element_type, &self.dims);
        let buffer = self.space.client().put(&array, data, self.space.target())?;
        self.state = State::Put(buffer);
        Ok(())
    }

    /// The array, when all of it is on the device.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if bytes are missing; [`PjrtError::Status`] as the plug-in's.
    pub fn finish(mut self) -> Result<Array, PjrtError> {
        if self.bytes == 0 && matches!(self.state, State::Gathered(_)) {
            self.put(&[])?;
        }
        match self.state {
            State::Put(buffer) => {
                if let Some(ready) = buffer.ready()? {
                    ready.wait()?;
                }
                Array::new(buffer, &self.space)
            }
            State::Gathered(gathered) => Err(PjrtError::InvalidArgument {
                what: "the data of the array",
                found: format!("{} bytes", gathered.len()),
                expected: format!("all {} of them", self.bytes),
            }),
        }
    }

    fn outside(&self, offset: u64, bytes: usize) -> PjrtError {
        PjrtError::OutOfRange {
            what: "rest of the array",
            offset: offset.into(),
            bytes: bytes as u128,
            size: self.bytes as u64,
        }
    }

    fn no_memory(&self) -> PjrtError {
        PjrtError::InvalidArgument {
            what: "the array",
            found: format!("{} bytes", self.bytes),
            expected: "what fits into the memory of the host".to_owned(),
        }
    }
}
