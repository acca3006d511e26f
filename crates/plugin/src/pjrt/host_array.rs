//! The layout of an array in host memory, and the conversion of its elements to the order of a
//! device and back.
//!
//! A device has the elements contiguously, with the last dimension changing fastest, and packs
//! small ones into bytes. The host may have them in any order, with gaps or overlapping.

use super::{Shape, chunks::Chunks};
use crate::{HostSource, HostTarget, Result, Status};

/// The number of bytes of host memory that are reordered at a time; smaller under Miri, which is
/// slow.
const PIECE_BYTES: usize = if cfg!(miri) { 1 << 9 } else { 256 << 10 };

/// An array in host memory: the positions of its elements, from the lowest byte that it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostArray {
    shape: Shape,
    /// The number of bytes from one element to the next, for each dimension.
    strides: Vec<isize>,
    /// The number of bytes from the lowest one to the first element.
    first: usize,
    /// The number of bytes from the lowest one to the end of the highest element.
    extent: usize,
}

impl HostArray {
    /// Creates the layout of contiguous elements, with the last dimension changing fastest.
    pub(super) fn dense(shape: Shape) -> Self {
        let (strides, extent) = (dense_strides(&shape, shape.minor_to_major()), shape.host_bytes());
        Self { shape, strides, first: 0, extent }
    }

    /// Creates the layout of contiguous elements with this order of dimensions, the fastest first.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` unless each dimension occurs once.
    pub(super) fn in_order(shape: Shape, minor_to_major: &[i64]) -> Result<Self> {
        let rank = shape.dimensions().len();
        let mut sorted = minor_to_major.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq((0..).take(rank)) {
            return Err(Status::invalid_argument(format!(
                "the order {minor_to_major:?} of {rank} dimensions; each must be there once"
            )));
        }
        let strides = dense_strides(&shape, minor_to_major.iter().copied());
        let extent = shape.host_bytes();
        Ok(Self { shape, strides, first: 0, extent })
    }

    /// Creates the layout with the byte strides `strides`, one per dimension; 0 repeats an element,
    /// and negative strides go backwards.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` unless there is a stride for each dimension, and if the array would be
    /// larger than an address space.
    pub(super) fn strided(shape: Shape, strides: &[i64]) -> Result<Self> {
        let rank = shape.dimensions().len();
        let wrong = |why: &str| {
            Status::invalid_argument(format!("the strides {strides:?} of {shape}: {why}"))
        };
        if strides.len() != rank {
            return Err(wrong("expected one for each dimension"));
        }
        let too_long = || wrong("more bytes than an address space has");
        let (mut before, mut behind) = (0_isize, shape.element_type().host_bytes().cast_signed());
        let mut taken = Vec::with_capacity(rank);
        for (&stride, &dimension) in strides.iter().zip(shape.dimensions()) {
            let stride = isize::try_from(stride).map_err(|_| too_long())?;
            let steps = isize::try_from(dimension).map_err(|_| too_long())?.saturating_sub(1);
            let reach = stride.checked_mul(steps.max(0)).ok_or_else(too_long)?;
            if reach < 0 {
                before = before.checked_sub(reach).ok_or_else(too_long)?;
            } else {
                behind = behind.checked_add(reach).ok_or_else(too_long)?;
            }
            taken.push(stride);
        }
        if shape.elements() == 0 {
            (before, behind) = (0, 0);
        }
        let extent = before.checked_add(behind).ok_or_else(too_long)?;
        Ok(Self {
            shape,
            strides: taken,
            first: before.unsigned_abs(),
            extent: extent.unsigned_abs(),
        })
    }

    /// Returns the number of bytes from the lowest one that it touches to its first element.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Returns the number of bytes from the lowest one that it touches to the end of the highest.
    pub(super) fn extent(&self) -> usize {
        self.extent
    }

    /// Returns true if the bytes are already in the order of a device.
    pub(super) fn is_as_on_a_device(&self) -> bool {
        !self.shape.element_type().is_packed() && self.is_dense()
    }

    fn is_dense(&self) -> bool {
        let dense = dense_strides(&self.shape, self.shape.minor_to_major());
        let together = self.strides.iter().zip(&dense).zip(self.shape.dimensions());
        self.shape.elements() == 0
            || together.into_iter().all(|((own, dense), &dimension)| dimension <= 1 || own == dense)
    }

