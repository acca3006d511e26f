//! Tensors of a file, from the leaves of its pickle and the positions of its storages.

use std::{fmt::Write, sync::Arc};

use serdes::ifrt::{DType, Shape};

use super::{
    super::{Listing, Refused, TensorInfo, aliases::LEAVES, archive::Content, element_bytes},
    budget::Budget,
    error::TorchError,
    globals::{Elements, Known},
    json::text_in_json,
    made::{Array, View},
    names::name_of,
    parsed::Parsed,
    rebuild,
    strided::{Dimension, Layout},
    tree::{Leaf, Leaves},
    value::Values,
};

/// Maximum number of dimensions of a PyTorch tensor.
const MOST_DIMENSIONS: usize = 64;

/// Bytes of memory of a tensor in addition to its names and dimensions, in this and all later
/// lists.
const TENSOR_BYTES: usize = 896;

/// Bytes of memory that each dimension of a tensor takes.
const DIMENSION_BYTES: usize = 48;

/// Number of copies of a text that exist at the same time: here, while it grows, in a plan, and
/// while it is written.
const TIMES: usize = 6;

/// Place of a tensor's bytes.
pub(super) enum Data {
    /// In the file.
    InFile,
    /// In the file, two elements in each byte.
    Pairs,
    /// In the pickle, from which they were copied.
    Inside(Arc<Vec<u8>>),
}

impl Data {
    pub(super) const fn is_inside(&self) -> bool {
        matches!(self, Self::Inside(_))
    }
}

/// A tensor, and its position.
pub(super) struct Tensor {
    pub(super) info: TensorInfo,
    pub(super) layout: Layout,
    pub(super) data: Data,
    /// The entry of the archive that contains the tensor, if the entry has a checksum.
    pub(super) checked: Option<Content>,
}

/// Tensors and refusals found so far.
pub(super) struct Found<'a> {
    parsed: &'a Parsed,
    pub(super) tensors: Vec<Tensor>,
    refused: Vec<Refused>,
    left_out: Vec<Refused>,
    /// Plain values in JSON, each with its name.
    plain: String,
}

impl<'a> Found<'a> {
    pub(super) const fn new(parsed: &'a Parsed) -> Self {
        Self {
            parsed,
            tensors: Vec::new(),
            refused: Vec::new(),
            left_out: Vec::new(),
            plain: String::new(),
        }
    }

    /// Returns the tensors, and the other facts about the file, with plain values in the metadata,
    /// where `serdes_ml.jax` reads them.
    pub(super) fn into_parts(self) -> (Vec<Tensor>, Listing) {
        let metadata =
            (!self.plain.is_empty()).then(|| vec![(LEAVES.to_owned(), self.plain + "}")]);
        let listing = Listing {
            tensors: Vec::new(),
            refused: self.refused,
            left_out: self.left_out,
            metadata,
            ..Listing::default()
        };
        (self.tensors, listing)
    }

    fn tensor(&mut self, name: &str, view: &View) -> Result<(), TorchError> {
        let values = &self.parsed.values;
        let Some(storage) = rebuild::storage(values, view.storage)? else {
            return Err(TorchError::damaged("a tensor without a storage", "a storage"));
        };
        let elements = match elements_of(values, view, &storage) {
            Ok(elements) => elements,
            Err(reason) => {
                self.refused.push(Refused::new(name, reason));
                return Ok(());
            }
        };
        let stored = *self.parsed.storages.get(storage.key).ok_or_else(|| {
            let found = format!("{name:?} in the storage {}, which is not there", storage.key);
            TorchError::damaged(found, "storages in the file")
        })?;
        let dimensions = dimensions(values, view).ok_or_else(|| {
            TorchError::damaged(
                format!("{name:?} with extents and strides that are none"),
                "as many numbers of both, at most 64",
            )
        })?;
        let (dtype, element, data) = match elements {
            Elements::Pairs(dtype) => (dtype, 1, Data::Pairs),
            Elements::Typed(dtype) => (dtype, element_bytes(dtype).unwrap_or(1), Data::InFile),
            _ => (DType::U8, 1, Data::InFile),
        };
        let Some(shape) = shape_of(&dimensions, matches!(data, Data::Pairs)) else {
            let reason = "is of pairs of elements and has no dimension that counts them";
            self.refused.push(Refused::new(name, reason));
            return Ok(());
        };
        // The storage counts its own elements, the tensor those of its type.
        let unit = match storage.elements {
            Elements::Typed(dtype) => element_bytes(dtype).unwrap_or(1),
            _ => 1,
        };
        let mut layout = Layout { begin: 0, element, dimensions };
        let place = storage.begin.checked_mul(unit).zip(view.offset.checked_mul(element));
        let place = place.and_then(|(part, offset)| part.checked_add(offset));
        let end = layout
            .span()
            .and_then(|span| span.checked_mul(element))
            .zip(place)
            .and_then(|(span, place)| place.checked_add(span));
        let storage_end = storage.count.checked_mul(unit).zip(storage.begin.checked_mul(unit));
        let storage_end = storage_end.and_then(|(bytes, begin)| begin.checked_add(bytes));
        let is_inside = end.zip(storage_end).is_some_and(|(end, storage_end)| {
            (end <= storage_end || layout.span() == Some(0)) && storage_end <= stored.bytes
        });
        let Some(place) = place.filter(|_| is_inside) else {
            let found = format!("{name:?} beyond the {} bytes of its storage", stored.bytes);
            return Err(TorchError::damaged(found, "tensors inside their storages"));
        };
        layout.begin = stored.begin.saturating_add(place);
        self.push(name, dtype, shape, layout, data, stored.checked)
    }

