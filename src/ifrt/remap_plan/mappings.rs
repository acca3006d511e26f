//! Mappings between intervals of shards, stored together in a few lists.

use std::{fmt, str::FromStr};

use crate::ifrt::{IfrtError, list_notation::not_in_notation};

/// An interval of an array's shards: every `step`-th one from `start` to `end`, exclusive.
/// Formatted as `[start:end:step]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// The first shard.
    pub start: i64,
    /// End of the interval, exclusive.
    pub end: i64,
    /// The distance from one shard to the next.
    pub step: i64,
}

impl Interval {
    /// Creates the interval of every `step`-th shard from `start` to `end`, exclusive.
    pub const fn new(start: i64, end: i64, step: i64) -> Self {
        Self { start, end, step }
    }

    /// Returns the number of shards; `None` if the step is not positive.
    pub fn shard_count(self) -> Option<i64> {
        if self.step <= 0 {
            return None;
        }
        let span = i128::from(self.end) - i128::from(self.start);
        let step = i128::from(self.step);
        i64::try_from(((span + step - 1) / step).max(0)).ok()
    }

    /// Returns the shards, if there are at most `limit` of them.
    pub(super) fn shards(self, limit: usize) -> Option<impl Iterator<Item = i64>> {
        let count = usize::try_from(self.shard_count()?).ok().filter(|count| *count <= limit)?;
        // A sum that overflows would be past the end, so the count ends before it.
        Some(
            (0..count as i64)
                .map(move |at| self.start.saturating_add(at.saturating_mul(self.step))),
        )
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}:{}]", self.start, self.end, self.step)
    }
}

impl FromStr for Interval {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |rest: &str| {
            not_in_notation("Interval", text, rest, "start, end and step such as [0:4:2]")
        };
        let text = text.trim();
        let inner = text.strip_prefix('[').ok_or_else(|| wrong(text))?;
        let end = inner.find(']').unwrap_or(inner.len());
        let (inner, rest) = inner.split_at(end);
        let mut numbers = inner.split(':').map(str::trim);
        let mut number = || {
            let number = numbers.next().ok_or_else(|| wrong(rest))?;
            number.parse().map_err(|_| wrong(number))
        };
        let interval = Self::new(number()?, number()?, number()?);
        match (numbers.next(), rest.strip_prefix(']')) {
            (None, Some("")) => Ok(interval),
            (Some(fourth), _) => Err(wrong(fourth)),
            (None, after) => Err(wrong(after.unwrap_or(rest))),
        }
    }
}

/// A mapping of shards of an input to shards of an output: the n-th interval of `from` becomes the
/// n-th of `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping<'a> {
    /// The position of the input.
    pub in_array: i32,
    /// The position of the output.
    pub out_array: i32,
    /// Intervals of the input's shards.
    pub from: &'a [Interval],
    /// Intervals of the output's shards; as many as in `from`.
    pub to: &'a [Interval],
}

/// Formats as `Mapping(in_array=0,out_array=1,from=[[0:2:1]],to=[[2:4:1]])`.
impl fmt::Display for Mapping<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_array, out_array, from, to } = self;
        write!(f, "Mapping(in_array={in_array},out_array={out_array},from=")?;
        crate::ifrt::list_notation::write_list(f, *from)?;
        f.write_str(",to=")?;
        crate::ifrt::list_notation::write_list(f, *to)?;
        f.write_str(")")
    }
}

/// The arrays of a mapping, and the ends of its intervals in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Arrays {
    in_array: i32,
    out_array: i32,
    end: usize,
}

/// Many mappings in three shared lists, instead of two lists for each mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Mappings {
    arrays: Vec<Arrays>,
    from: Vec<Interval>,
    to: Vec<Interval>,
}

impl Mappings {
    pub(super) fn push(&mut self, mapping: Mapping<'_>) -> Result<(), IfrtError> {
        if mapping.from.len() != mapping.to.len() {
            return Err(IfrtError::CountMismatch {
                what: "intervals of the input",
                found: mapping.from.len() as u64,
                other: "intervals of the output",
                expected: mapping.to.len() as u64,
            });
        }
        self.from.extend_from_slice(mapping.from);
        self.to.extend_from_slice(mapping.to);
        self.end_mapping(mapping.in_array, mapping.out_array);
        Ok(())
    }

    /// Reserves memory for a mapping of `count` intervals, which the caller appends to both lists.
    pub(super) fn start_mapping(
        &mut self,
        count: usize,
    ) -> (&mut Vec<Interval>, &mut Vec<Interval>) {
        self.from.reserve(count);
        self.to.reserve(count);
        (&mut self.from, &mut self.to)
    }

    /// Ends the mapping that consists of the intervals appended last.
    pub(super) fn end_mapping(&mut self, in_array: i32, out_array: i32) {
        self.arrays.push(Arrays { in_array, out_array, end: self.from.len() });
    }

    pub(super) fn len(&self) -> usize {
        self.arrays.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<Mapping<'_>> {
        let arrays = self.arrays.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.arrays.get(before));
        let range = before.map_or(0, |before| before.end)..arrays.end;
        Some(Mapping {
            in_array: arrays.in_array,
            out_array: arrays.out_array,
            from: self.from.get(range.clone())?,
            to: self.to.get(range)?,
        })
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Mapping<'_>> + ExactSizeIterator {
        (0..self.arrays.len()).map(|index| {
            let none = Mapping { in_array: 0, out_array: 0, from: &[], to: &[] };
            self.get(index).unwrap_or(none)
        })
    }
}