    /// Passes the array's bytes to `take` in the order of a device, piece by piece: the offset of a
    /// piece in the device's memory, and the piece.
    ///
    /// # Errors
    /// The errors of `take`.
    pub(super) fn gather(
        &self,
        source: &HostSource,
        mut take: impl FnMut(u64, &HostSource) -> Result<()>,
    ) -> Result<()> {
        if self.is_as_on_a_device() {
            return take(0, source);
        }
        let (width, element) = self.piece();
        let mut bytes = vec![0_u8; width * element];
        self.pieces(width, |place, elements, runs| {
            let piece = bytes.get_mut(..elements * element).unwrap_or_default();
            let mut rest = &mut *piece;
            for chunks in runs {
                let (part, behind) = std::mem::take(&mut rest)
                    .split_at_mut_checked(chunks.bytes())
                    .ok_or_else(outside)?;
                chunks.read(source, part)?;
                rest = behind;
            }
            let length = self.pack(piece);
            let piece = piece.get(..length).ok_or_else(outside)?;
            // SAFETY: `piece` is borrowed, and so is the value for the call: it is not written.
            let piece = unsafe { HostSource::from_raw(piece.as_ptr().cast(), piece.len()) };
            take(place, &piece)
        })
    }

    /// Gets the array's bytes from `give` in the order of a device, piece by piece, and writes them
    /// to their positions.
    ///
    /// # Errors
    /// The errors of `give`.
    pub(super) fn scatter(
        &self,
        target: &mut HostTarget,
        mut give: impl FnMut(u64, &mut HostTarget) -> Result<()>,
    ) -> Result<()> {
        if self.is_as_on_a_device() {
            return give(0, target);
        }
        let (width, element) = self.piece();
        let mut bytes = vec![0_u8; width * element];
        self.pieces(width, |place, elements, runs| {
            let piece = bytes.get_mut(..elements * element).unwrap_or_default();
            let packed = self.packed_bytes(piece.len());
            let room = piece.get_mut(..packed).ok_or_else(outside)?;
            // SAFETY: `room` is borrowed exclusively, and so is the value during the call.
            let mut room = unsafe { HostTarget::from_raw(room.as_mut_ptr().cast(), room.len()) };
            give(place, &mut room)?;
            self.unpack(piece);
            let mut rest = &*piece;
            for chunks in runs {
                let (part, behind) = rest.split_at_checked(chunks.bytes()).ok_or_else(outside)?;
                chunks.write(part, target)?;
                rest = behind;
            }
            Ok(())
        })
    }

    /// Returns the number of elements in a piece, and the size of each in host memory. A piece of
    /// packed elements fills whole bytes.
    fn piece(&self) -> (usize, usize) {
        let element = self.shape.element_type().host_bytes();
        ((PIECE_BYTES / element).min(self.shape.elements().next_multiple_of(8)), element)
    }

    /// Calls `each` for every piece of `width` elements: its offset on the device, its number of
    /// elements, and their chunks in host memory.
    fn pieces(
        &self,
        width: usize,
        mut each: impl FnMut(u64, usize, &mut dyn Iterator<Item = Chunks>) -> Result<()>,
    ) -> Result<()> {
        let bits = self.shape.element_type().device_bits() as u64;
        let mut runs = Runs::new(self);
        let mut begin = 0;
        while begin < self.shape.elements() {
            let elements = width.min(self.shape.elements() - begin);
            let place = (begin as u64 / 8) * bits + (begin as u64 % 8) * bits / 8;
            let mut left = elements;
            each(place, elements, &mut std::iter::from_fn(|| runs.next(&mut left)))?;
            // Skips the chunks that were not used.
            while runs.next(&mut left).is_some() {}
            begin += elements;
        }
        Ok(())
    }

    /// Returns the number of bytes that elements take on the device; `bytes` is their number of
    /// bytes on the host, which is one each if they are packed.
    fn packed_bytes(&self, bytes: usize) -> usize {
        match self.shape.element_type().device_bits() {
            bits @ (1 | 2 | 4) => bytes.div_ceil(8 / bits),
            _ => bytes,
        }
    }

    /// Packs elements of one byte each like the device does, to the front of `bytes`; returns the
    /// number of packed bytes.
    fn pack(&self, bytes: &mut [u8]) -> usize {
        let bits = self.shape.element_type().device_bits();
        if bits >= 8 {
            return bytes.len();
        }
        let (each, mask) = (8 / bits, (1_u8 << bits) - 1);
        let length = bytes.len().div_ceil(each);
        for index in 0..length {
            let elements = bytes.iter().skip(index * each).take(each).enumerate();
            let packed = elements
                .fold(0, |byte, (place, element)| byte | (element & mask) << (place * bits));
            if let Some(byte) = bytes.get_mut(index) {
                *byte = packed;
            }
        }
        length
    }