    fn push(
        &mut self,
        name: &str,
        dtype: DType,
        shape: Shape,
        layout: Layout,
        data: Data,
        checked: Option<Content>,
    ) -> Result<(), TorchError> {
        match TensorInfo::new(name, dtype, shape) {
            Ok(info) => self.tensors.push(Tensor { info, layout, data, checked }),
            Err(error) => return Err(TorchError::damaged(error.to_string(), "a size in bytes")),
        }
        Ok(())
    }

    fn array(&mut self, name: &str, array: Array) -> Result<(), TorchError> {
        let Array { dtype, shape, is_fortran, bytes } = array;
        let mut dimensions: Vec<Dimension> =
            shape.iter().map(|extent| Dimension { extent: *extent, stride: 0 }).collect();
        let mut stride = 1_u64;
        let mut set = |dimension: &mut Dimension| {
            dimension.stride = stride;
            stride = stride.saturating_mul(dimension.extent);
        };
        match is_fortran {
            true => dimensions.iter_mut().for_each(&mut set),
            false => dimensions.iter_mut().rev().for_each(&mut set),
        }
        let element = element_bytes(dtype).unwrap_or(1);
        let Some(shape) = shape_of(&dimensions, false) else {
            return Err(TorchError::damaged("an array without a shape", "extents"));
        };
        let layout = Layout { begin: 0, element, dimensions };
        self.push(name, dtype, shape, layout, Data::Inside(Arc::new(bytes)), None)
    }
}

impl Leaves for Found<'_> {
    fn take(&mut self, name: &str, leaf: Leaf, budget: &mut Budget) -> Result<(), TorchError> {
        match leaf {
            Leaf::Plain(value) => {
                let before = self.plain.len();
                self.plain.push_str(if self.plain.is_empty() { "{" } else { ", " });
                // Writing into a text does not fail.
                let _ = write!(self.plain, "{}: {value}", text_in_json(name));
                budget.take(TIMES * (self.plain.len() - before))
            }
            Leaf::Refused(reason) => {
                budget.take(96 + TIMES * (name.len() + reason.len()))?;
                self.refused.push(Refused::new(name, reason));
                Ok(())
            }
            Leaf::LeftOut(reason) => {
                budget.take(96 + TIMES * (name.len() + reason.len()))?;
                self.left_out.push(Refused::new(name, reason));
                Ok(())
            }
            Leaf::Tensor(view) => {
                let shape = self.parsed.values.items(view.shape).into_iter().flatten();
                let rank = shape.take(MOST_DIMENSIONS).count();
                budget.take(TENSOR_BYTES + TIMES * name.len() + DIMENSION_BYTES * rank)?;
                self.tensor(name, &view)
            }
            Leaf::Array(array) => {
                let rank = array.shape.len();
                budget.take(TENSOR_BYTES + TIMES * name.len() + DIMENSION_BYTES * rank)?;
                self.array(name, array)
            }
        }
    }
}

/// Returns the type of a tensor's elements, or the reason why there is none.
fn elements_of(
    values: &Values,
    view: &View,
    storage: &rebuild::Storage<'_>,
) -> Result<Elements, String> {
    if view.is_lazy {
        let reason = "stands for the conjugate or the negative of what is stored; save it with .resolve_conj() or .resolve_neg()";
        return Err(reason.to_owned());
    }
    let own = view.element_type.and_then(|named| match values.known(named) {
        Some(Known::ElementType(elements)) => Some((elements, named)),
        _ => None,
    });
    match own.unwrap_or((storage.elements, storage.class)) {
        (elements @ (Elements::Typed(_) | Elements::Pairs(_)), _) => Ok(elements),
        (Elements::Bytes, _) => Err("is of bytes without a type".to_owned()),
        (Elements::Unknown, named) => {
            let name = name_of(values, named);
            Err(format!("the element type {name} has no counterpart in IFRT"))
        }
    }
}

/// Returns extents and strides; `None` if no tensor can have them.
fn dimensions(values: &Values, view: &View) -> Option<Vec<Dimension>> {
    let (mut extents, mut strides) = (values.items(view.shape)?, values.items(view.strides)?);
    let mut dimensions = Vec::new();
    loop {
        match (extents.next(), strides.next()) {
            (None, None) => return Some(dimensions),
            (Some(extent), Some(stride)) if dimensions.len() < MOST_DIMENSIONS => {
                let (extent, stride) = (values.unsigned(extent)?, values.unsigned(stride)?);
                dimensions.push(Dimension { extent, stride });
            }
            _ => return None,
        }
    }
}

/// Returns the shape of a tensor; if each byte is a pair of elements, the last extent counts
/// elements.
fn shape_of(dimensions: &[Dimension], are_pairs: bool) -> Option<Shape> {
    let extents = dimensions.iter().map(|dimension| i64::try_from(dimension.extent).ok());
    let mut extents = extents.collect::<Option<Vec<_>>>()?;
    if are_pairs {
        let last = extents.last_mut()?;
        *last = last.checked_mul(2)?;
    }
    Shape::new(extents).ok()
}
