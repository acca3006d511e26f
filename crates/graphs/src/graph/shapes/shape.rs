//! Partially known shapes, and their compatibility.
//!
//! Depends on dimensions only.

use std::{fmt, sync::Arc};

/// An unknown dimension, as TensorFlow encodes it.
pub(super) const UNKNOWN: i64 = -1;

/// Limit on the dimensions of a tensor.
const HIGHEST_RANK: usize = 254;

/// The shape of a tensor as far as it is known before execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) struct Shape(Option<Arc<[i64]>>);

/// The error of two incompatible shapes, or of a shape that does not meet a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Mismatch {
    /// The found shape: `input 1 of shape [2, 3]`.
    pub(in super::super) found: String,
    /// The required shape: `a rank of 1`.
    pub(in super::super) expected: String,
    /// The node that refuses it, if it is in a called function.
    pub(in super::super) within: Option<FunctionNode>,
}

/// A node of a function, by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct FunctionNode {
    pub(in super::super) function: String,
    pub(in super::super) node: String,
    pub(in super::super) operation: String,
}

impl Mismatch {
    pub(super) fn new(found: impl Into<String>, expected: impl Into<String>) -> Box<Self> {
        Box::new(Self { found: found.into(), expected: expected.into(), within: None })
    }
}

/// The result of a shape function.
pub(super) type Inferred<T> = Result<T, Box<Mismatch>>;

impl Shape {
    /// Returns an unknown shape.
    pub(super) const fn unknown() -> Self {
        Self(None)
    }

    /// Creates a shape with these dimensions, some of which may be [`UNKNOWN`]; an invalid shape
    /// becomes an unknown one.
    pub(super) fn of(dimensions: &[i64]) -> Self {
        let is_shape =
            dimensions.len() <= HIGHEST_RANK && dimensions.iter().all(|size| *size >= UNKNOWN);
        Self(is_shape.then(|| dimensions.into()))
    }

    /// Returns the shape of a scalar.
    pub(super) fn scalar() -> Self {
        Self::of(&[])
    }

    /// Returns a shape of this rank with unknown dimensions.
    pub(super) fn of_rank(rank: usize) -> Self {
        Self::of(&vec![UNKNOWN; rank.min(HIGHEST_RANK + 1)])
    }

    /// Returns the dimensions, if the rank is known.
    pub(super) fn dimensions(&self) -> Option<&[i64]> {
        self.0.as_deref()
    }

    pub(super) fn rank(&self) -> Option<usize> {
        Some(self.dimensions()?.len())
    }

    /// Returns the dimensions, if all are known.
    pub(super) fn sizes(&self) -> Option<&[i64]> {
        self.dimensions().filter(|sizes| !sizes.contains(&UNKNOWN))
    }

    /// Returns the number of elements.
    pub(super) fn elements(&self) -> Option<i64> {
        self.sizes()?.iter().try_fold(1_i64, |count, size| count.checked_mul(*size))
    }

    /// Returns the dimension at `axis`; a negative axis counts from the end.
    pub(super) fn dimension(&self, axis: i64) -> i64 {
        let Some(dimensions) = self.dimensions() else { return UNKNOWN };
        place(axis, dimensions.len()).and_then(|at| dimensions.get(at)).copied().unwrap_or(UNKNOWN)
    }

    /// Returns the shape with this rank.
    pub(super) fn with_rank(&self, rank: usize) -> Inferred<Self> {
        match self.rank() {
            None => Ok(Self::of_rank(rank)),
            Some(found) if found == rank => Ok(self.clone()),
            Some(_) => Err(Mismatch::new(format!("shape {self}"), format!("a rank of {rank}"))),
        }
    }

    /// Returns the shape, if it may have at least this rank.
    pub(super) fn with_rank_at_least(&self, rank: usize) -> Inferred<&Self> {
        match self.rank() {
            Some(found) if found < rank => {
                Err(Mismatch::new(format!("shape {self}"), format!("a rank of at least {rank}")))
            }
            _ => Ok(self),
        }
    }

