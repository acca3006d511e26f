//! Descriptions of the objects that calls of a pickle make.

use serdes::ifrt::DType;

use super::value::ValueId;

/// A tensor: elements of a storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// The id of its storage.
    pub(super) storage: ValueId,
    /// The first element in the storage.
    pub(super) offset: u64,
    /// Tuples of numbers: extents, and elements from one index to the next.
    pub(super) shape: ValueId,
    pub(super) strides: ValueId,
    /// The type that the tensor itself says its elements are of.
    pub(super) element_type: Option<ValueId>,
    /// True if it stands for the conjugate or the negative of the stored values.
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

/// Description of the object that a call makes.
pub(super) enum Made {
    /// A tensor, and the attributes of it and of what it is wrapped in.
    Tensor(View, Vec<ValueId>),
    /// An array of NumPy's.
    Array(Array),
    /// A plain value, in JSON as Python reads and writes it.
    Plain(String),
    /// Something that has no place, and what it is.
    Other(String),
}