    /// Unpacks elements at the front of `bytes` into one byte each.
    fn unpack(&self, bytes: &mut [u8]) {
        let bits = self.shape.element_type().device_bits();
        if bits >= 8 {
            return;
        }
        let (each, mask) = (8 / bits, (1_u8 << bits) - 1);
        // Goes backwards, so that no byte is written before it is read.
        for index in (0..bytes.len()).rev() {
            let packed = bytes.get(index / each).copied().unwrap_or_default();
            if let Some(element) = bytes.get_mut(index) {
                *element = packed >> (index % each * bits) & mask;
            }
        }
    }
}

/// Returns the strides of contiguous elements with this order of dimensions, the fastest first.
fn dense_strides(shape: &Shape, minor_to_major: impl IntoIterator<Item = i64>) -> Vec<isize> {
    let mut strides = vec![0; shape.dimensions().len()];
    let mut stride = shape.element_type().host_bytes().cast_signed();
    for dimension in minor_to_major {
        let Ok(index) = usize::try_from(dimension) else { continue };
        if let (Some(own), Some(&length)) = (strides.get_mut(index), shape.dimensions().get(index))
        {
            *own = stride;
            // The product of all dimensions, except empty ones, fits (see `Shape::new`).
            stride = stride.saturating_mul(isize::try_from(length.max(1)).unwrap_or(isize::MAX));
        }
    }
    strides
}

fn outside() -> Status {
    Status::internal("a piece of an array is longer than its memory")
}

/// An iterator over the array's elements in the order of a device, as equally spaced chunks.
struct Runs<'a> {
    array: &'a HostArray,
    /// The number of elements in a chunk: those of the last dimensions, which are contiguous.
    length: usize,
    /// The number of elements of the present chunk that have been returned.
    within: usize,
    /// The index in each outer dimension.
    place: Vec<i64>,
    /// The offset of the present chunk from the first element of the array, in bytes.
    offset: isize,
}

impl<'a> Runs<'a> {
    fn new(array: &'a HostArray) -> Self {
        let rank = array.strides.len();
        let (mut inner, mut length) = (0, 1_usize);
        let mut next = array.shape.element_type().host_bytes().cast_signed();
        let dimensions = array.strides.iter().zip(array.shape.dimensions()).rev();
        for (&stride, &dimension) in dimensions {
            if stride != next && dimension > 1 {
                break;
            }
            let dimension = usize::try_from(dimension).unwrap_or_default();
            inner += 1;
            length = length.saturating_mul(dimension);
            next = next.saturating_mul(dimension.cast_signed());
        }
        Self { array, length, within: 0, place: vec![0; rank - inner], offset: 0 }
    }

    /// Returns the next chunks, of at most `left` elements: a part of one, or whole ones of the
    /// last outer dimension.
    fn next(&mut self, left: &mut usize) -> Option<Chunks> {
        if *left == 0 || self.length == 0 {
            return None;
        }
        let element = self.array.shape.element_type().host_bytes();
        let offset = self.array.first.wrapping_add_signed(self.offset) + self.within * element;
        if self.within > 0 || *left < self.length {
            let elements = (self.length - self.within).min(*left);
            *left -= elements;
            self.within += elements;
            if self.within == self.length {
                self.within = 0;
                self.step(1);
            }
            return Some(Chunks { offset, chunk: elements * element, stride: 0, count: 1 });
        }
        let (stride, rest) = self.last();
        let count = (*left / self.length).min(rest);
        *left -= count * self.length;
        self.step(count as i64);
        Some(Chunks { offset, chunk: self.length * element, stride, count })
    }

    /// Returns the stride of the last outer dimension, and the number of chunks left in it.
    fn last(&self) -> (isize, usize) {
        let outer = self.place.len();
        let last = outer.checked_sub(1).and_then(|last| {
            let dimension = self.array.shape.dimensions().get(last)?;
            let rest = dimension - self.place.get(last)?;
            Some((*self.array.strides.get(last)?, usize::try_from(rest).ok()?))
        });
        last.unwrap_or((0, 1))
    }

    /// Advances by `by` in the last outer dimension, at most to its end; from there, by one in the
    /// dimension before.
    fn step(&mut self, by: i64) {
        let outer = self.place.len();
        let mut by = by;
        let dimensions = self.array.strides.iter().zip(self.array.shape.dimensions()).take(outer);
        for ((&stride, &dimension), place) in dimensions.zip(&mut self.place).rev() {
            *place += by;
            self.offset += stride * by as isize;
            if *place < dimension {
                return;
            }
            // The range of every dimension fits (see `strided`).
            self.offset -= stride * *place as isize;
            *place = 0;
            by = 1;
        }
    }
}

#[cfg(test)]
mod tests;
