//! Comparison of the tensors of two files.

use std::{
    collections::HashMap,
    io::{self, Read},
};

use serdes::ifrt::DType;
use serdes_device_state::{Phase, ProgressMonitor};

use super::{
    Error, Form, Source, TensorInfo, Tolerance, element_bytes,
    number::{distance, is_close},
};

/// Size of a compared block in bytes: a multiple of every element's size.
const BLOCK_BYTES: usize = 1 << 20;

/// Result of comparing one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Comparison {
    /// Type, shape and all bytes are the same; or with a tolerance, all elements are close enough.
    Equal,
    /// Type, shape or an element differs.
    Differs,
    /// Only the first file has it.
    OnlyInA,
    /// Only the second file has it.
    OnlyInB,
}

impl Comparison {
    /// Returns `equal`, `differs`, `only_in_a` or `only_in_b`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs => "differs",
            Self::OnlyInA => "only_in_a",
            Self::OnlyInB => "only_in_b",
        }
    }
}

/// Comparison of one tensor in two files.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// Name of the tensor.
    pub name: String,
    /// Result of the comparison.
    pub comparison: Comparison,
    /// The largest absolute difference of two elements, including those that count as equal; 0 if
    /// all bytes are the same; NaN if only one of two elements is NaN; `None` if there are no
    /// differences to compute: other types or shapes, strings, one file.
    pub max_abs: Option<f64>,
    /// Number of elements of the tensor in the first file, or else in the second.
    pub elements: u64,
    /// Number of elements that differ; `None` if the elements do not correspond.
    pub differing: Option<u64>,
    /// Description of the difference, for people; empty if nothing or only numbers differ.
    pub detail: String,
}

/// Compares the tensors of `a` and `b` by name, in the order of `a`, followed by those that only
/// `b` has.
///
/// An npy file has no name for its tensor: if one of the files is an npy and both have one tensor,
/// these are compared under any names. Elements differ if a byte differs; with a `tolerance`, if
/// they are farther apart than that. Strings differ if a byte differs.
///
/// Reads both block by block; calls `report` with each tensor as soon as it is compared.
///
/// # Errors
/// If a file cannot be read, or the work is cancelled.
pub fn diff(
    a: &dyn Source,
    b: &dyn Source,
    tolerance: Option<Tolerance>,
    monitor: &ProgressMonitor,
    mut report: impl FnMut(&Difference),
) -> Result<Vec<Difference>, Error> {
    let is_npy = |source: &dyn Source| source.kind() == Form::Npy.as_str();
    let nameless = (is_npy(a) || is_npy(b)) && a.tensors().len() == 1 && b.tensors().len() == 1;
    let by_name = |source: &dyn Source| -> HashMap<String, usize> {
        let names = source.tensors().iter().enumerate();
        names.map(|(position, info)| (info.name.clone(), position)).collect()
    };
    let (in_a, in_b) = (by_name(a), by_name(b));
    let partner = |info: &TensorInfo| {
        if nameless { Some(0) } else { in_b.get(&info.name).copied() }
    };
    let partners: Vec<Option<usize>> = a.tensors().iter().map(partner).collect();
    let common = a.tensors().iter().zip(&partners).filter(|(_, other)| other.is_some());
    monitor.begin(Phase::Compare, common.map(|(info, _)| info.bytes).sum());
    let pairs = partners.iter().enumerate();
    let (of_a, of_b): (Vec<_>, Vec<_>) =
        pairs.filter_map(|(position, other)| Some((position, (*other)?))).unzip();
    a.announce(&of_a);
    b.announce(&of_b);
    let mut differences = Vec::new();
    let mut add = |difference: Difference| {
        report(&difference);
        differences.push(difference);
    };
    for (position, (info, other)) in a.tensors().iter().zip(partners).enumerate() {
        add(match other {
            None => lonely(info, Comparison::OnlyInA),
            Some(other) => compare((a, position), (b, other), info, tolerance, monitor)?,
        });
    }
    for info in b.tensors().iter().filter(|info| !nameless && !in_a.contains_key(&info.name)) {
        add(lonely(info, Comparison::OnlyInB));
    }
    Ok(differences)
}

