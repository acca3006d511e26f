//! Partitioned tensors: finding the pieces, checking that they cover the requested part, joining
//! them in one pass.
//!
//! The elements of a piece are in the same order in the piece and in the whole. So every piece is
//! read once, from start to end, while the whole is returned in order; memory is one small buffer
//! per piece.

use std::{cmp::Reverse, collections::BinaryHeap};

use serdes_graph_format::data_type::describe;

use super::{
    Bundle, data::PlainStream, entry::TensorEntry, error::BundleError, messages::element_count,
    verify::JOINED_BY_TENSORFLOW,
};
use crate::slice::{Bounds, Runs, TensorSlice, are_apart, elements_in};

/// Memory for the buffers of all pieces together, in bytes.
const BUFFERS: usize = 4 << 20;

/// A piece of a tensor: its box in the tensor, and its stored bytes.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) entry: TensorEntry,
    /// Start and length per dimension.
    pub(super) bounds: Bounds,
}

impl Bundle {
    /// Returns the boxes of the pieces of a partitioned tensor, which must not overlap. Checked
    /// before a piece is looked up, as in TensorFlow.
    fn boxes(&self, entry: &TensorEntry) -> Result<Vec<Bounds>, BundleError> {
        let bounds_of = |slice: TensorSlice| {
            slice
                .bounds(entry.shape())
                .map_err(|source| BundleError::Slice { name: entry.display(), source })
        };
        let boxes = entry.slices()?.into_iter().map(bounds_of).collect::<Result<Vec<_>, _>>()?;
        match are_apart(&boxes) {
            Some(true) => Ok(boxes),
            Some(false) => Err(BundleError::SlicesOverlap { name: entry.display() }),
            None => Err(BundleError::Unsupported {
                name: entry.display(),
                found: format!("{} pieces", boxes.len()),
                reason: "they lie so that it cannot be told in time whether two of them overlap",
            }),
        }
    }

    /// Returns the pieces of a tensor, each looked up and compared with its place. A tensor that is
    /// stored whole has itself as its only piece.
    pub(super) fn pieces(&self, entry: &TensorEntry) -> Result<Vec<Piece>, BundleError> {
        let whole = TensorSlice::full(entry.shape().len());
        let bounds_of = |slice: &TensorSlice| {
            slice
                .bounds(entry.shape())
                .map_err(|source| BundleError::Slice { name: entry.display(), source })
        };
        entry.checked_count()?;
        if !entry.is_partitioned() {
            return Ok(vec![Piece { bounds: bounds_of(&whole)?, entry: entry.clone() }]);
        }
        let mut cursor = self.table().cursor();
        let mut pieces = Vec::with_capacity(entry.raw.slices.len());
        for slice in entry.slices()? {
            let bounds = bounds_of(&slice)?;
            // A piece that covers everything is stored under the tensor's own name, which is this
            // entry.
            let found = if slice.is_full() {
                let mut found = entry.clone();
                found.raw.slices.clear();
                found
            } else {
                self.find(&mut cursor, &slice.key(&entry.key))?
            };
            let fits = found.raw.dtype == entry.raw.dtype
                && found.shape().len() == bounds.len()
                && found.shape().iter().zip(&bounds).all(|(size, (_, length))| size == length);
            if !fits {
                let lengths: Vec<i64> = bounds.iter().map(|(_, length)| *length).collect();
                return Err(BundleError::PieceMismatch {
                    name: entry.display(),
                    slice,
                    found: format!("{} {:?}", describe(found.raw.dtype), found.shape()),
                    expected: format!("{} {lengths:?}", describe(entry.raw.dtype)),
                });
            }
            pieces.push(Piece { entry: found, bounds });
        }
        Ok(pieces)
    }

    /// Returns the pieces of a tensor, which cover it exactly.
    pub(super) fn covering_pieces(&self, entry: &TensorEntry) -> Result<Vec<Piece>, BundleError> {
        let boxes = self.boxes(entry)?;
        let needed = entry.checked_count()?;
        let covered =
            boxes.iter().fold(0u64, |covered, bounds| covered.saturating_add(elements_in(bounds)));
        if !boxes.is_empty() && covered < needed {
            let wanted = TensorSlice::full(entry.shape().len());
            let (name, pieces) = (entry.display(), boxes.len());
            return Err(BundleError::SlicesMissing { name, wanted, pieces, covered, needed });
        }
        self.pieces(entry)
    }
}

/// Returns the bytes of a partitioned tensor in row-major order.
#[derive(Debug)]
pub(super) struct Joined {
    name: String,
    element: u64,
    total: u64,
    /// The next element to return, counted in whole runs; the rest of the current run lies before
    /// it.
    position: u64,
    pieces: Vec<(PlainStream, Runs)>,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The current piece, and the number of bytes left of its run.
    current: Option<(usize, u64)>,
}

