//! Descriptions of the objects that calls in a pickle create.

use serdes::ifrt::DType;

use super::value::ValueId;

/// A tensor: elements of a storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// The id of its storage.
    pub(super) storage: ValueId,
    /// The first element in the storage.
    pub(super) offset: u64,
    /// Tuples of numbers: extents, and strides in elements.
    pub(super) shape: ValueId,
    pub(super) strides: ValueId,
    /// The element type that the tensor itself declares.
    pub(super) element_type: Option<ValueId>,
    /// True if the tensor is the conjugate or the negative of the stored values.
    pub(super) is_lazy: bool,
}

/// An array whose bytes lie in the pickle.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    /// True if the first index varies fastest.
    pub(super) is_fortran: bool,
    /// Its elements, little endian.
    pub(super) bytes: Vec<u8>,
}

/// Description of the object that a call creates.
pub(super) enum Made {
    /// A tensor, with its attributes and those of its wrappers.
    Tensor(View, Vec<ValueId>),
    /// A NumPy array.
    Array(Array),
    /// A plain value, in JSON as Python reads and writes it.
    Plain(String),
    /// An object that cannot be stored, by its description.
    Other(String),
}