    /// Merges two shapes of the same tensor.
    pub(super) fn merge(&self, other: &Self) -> Inferred<Self> {
        let (Some(own), Some(others)) = (self.dimensions(), other.dimensions()) else {
            return Ok(if self.0.is_some() { self.clone() } else { other.clone() });
        };
        let mismatch =
            || Mismatch::new(format!("shapes {self} and {other}"), "shapes that may be the same");
        if own.len() != others.len() {
            return Err(mismatch());
        }
        let pairs = own.iter().zip(others);
        let merged: Option<Arc<[i64]>> = pairs.map(|(one, two)| merged(*one, *two)).collect();
        merged.map(|merged| Self(Some(merged))).ok_or_else(mismatch)
    }

    /// Returns the broadcast shape of two tensors.
    pub(super) fn broadcast(&self, other: &Self) -> Inferred<Self> {
        let (Some(own), Some(others)) = (self.dimensions(), other.dimensions()) else {
            return Ok(Self::unknown());
        };
        let rank = own.len().max(others.len());
        let from_end = |dimensions: &[i64], place: usize| {
            let at = (place + dimensions.len()).checked_sub(rank);
            at.and_then(|at| dimensions.get(at)).copied().unwrap_or(1)
        };
        let both = (0..rank).map(|place| (from_end(own, place), from_end(others, place)));
        let broadcast: Option<Arc<[i64]>> = both.map(|(one, two)| repeated(one, two)).collect();
        broadcast.map(|shape| Self(Some(shape))).ok_or_else(|| {
            Mismatch::new(
                format!("shapes {self} and {other}"),
                "shapes that go together element by element",
            )
        })
    }

    /// Returns the dimensions from `from` to before `to`; negative indices count from the end, and
    /// both are clamped.
    pub(super) fn part(&self, from: i64, to: Option<i64>) -> Self {
        let Some(dimensions) = self.dimensions() else { return Self::unknown() };
        let rank = dimensions.len() as i64;
        let absolute = |axis: i64| (if axis < 0 { axis + rank } else { axis }).clamp(0, rank);
        let (from, to) = (absolute(from) as usize, to.map_or(rank, absolute) as usize);
        Self::of(dimensions.get(from..to).unwrap_or_default())
    }

    /// Returns the dimensions of one shape followed by those of the other.
    pub(super) fn join(&self, behind: &Self) -> Self {
        match (self.dimensions(), behind.dimensions()) {
            (Some(own), Some(others)) => Self::of(&[own, others].concat()),
            _ => Self::unknown(),
        }
    }

    /// Returns the shape with another dimension at `place`.
    pub(super) fn with_dimension(&self, place: usize, size: i64) -> Self {
        let Some(dimensions) = self.dimensions() else { return Self::unknown() };
        let mut dimensions = dimensions.to_vec();
        if let Some(old) = dimensions.get_mut(place) {
            *old = size;
        }
        Self::of(&dimensions)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Limit on the dimensions of a shape that are shown.
        const SHOWN: usize = 8;
        let Some(dimensions) = self.dimensions() else { return f.write_str("<unknown>") };
        f.write_str("[")?;
        for (place, size) in dimensions.iter().take(SHOWN).enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match *size {
                UNKNOWN => write!(f, "{comma}?")?,
                size => write!(f, "{comma}{size}")?,
            }
        }
        if dimensions.len() > SHOWN {
            write!(f, ", … {} dimensions", dimensions.len())?;
        }
        f.write_str("]")
    }
}

/// Returns the index of an axis in a shape of this rank; a negative axis counts from the end.
pub(super) fn place(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let at = if axis < 0 { axis.checked_add(rank)? } else { axis };
    (0..rank).contains(&at).then_some(at as usize)
}

/// Merges two dimensions of one size; `None` if they differ.
pub(super) fn merged(one: i64, two: i64) -> Option<i64> {
    match (one, two) {
        (UNKNOWN, known) | (known, UNKNOWN) => Some(known),
        _ => (one == two).then_some(one),
    }
}

/// Returns the size of a broadcast dimension.
fn repeated(one: i64, two: i64) -> Option<i64> {
    match (one, two) {
        (1, other) | (other, 1) => Some(other),
        (UNKNOWN, known) | (known, UNKNOWN) if known > 1 => Some(known),
        (UNKNOWN, _) | (_, UNKNOWN) => Some(UNKNOWN),
        _ => (one == two).then_some(one),
    }
}

/// Returns the size of two dimensions that must be equal.
pub(super) fn merge_dimensions(one: i64, two: i64, what: &str) -> Inferred<i64> {
    merged(one, two).ok_or_else(|| {
        Mismatch::new(format!("{what} of {one} and {two}"), format!("the same {what}"))
    })
}