impl Joined {
    pub(super) fn new(bundle: &Bundle, entry: &TensorEntry) -> Result<Self, BundleError> {
        let total = entry.checked_count()?;
        let data_type = entry.checked_type()?;
        let Some(element) = data_type.element_size() else {
            return Err(BundleError::Unsupported {
                name: entry.display(),
                found: describe(entry.raw.dtype),
                reason: "pieces are joined only for elements of fixed size",
            });
        };
        let pieces = bundle.covering_pieces(entry)?;
        let capacity = BUFFERS / pieces.len().max(1);
        let mut streams = Vec::with_capacity(pieces.len());
        let mut queue = BinaryHeap::with_capacity(pieces.len());
        for piece in pieces {
            let runs = Runs::new(
                entry.shape(),
                &piece.bounds,
                Runs::first_joined(entry.shape(), &piece.bounds),
            );
            if let Some(start) = runs.start() {
                queue.push(Reverse((start, streams.len())));
            }
            streams.push((PlainStream::new(bundle, piece.entry, capacity)?, runs));
        }
        Ok(Self {
            name: entry.display(),
            element,
            total,
            position: 0,
            pieces: streams,
            queue,
            current: None,
        })
    }

    /// Reads up to `to.len()` bytes; 0 only at the end.
    pub(super) fn read(&mut self, to: &mut [u8]) -> Result<usize, BundleError> {
        let mut given = 0;
        while given < to.len() {
            let (piece, left) = match self.current {
                Some(current) => current,
                None => {
                    let Some(Reverse((start, piece))) = self.queue.pop() else {
                        if self.position != self.total {
                            return Err(BundleError::SlicesOverlap { name: self.name.clone() });
                        }
                        break;
                    };
                    let Some((_, runs)) = self.pieces.get_mut(piece) else { break };
                    if start != self.position {
                        return Err(BundleError::SlicesOverlap { name: self.name.clone() });
                    }
                    self.position = self.position.saturating_add(runs.len());
                    let len = runs.len().saturating_mul(self.element);
                    runs.advance();
                    if let Some(next) = runs.start() {
                        self.queue.push(Reverse((next, piece)));
                    }
                    (piece, len)
                }
            };
            let Some((stream, _)) = self.pieces.get_mut(piece) else { break };
            let target = to.get_mut(given..).unwrap_or_default();
            let count = target.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            stream.read_exact(target.get_mut(..count).unwrap_or_default())?;
            given += count;
            let left = left - count as u64;
            self.current = (left > 0).then_some((piece, left));
        }
        Ok(given)
    }
}

impl Bundle {
    /// Reads a part of a tensor, as RestoreV2 does for a slice specification: `slice` of the tensor
    /// `entry`, as contiguous little-endian elements in row-major order. Every stored piece that
    /// the slice touches is read whole and verified.
    ///
    /// # Errors
    /// If the slice is not within the tensor, the pieces do not cover it, or one of them is
    /// damaged.
    pub fn read_slice(
        &self,
        entry: &TensorEntry,
        slice: &TensorSlice,
    ) -> Result<Vec<u8>, BundleError> {
        let name = || entry.display();
        let wanted = slice
            .bounds(entry.shape())
            .map_err(|source| BundleError::Slice { name: name(), source })?;
        let lengths: Vec<i64> = wanted.iter().map(|(_, length)| *length).collect();
        let needed = element_count(&lengths)
            .map_err(|source| BundleError::Shape { name: name(), source })?;
        let unsupported = |reason| BundleError::Unsupported {
            name: name(),
            found: describe(entry.raw.dtype),
            reason,
        };
        let element = entry.checked_type()?.element_size();
        let element =
            element.ok_or_else(|| unsupported("parts are read only of elements of fixed size"))?;
        let touched = self.touched(entry, slice, &wanted, needed)?;
        // The pieces hold at least the requested bytes, and the lengths of their files were
        // compared with their entries.
        let stored = touched.iter().try_fold(0u64, |sum, (piece, _)| {
            let place = self.place(&piece.entry)?;
            Ok::<_, BundleError>(sum.saturating_add(place.size))
        })?;
        let bytes = needed.saturating_mul(element);
        let len = usize::try_from(bytes).ok().filter(|_| bytes <= stored);
        let mut out = vec![0; len.ok_or_else(|| BundleError::SlicesOverlap { name: name() })?];
        for (piece, common) in touched {
            self.scatter(piece, &common, &wanted, &lengths, element, &mut out)?;
        }
        Ok(out)
    }

