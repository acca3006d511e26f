//! Data of the host in the form that plug-ins take, together with its deleter.

use std::ptr;

use serdes_abi::pjrt::args::PJRT_Chunk;

use super::callbacks::{freed, keep_until_freed};

/// Data that a plug-in takes ownership of and frees. It is leaked if it is never passed to a
/// plug-in, or the plug-in does not free it.
#[derive(Debug)]
pub(in crate::host) struct Chunk(PJRT_Chunk);

impl Chunk {
    pub(in crate::host) fn new(mut data: Vec<u8>) -> Self {
        let (start, size) = (data.as_mut_ptr(), data.len());
        // Moving the vector does not move the memory that it points to.
        let number = keep_until_freed(data);
        Self(PJRT_Chunk {
            data: start.cast(),
            size,
            deleter: Some(freed),
            deleter_arg: ptr::without_provenance_mut(number),
        })
    }

    pub(in crate::host) fn as_mut_ptr(&mut self) -> *mut PJRT_Chunk {
        &raw mut self.0
    }
}
