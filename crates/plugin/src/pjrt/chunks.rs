//! Equally spaced chunks of host memory, and their copies.

use std::ptr;

use crate::{HostSource, HostTarget, Result, Status};

/// Chunks of host memory of one size, with equal spacing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks {
    /// The offset of the first chunk in the memory, in bytes.
    pub(super) offset: usize,
    /// The size of each chunk in bytes.
    pub(super) chunk: usize,
    /// The distance from one chunk to the next, in bytes.
    pub(super) stride: isize,
    /// The number of chunks.
    pub(super) count: usize,
}

impl Chunks {
    /// Returns the number of bytes in all chunks together.
    pub(super) fn bytes(self) -> usize {
        self.chunk.saturating_mul(self.count)
    }

    /// Fails unless the first and the last chunk, and so all of them, are inside `memory` bytes,
    /// and `bytes` is the number of bytes in them.
    fn check(self, memory: usize, bytes: usize) -> Result<()> {
        let reach = isize::try_from(self.count.saturating_sub(1)).ok();
        let reach = reach.and_then(|steps| steps.checked_mul(self.stride));
        let last = reach.and_then(|reach| self.offset.checked_add_signed(reach));
        let is_inside =
            |start: usize| start.checked_add(self.chunk).is_some_and(|end| end <= memory);
        let all = is_inside(self.offset) && last.is_some_and(is_inside);
        if bytes == self.bytes() && (self.count == 0 || all) {
            return Ok(());
        }
        Err(Status::new(
            serdes_abi::TF_Code::OUT_OF_RANGE,
            format!("{self:?} of {memory} bytes of host memory, for {bytes} bytes"),
        ))
    }

    /// Copies chunks from one side to the other; the strides are in bytes.
    ///
    /// # Safety
    /// `count` chunks can be read at `from` and written at `to`, with these strides, and no byte is
    /// in both.
    unsafe fn copy(self, from: (*const u8, isize), to: (*mut u8, isize)) {
        /// # Safety
        /// As above; a chunk is a `T`.
        unsafe fn each<T: Copy>(count: usize, from: (*const u8, isize), to: (*mut u8, isize)) {
            let (mut source, mut target) = (from.0, to.0);
            for _ in 0..count {
                // SAFETY: the caller's promise; alignment does not matter.
                unsafe { target.cast::<T>().write_unaligned(source.cast::<T>().read_unaligned()) };
                // The step past the last chunk is not dereferenced.
                source = source.wrapping_offset(from.1);
                target = target.wrapping_offset(to.1);
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            match self.chunk {
                1 => each::<[u8; 1]>(self.count, from, to),
                2 => each::<[u8; 2]>(self.count, from, to),
                4 => each::<[u8; 4]>(self.count, from, to),
                8 => each::<[u8; 8]>(self.count, from, to),
                16 => each::<[u8; 16]>(self.count, from, to),
                chunk => {
                    let (mut source, mut target) = (from.0, to.0);
                    for _ in 0..self.count {
                        ptr::copy_nonoverlapping(source, target, chunk);
                        source = source.wrapping_offset(from.1);
                        target = target.wrapping_offset(to.1);
                    }
                }
            }
        }
    }

    /// Copies the chunks into `bytes`, one after another.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if they are not all inside the source, or `bytes` has another length.
    pub(super) fn read(self, source: &HostSource, bytes: &mut [u8]) -> Result<()> {
        self.check(source.len(), bytes.len())?;
        let from = source.as_ptr().wrapping_add(self.offset);
        // SAFETY: all chunks are in the source, whose bytes can be read by its promise, and `bytes`
        // has the same number of bytes and is exclusive.
        unsafe {
            self.copy((from, self.stride), (bytes.as_mut_ptr(), self.chunk.cast_signed()));
        }
        Ok(())
    }

    /// Copies `bytes` into the chunks.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if they are not all inside the target, or `bytes` has another length.
    pub(super) fn write(self, bytes: &[u8], target: &mut HostTarget) -> Result<()> {
        self.check(target.len(), bytes.len())?;
        let to = target.as_mut_ptr().wrapping_add(self.offset);
        // SAFETY: all chunks are in the target, whose bytes can be written and are exclusive by its
        // promise, and `bytes` has the same number of bytes.
        unsafe {
            self.copy((bytes.as_ptr(), self.chunk.cast_signed()), (to, self.stride));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_outside_of_memory_are_refused() {
        let bytes = [0_u8; 10];
        // SAFETY: `bytes` outlives the value, and is not written.
        let source = unsafe { HostSource::from_raw(bytes.as_ptr().cast(), 10) };
        let read = |offset, stride, count| {
            let chunks = Chunks { offset, chunk: 2, stride, count };
            chunks.read(&source, &mut vec![0; 2 * count])
        };
        assert_eq!((read(0, 4, 3), read(8, -8, 2), read(100, 1, 0)), (Ok(()), Ok(()), Ok(())));
        for (offset, stride, count) in
            [(9, 0, 1), (0, 5, 3), (1, -1, 3), (0, isize::MAX, 3), (usize::MAX, 1, 1)]
        {
            assert!(read(offset, stride, count).is_err(), "{offset} {stride} {count}");
        }
        let short = Chunks { offset: 0, chunk: 2, stride: 2, count: 2 };
        assert!(short.read(&source, &mut [0; 3]).is_err());
    }
}