    /// Returns the pieces that intersect a part of a tensor, which has `needed` elements, each with
    /// the intersection.
    fn touched(
        &self,
        entry: &TensorEntry,
        slice: &TensorSlice,
        wanted: &[(i64, i64)],
        needed: u64,
    ) -> Result<Vec<(Piece, Bounds)>, BundleError> {
        self.boxes(entry)?;
        let mut touched = Vec::new();
        let mut covered = 0u64;
        for piece in self.pieces(entry)? {
            if let Some(common) = intersection(&piece.bounds, wanted) {
                covered = covered.saturating_add(elements_in(&common));
                touched.push((piece, common));
            }
        }
        if covered < needed {
            let (name, wanted) = (entry.display(), slice.clone());
            let pieces = entry.raw.slices.len();
            return Err(BundleError::SlicesMissing { name, wanted, pieces, covered, needed });
        }
        Ok(touched)
    }

    /// Checks, without reading data, that RestoreV2 can restore a tensor or a part of it: that the
    /// stored pieces cover it, and that the files are as long as the index says.
    pub fn check_restorable(
        &self,
        entry: &TensorEntry,
        part: Option<&TensorSlice>,
    ) -> Result<(), BundleError> {
        if !entry.is_partitioned() {
            return self.place(entry).map(|_| ());
        }
        let (name, pieces) = (|| entry.display(), entry.raw.slices.len());
        if pieces > 1 && !JOINED_BY_TENSORFLOW.contains(&entry.checked_type()?) {
            let found = describe(entry.raw.dtype);
            return Err(BundleError::NotJoined { name: name(), found, pieces });
        }
        let touched = match part {
            None => self.covering_pieces(entry)?,
            Some(part) => {
                let wanted = part
                    .bounds(entry.shape())
                    .map_err(|source| BundleError::Slice { name: name(), source })?;
                let touched = self.touched(entry, part, &wanted, elements_in(&wanted))?;
                touched.into_iter().map(|(piece, _)| piece).collect()
            }
        };
        touched.iter().try_for_each(|piece| self.place(&piece.entry).map(|_| ()))
    }

    /// Reads a piece and copies its box `common` into `out`, which is the box `wanted` of the
    /// tensor.
    fn scatter(
        &self,
        piece: Piece,
        common: &[(i64, i64)],
        wanted: &[(i64, i64)],
        lengths: &[i64],
        element: u64,
        out: &mut [u8],
    ) -> Result<(), BundleError> {
        let total = elements_in(&piece.bounds);
        let shift = |origin: &[(i64, i64)]| -> Vec<(i64, i64)> {
            common
                .iter()
                .zip(origin)
                .map(|((start, length), (first, _))| (start - first, *length))
                .collect()
        };
        let (source, target) = (shift(&piece.bounds), shift(wanted));
        let joined = Runs::first_joined(piece.entry.shape(), &source)
            .max(Runs::first_joined(lengths, &target));
        let mut from = Runs::new(piece.entry.shape(), &source, joined);
        let mut into = Runs::new(lengths, &target, joined);
        let name = piece.entry.display();
        let mut stream = PlainStream::new(self, piece.entry, usize::MAX)?;
        let mut skipped = vec![0; 16 * 1024];
        let mut at = 0u64;
        while let (Some(source), Some(target)) = (from.start(), into.start()) {
            skip(&mut stream, source.saturating_sub(at).saturating_mul(element), &mut skipped)?;
            let start = usize::try_from(target.saturating_mul(element)).unwrap_or(usize::MAX);
            let end = start.saturating_add(
                usize::try_from(from.len().saturating_mul(element)).unwrap_or(usize::MAX),
            );
            let target = out.get_mut(start..end);
            stream.read_exact(
                target.ok_or_else(|| BundleError::SlicesOverlap { name: name.clone() })?,
            )?;
            at = source.saturating_add(from.len());
            from.advance();
            into.advance();
        }
        skip(&mut stream, total.saturating_sub(at).saturating_mul(element), &mut skipped)
    }
}

/// Reads `bytes` bytes of a stream and discards them.
fn skip(stream: &mut PlainStream, mut bytes: u64, target: &mut [u8]) -> Result<(), BundleError> {
    while bytes > 0 {
        let count = target.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        stream.read_exact(target.get_mut(..count).unwrap_or_default())?;
        bytes -= count as u64;
    }
    Ok(())
}

/// Returns the intersection of two boxes; `None` if it is empty.
fn intersection(a: &[(i64, i64)], b: &[(i64, i64)]) -> Option<Vec<(i64, i64)>> {
    let mut common = Vec::with_capacity(a.len());
    for ((a_start, a_len), (b_start, b_len)) in a.iter().zip(b) {
        let start = (*a_start).max(*b_start);
        let end = a_start.saturating_add(*a_len).min(b_start.saturating_add(*b_len));
        if end <= start {
            return None;
        }
        common.push((start, end - start));
    }
    Some(common)
}
