//! Slices of tensors, as partitioned variables are stored: the box, its text form, and the key of a
//! piece in a table.
//!
//! Both checkpoint formats use the same keys. Does not depend on tables or bundles.

use std::fmt;

use super::{ErrorKind, StatusCode};

/// The most dimensions that a TensorFlow shape can have.
pub const MAX_RANK: usize = 254;

/// The extent of a slice in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extent {
    /// The whole dimension, whatever its size.
    Full,
    /// `length` elements from `start`.
    Range {
        /// First element.
        start: i64,
        /// Number of elements.
        length: i64,
    },
}

/// A box within a tensor: one extent per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TensorSlice {
    extents: Vec<Extent>,
}

/// The error of a slice that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SliceError {
    /// An extent starts below 0 or has a length below 1.
    #[error(
        "dimension {dimension} of a slice starts at {start} and has length {length}: the start must be 0 or more and the length 1 or more"
    )]
    BadExtent {
        /// The dimension, counted from 0.
        dimension: usize,
        /// The start of the extent, in elements.
        start: i64,
        /// The length of the extent, in elements.
        length: i64,
    },
    /// The slice has another rank than the tensor.
    #[error("a slice of {found} dimensions is asked of a tensor of {expected}")]
    Rank {
        /// Dimensions of the slice.
        found: usize,
        /// Dimensions of the tensor.
        expected: usize,
    },
    /// An extent ends beyond the tensor.
    #[error(
        "dimension {dimension} of a slice goes from {start} to {end}, and the tensor has {size} there"
    )]
    Outside {
        /// The dimension, counted from 0.
        dimension: usize,
        /// First element.
        start: i64,
        /// The element after the last.
        end: i64,
        /// Elements of the tensor in this dimension.
        size: i64,
    },
    /// The text is not a slice specification.
    #[error(
        "{text:?} is no slice specification: expected the sizes of the whole tensor, then an extent a dimension, as in \"6 4 0,2:-\""
    )]
    Syntax {
        /// The text that was parsed.
        text: String,
    },
}

impl SliceError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::BadExtent { .. }
            | Self::Rank { .. }
            | Self::Outside { .. }
            | Self::Syntax { .. } => ErrorKind::InvalidInput,
        }
    }

    /// Returns the status code that TensorFlow gives.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadExtent { .. } => StatusCode::InvalidArgument,
            Self::Rank { .. } | Self::Outside { .. } | Self::Syntax { .. } => StatusCode::Internal,
        }
    }
}

impl TensorSlice {
    /// Returns the slice that is the whole of a tensor with `rank` dimensions.
    #[must_use]
    pub fn full(rank: usize) -> Self {
        Self { extents: vec![Extent::Full; rank] }
    }

    /// Creates a slice of the given extents.
    ///
    /// # Errors
    /// [`SliceError::BadExtent`].
    pub fn new(extents: Vec<Extent>) -> Result<Self, SliceError> {
        for (dimension, extent) in extents.iter().enumerate() {
            if let Extent::Range { start, length } = *extent
                && (start < 0 || length < 1 || start.checked_add(length).is_none())
            {
                return Err(SliceError::BadExtent { dimension, start, length });
            }
        }
        Ok(Self { extents })
    }