fn lonely(info: &TensorInfo, comparison: Comparison) -> Difference {
    Difference {
        name: info.name.clone(),
        comparison,
        max_abs: None,
        elements: info.elements(),
        differing: None,
        detail: String::new(),
    }
}

/// A tensor: its file and its position there.
type TensorOf<'s> = (&'s dyn Source, usize);

fn compare(
    a: TensorOf<'_>,
    b: TensorOf<'_>,
    info: &TensorInfo,
    tolerance: Option<Tolerance>,
    monitor: &ProgressMonitor,
) -> Result<Difference, Error> {
    let mut difference = lonely(info, Comparison::Differs);
    let Some(other) = b.0.tensors().get(b.1) else {
        return Ok(lonely(info, Comparison::OnlyInA));
    };
    if (info.dtype, &info.shape) != (other.dtype, &other.shape) {
        difference.detail =
            format!("{}{} and {}{}", info.dtype, info.shape, other.dtype, other.shape);
        monitor.advance(info.bytes)?;
        return Ok(difference);
    }
    if info.dtype == DType::String {
        let (a, b) = (a.0.strings(a.1)?, b.0.strings(b.1)?);
        let count = a.iter().zip(&b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len());
        difference.differing = Some(count as u64);
        if count == 0 {
            difference.comparison = Comparison::Equal;
        }
        monitor.advance(info.bytes)?;
        return Ok(difference);
    }
    let (differing, max_abs) = numbers(a, b, info, tolerance, monitor)?;
    difference.differing = Some(differing);
    difference.max_abs = max_abs;
    if differing == 0 {
        difference.comparison = Comparison::Equal;
        difference.max_abs = max_abs.or(Some(0.0));
    }
    Ok(difference)
}

/// Returns the number of different elements, and the largest distance of two; `None` if all bytes
/// are the same.
#[expect(clippy::indexing_slicing, reason = "`length` is at most that of a block")]
fn numbers(
    a: TensorOf<'_>,
    b: TensorOf<'_>,
    info: &TensorInfo,
    tolerance: Option<Tolerance>,
    monitor: &ProgressMonitor,
) -> Result<(u64, Option<f64>), Error> {
    let data = |source| Error::Data { name: info.name.clone(), source };
    let (mut a, mut b) = (a.0.read(a.1)?, b.0.read(b.1)?);
    let size = element_bytes(info.dtype).and_then(|size| usize::try_from(size).ok()).unwrap_or(1);
    // Allocate no more than the tensor's size: for a million small tensors most time would be spent
    // on clearing blocks.
    let block = usize::try_from(info.bytes).map_or(BLOCK_BYTES, |bytes| bytes.min(BLOCK_BYTES));
    let (mut block_a, mut block_b) = (vec![0; block], vec![0; block]);
    let (mut count, mut max_abs) = (0, None);
    let mut left = info.bytes;
    while left > 0 {
        let length = usize::try_from(left).map_or(block, |left| left.min(block));
        let (part_a, part_b) = (&mut block_a[..length], &mut block_b[..length]);
        fill(&mut *a, part_a).map_err(data)?;
        fill(&mut *b, part_b).map_err(data)?;
        if part_a != part_b {
            let pairs = part_a.chunks_exact(size).zip(part_b.chunks_exact(size));
            for (a, b) in pairs.filter(|(a, b)| a != b) {
                let close =
                    tolerance.is_some_and(|tolerance| is_close(info.dtype, a, b, tolerance));
                count += u64::from(!close);
                max_abs = larger(max_abs, distance(info.dtype, a, b));
            }
        }
        left -= length as u64;
        monitor.advance(length as u64)?;
    }
    Ok((count, max_abs))
}

/// Returns the larger distance; NaN wins, so that it is not overlooked.
fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) if a.is_nan() || b.is_nan() => Some(f64::NAN),
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

fn fill(reader: &mut dyn Read, block: &mut [u8]) -> io::Result<()> {
    reader.read_exact(block)
}