    /// Returns the extents, one per dimension.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Returns true if every dimension is taken whole.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.extents.iter().all(|extent| *extent == Extent::Full)
    }

    /// Returns the box within a tensor of `shape`: start and length per dimension.
    ///
    /// # Errors
    /// [`SliceError::Rank`], [`SliceError::Outside`].
    pub fn bounds(&self, shape: &[i64]) -> Result<Vec<(i64, i64)>, SliceError> {
        if shape.len() != self.extents.len() {
            return Err(SliceError::Rank { found: self.extents.len(), expected: shape.len() });
        }
        let mut bounds = Vec::with_capacity(shape.len());
        for (dimension, (extent, size)) in self.extents.iter().zip(shape).enumerate() {
            bounds.push(match *extent {
                Extent::Full => (0, *size),
                Extent::Range { start, length } => {
                    let end = start.saturating_add(length);
                    if end > *size {
                        return Err(SliceError::Outside { dimension, start, end, size: *size });
                    }
                    (start, length)
                }
            });
        }
        Ok(bounds)
    }

    /// Reads a specification as RestoreV2 takes it: the sizes of the whole tensor, a space between
    /// them, then one extent per dimension with colons between them: `start,length`, or `-` for a
    /// whole dimension.
    ///
    /// # Errors
    /// [`SliceError::Syntax`] and [`SliceError::BadExtent`].
    pub fn parse_specification(text: &str) -> Result<(Vec<i64>, Self), SliceError> {
        let syntax = || SliceError::Syntax { text: text.to_owned() };
        let mut words: Vec<&str> = text.split(' ').collect();
        let slice = words.pop().ok_or_else(syntax)?;
        let shape = words.iter().map(|word| word.parse().ok().filter(|size| *size >= 0));
        let shape: Vec<i64> = shape.collect::<Option<_>>().ok_or_else(syntax)?;
        let mut extents = Vec::new();
        for part in slice.split(':') {
            extents.push(match (part, part.split_once(',')) {
                ("-", _) => Extent::Full,
                (_, Some((start, length))) => Extent::Range {
                    start: start.parse().map_err(|_| syntax())?,
                    length: length.parse().map_err(|_| syntax())?,
                },
                ("", None) if slice.is_empty() && shape.is_empty() => continue,
                _ => return Err(syntax()),
            });
        }
        let slice = Self::new(extents)?;
        slice.bounds(&shape)?;
        Ok((shape, slice))
    }

    /// Returns the key of this piece of tensor `name` in a table.
    #[must_use]
    pub fn key(&self, name: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(name.len() + 8 + self.extents.len() * 4);
        ordered_number(&mut key, 0);
        ordered_string(&mut key, name);
        ordered_number(&mut key, self.extents.len() as u64);
        for extent in &self.extents {
            let (start, length) = match *extent {
                Extent::Full => (0, -1),
                Extent::Range { start, length } => (start, length),
            };
            ordered_signed(&mut key, start);
            ordered_signed(&mut key, length);
        }
        key
    }
}

impl fmt::Display for TensorSlice {
    /// Formats the slice as in a specification: `0,2:-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, extent) in self.extents.iter().enumerate() {
            if i > 0 {
                f.write_str(":")?;
            }
            match extent {
                Extent::Full => f.write_str("-")?,
                Extent::Range { start, length } => write!(f, "{start},{length}")?,
            }
        }
        Ok(())
    }
}

/// Iterator over the runs of a box that are contiguous in the whole tensor, in order.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Elements between neighbours, for each dimension that is iterated over.
    strides: Vec<u64>,
    bounds: Vec<(i64, i64)>,
    index: Vec<i64>,
    /// Elements of a run.
    len: u64,
    /// The start of the next run in the whole tensor, in elements.
    next: Option<u64>,
}

impl Runs {
    /// Returns the first dimension of a run: the box covers all dimensions after it completely.
    pub(crate) fn first_joined(shape: &[i64], bounds: &[(i64, i64)]) -> usize {
        let whole = shape
            .iter()
            .zip(bounds)
            .rev()
            .take_while(|(size, (_, length))| *size == length)
            .count();
        shape.len().saturating_sub(whole).saturating_sub(1)
    }

    /// Creates an iterator over the runs of a box in a tensor of `shape`. A run ends where the
    /// dimensions before `joined` change.
    pub(crate) fn new(shape: &[i64], bounds: &[(i64, i64)], joined: usize) -> Self {
        let mut stride = 1u64;
        let mut strides = vec![0; shape.len()];
        let (mut len, mut start) = (1u64, 0u64);
        for (dimension, ((size, (first, length)), slot)) in
            shape.iter().zip(bounds).zip(&mut strides).enumerate().rev()
        {
            *slot = stride;
            start = start.saturating_add((*first as u64).saturating_mul(stride));
            if dimension >= joined {
                len = len.saturating_mul(*length as u64);
            }
            stride = stride.saturating_mul(*size as u64);
        }
        strides.truncate(joined);
        let empty = bounds.iter().any(|(_, length)| *length == 0);
        let bounds = bounds.get(..joined).unwrap_or_default().to_vec();
        Self { strides, index: vec![0; joined], bounds, len, next: (!empty).then_some(start) }
    }

    /// Returns the start of the next run in the tensor, in elements; `None` after the last.
    pub(crate) fn start(&self) -> Option<u64> {
        self.next
    }

    /// Elements of a run.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Advances to the next run.
    pub(crate) fn advance(&mut self) {
        let Some(mut next) = self.next else { return };
        for ((index, (_, length)), stride) in
            self.index.iter_mut().zip(&self.bounds).zip(&self.strides).rev()
        {
            *index += 1;
            next = next.saturating_add(*stride);
            if *index < *length {
                self.next = Some(next);
                return;
            }
            next = next.saturating_sub(stride.saturating_mul(*length as u64));
            *index = 0;
        }
        self.next = None;
    }
}

/// Returns true if a key is, or could be, the key of a piece: tensor names that start with a zero
/// byte are included.
#[must_use]
pub fn is_slice_key(key: &[u8]) -> bool {
    key.first() == Some(&0)
}

/// Encodes an unsigned number so that bytewise order is numeric order: the number of its bytes,
/// then the bytes, big-endian.
fn ordered_number(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    out.push((bytes.len() - zeros) as u8);
    out.extend(bytes.iter().skip(zeros));
}

/// Encodes a string so that bytewise order is kept and the end is marked: 00 becomes 00 ff, ff
/// becomes ff 00, the end is 00 01.
fn ordered_string(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        match byte {
            0x00 => out.push(0xff),
            0xff => out.push(0x00),
            _ => {}
        }
    }
    out.extend_from_slice(&[0x00, 0x01]);
}

/// Encodes a signed number so that bytewise order is numeric order: as many leading 1 bits as there
/// are bytes, a 0, and the magnitude. A negative number is the complement of the code of `-value -
/// 1`.
fn ordered_signed(out: &mut Vec<u8>, value: i64) {
    let magnitude = if value < 0 { !value } else { value } as u64;
    // n bytes carry 7n - 1 bits; ten bytes are enough for 63.
    let bits = 64 - magnitude.leading_zeros() as usize;
    let count = (bits + 1).div_ceil(7).max(1);
    let header: u128 = ((1 << count) - 1) << (8 * count - count);
    let code = (header | u128::from(magnitude)).to_be_bytes();
    let start = code.len().saturating_sub(count);
    let flip = if value < 0 { 0xff } else { 0 };
    out.extend(code.iter().skip(start).map(|byte| byte ^ flip));
}

/// A box within a tensor: start and length per dimension.
pub(crate) type Bounds = Vec<(i64, i64)>;

/// Returns the number of elements in a box.
pub(crate) fn elements_in(bounds: &[(i64, i64)]) -> u64 {
    bounds.iter().fold(1, |count, (_, length)| count.saturating_mul(*length as u64))
}

/// Limit on the comparisons of two boxes: pieces from real savers need a few for each box.
const MOST_COMPARISONS: u64 = 1 << 27;

/// Returns true if no two of the boxes, all of one rank, overlap; `None` if the answer would take
/// too long to compute.
///
/// As in TensorFlow, a dimension without elements counts as one with a single element: two boxes
/// that span all of it overlap there.
pub(crate) fn are_apart(boxes: &[Bounds]) -> Option<bool> {
    let rank = boxes.first().map_or(0, Vec::len);
    let span = |at: usize, dimension: usize| -> (i64, i64) {
        let (start, length) =
            boxes.get(at).and_then(|bounds| bounds.get(dimension)).copied().unwrap_or((0, 1));
        (start, start.saturating_add(length.max(1)))
    };
    // Along the dimension with the most cuts, few boxes share a position.
    let cuts = |dimension: &usize| {
        let mut starts: Vec<i64> = (0..boxes.len()).map(|at| span(at, *dimension).0).collect();
        starts.sort_unstable();
        starts.dedup();
        starts.len()
    };
    let along = (0..rank).max_by_key(cuts).unwrap_or(0);
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_unstable_by_key(|at| span(*at, along).0);
    let meet = |a: usize, b: usize| {
        (0..rank).all(|dimension| {
            let (a, b) = (span(a, dimension), span(b, dimension));
            a.0 < b.1 && b.0 < a.1
        })
    };
    let mut beside: Vec<usize> = Vec::new();
    let mut comparisons = 0_u64;
    for at in order {
        comparisons = comparisons.saturating_add(beside.len() as u64);
        if comparisons > MOST_COMPARISONS {
            return None;
        }
        beside.retain(|other| span(*other, along).1 > span(at, along).0);
        if beside.iter().any(|other| meet(*other, at)) {
            return Some(false);
        }
        beside.push(at);
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        ordered_signed(&mut out, value);
        out
    }

    #[test]
    fn signed_numbers_have_the_bytes_that_tensorflow_writes() {
        let cases: [(i64, &str); 16] = [
            (0, "80"),
            (63, "bf"),
            (64, "c040"),
            (8191, "dfff"),
            (8192, "e02000"),
            (1_048_575, "efffff"),
            (1_048_576, "f0100000"),
            (1 << 27, "f808000000"),
            (1 << 34, "fc0400000000"),
            (1 << 40, "fd0000000000"),
            (1 << 41, "fe020000000000"),
            (1 << 48, "ff01000000000000"),
            (1 << 55, "ff8080000000000000"),
            (1 << 56, "ff8100000000000000"),
            (-1, "7f"),
            (-65, "3fbf"),
        ];
        for (value, expected) in cases {
            let found: String = signed(value).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, expected, "{value}");
        }
        for value in [i64::MAX, i64::MIN] {
            assert_eq!(signed(value).len(), 10, "{value}");
        }
    }

    #[test]
    fn the_order_of_codes_is_the_order_of_numbers() {
        let mut values: Vec<i64> =
            (0..63).flat_map(|bit| [1i64 << bit, (1 << bit) - 1, -(1 << bit)]).collect();
        values.extend([i64::MIN, i64::MAX]);
        values.sort_unstable();
        values.dedup();
        assert!(values.windows(2).all(|pair| signed(pair[0]) < signed(pair[1])));
    }

    #[test]
    fn a_key_has_the_bytes_of_a_real_checkpoint() {
        let slice = TensorSlice::new(vec![
            Extent::Range { start: 0, length: 2 },
            Extent::Range { start: 0, length: 4 },
        ])
        .unwrap();
        assert_eq!(slice.key(b"part"), *b"\0part\0\x01\x01\x02\x80\x82\x80\x84");
        assert_eq!(TensorSlice::full(0).key(b"a\0\xff"), *b"\0a\0\xff\xff\0\0\x01\0");
        assert!(is_slice_key(&slice.key(b"part")));
    }

    #[test]
    fn specifications_are_read_as_restore_v2_reads_them() {
        let (shape, slice) = TensorSlice::parse_specification("6 3 1,4:-").unwrap();
        assert_eq!((shape.as_slice(), slice.to_string().as_str()), (&[6, 3][..], "1,4:-"));
        assert_eq!(slice.bounds(&[6, 3]).unwrap(), [(1, 4), (0, 3)]);
        assert_eq!(
            TensorSlice::parse_specification("6 3 -").unwrap_err().status(),
            StatusCode::Internal
        );
        for bad in ["x", "6 3", "6 3 5,2:-", "6 3 -:0,0", "6 -1 -:-", "6 3 -:-:-"] {
            assert!(TensorSlice::parse_specification(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn boxes_that_meet_are_found() {
        let grid = |rows: i64, columns: i64| -> Vec<Bounds> {
            (0..rows * columns).map(|n| vec![(n / columns * 3, 3), (n % columns * 2, 2)]).collect()
        };
        assert_eq!(are_apart(&grid(40, 50)), Some(true));
        for (at, rows, columns) in [(0, 1, 0), (777, 0, 1), (1999, -1, -1)] {
            let mut boxes = grid(40, 50);
            boxes[at][0].0 += rows;
            boxes[at][1].0 += columns;
            assert_eq!(are_apart(&boxes), Some(false), "{at}");
        }
        let twice = [vec![(0, 2), (0, 4)], vec![(0, 2), (0, 4)], vec![(4, 2), (0, 4)]];
        assert_eq!(are_apart(&twice), Some(false));
        assert_eq!((are_apart(&twice[1..]), are_apart(&[])), (Some(true), Some(true)));
        assert_eq!(are_apart(&[vec![], vec![]]), Some(false));
        assert_eq!(are_apart(&[vec![(0, 0), (0, 1)], vec![(0, 0), (1, 1)]]), Some(true));
        assert_eq!(are_apart(&[vec![(0, 0)], vec![(0, 0)]]), Some(false));
    }

    #[test]
    fn boxes_in_stairs_are_compared_in_bounded_time() {
        // Each box is long in one dimension, in which it shares positions with all others.
        let stairs: Vec<Bounds> = (0..30_000).map(|n| vec![(n, 30_000), (n, 1)]).collect();
        assert_eq!(are_apart(&stairs), Some(true));
        let both: Vec<Bounds> =
            (0..30_000).map(|n| vec![(n, 30_000), (-n, 30_000), (n, 1)]).collect();
        assert!(are_apart(&both).is_none_or(|apart| apart));
    }
}
