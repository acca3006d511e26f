//! The names of classes and functions that a pickle of tensors uses, with their meanings. Nothing
//! is looked up, imported or called.
//!
//! Source of the names: PyTorch's `torch/_utils.py`, `torch/_tensor.py` and
//! `torch/serialization.py`, and NumPy's `numpy/core/multiarray.py`.

use serdes::ifrt::DType;

/// Element type of a storage or a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// Elements of this type.
    Typed(DType),
    /// Two elements in each byte, which PyTorch counts as one.
    Pairs(DType),
    /// Bytes, whose type the tensor declares.
    Bytes,
    /// Elements of a class without a counterpart.
    Unknown,
}

/// A class or a function that is data to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// `collections.OrderedDict`, `defaultdict`, `Counter`: dicts.
    Dict,
    /// `torch.Size`: a tuple.
    Size,
    /// `torch.device`.
    Device,
    /// `torch._utils._rebuild_tensor`, `_rebuild_tensor_v2`.
    Tensor,
    /// `torch._utils._rebuild_tensor_v3`.
    TensorOfBytes,
    /// `torch._utils._rebuild_parameter`.
    Parameter,
    /// `torch._utils._rebuild_parameter_with_state`.
    ParameterWithState,
    /// `torch._tensor._rebuild_from_type_v2`.
    FromType,
    /// `torch.Tensor`, `torch.nn.Parameter`, `Buffer`: tensors without special behaviour.
    TensorClass,
    /// A class of storages.
    Storage(Elements),
    /// A type of elements.
    ElementType(Elements),
    /// `numpy.dtype`.
    NumpyType,
    /// `numpy.ndarray`.
    NumpyArrayClass,
    /// `numpy.core.multiarray.scalar`.
    NumpyScalar,
    /// `numpy.core.multiarray._reconstruct`.
    NumpyArray,
    /// `numpy.core.numeric._frombuffer`.
    NumpyFromBuffer,
    /// `bytes`, with which protocol 2 writes empty bytes.
    Bytes,
    /// `_codecs.encode`, with which protocol 2 writes other bytes.
    Encode,
    /// Anything else.
    Other,
}

/// Classes of storages in the module `torch`, and their elements.
const STORAGES: &[(&str, DType)] = &[
    ("DoubleStorage", DType::F64),
    ("FloatStorage", DType::F32),
    ("HalfStorage", DType::F16),
    ("BFloat16Storage", DType::BF16),
    ("LongStorage", DType::S64),
    ("IntStorage", DType::S32),
    ("ShortStorage", DType::S16),
    ("CharStorage", DType::S8),
    ("ByteStorage", DType::U8),
    ("BoolStorage", DType::Pred),
    ("ComplexDoubleStorage", DType::C128),
    ("ComplexFloatStorage", DType::C64),
];

/// Types of elements in the module `torch`.
const TYPES: &[(&str, DType)] = &[
    ("float64", DType::F64),
    ("float32", DType::F32),
    ("float16", DType::F16),
    ("bfloat16", DType::BF16),
    ("int64", DType::S64),
    ("int32", DType::S32),
    ("int16", DType::S16),
    ("int8", DType::S8),
    ("uint64", DType::U64),
    ("uint32", DType::U32),
    ("uint16", DType::U16),
    ("uint8", DType::U8),
    ("bool", DType::Pred),
    ("complex128", DType::C128),
    ("complex64", DType::C64),
    ("float8_e4m3fn", DType::F8E4M3FN),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e4m3fnuz", DType::F8E4M3FNUZ),
    ("float8_e5m2fnuz", DType::F8E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8E8M0FNU),
];

/// Returns the meaning of a name of a module.
pub(super) fn known(module: &str, name: &str) -> Known {
    match (module, name) {
        ("collections", "OrderedDict" | "defaultdict" | "Counter") => Known::Dict,
        ("_codecs", "encode") => Known::Encode,
        ("builtins" | "__builtin__", "bytes") => Known::Bytes,
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Known::Tensor,
        ("torch._utils", "_rebuild_tensor_v3") => Known::TensorOfBytes,
        ("torch._utils", "_rebuild_parameter") => Known::Parameter,
        ("torch._utils", "_rebuild_parameter_with_state") => Known::ParameterWithState,
        ("torch._tensor", "_rebuild_from_type_v2") => Known::FromType,
        ("torch.nn.parameter", "Parameter" | "Buffer") | ("torch._tensor", "Tensor") => {
            Known::TensorClass
        }
        ("torch" | "torch.storage", "UntypedStorage" | "_UntypedStorage") => {
            Known::Storage(Elements::Bytes)
        }
        ("torch" | "torch.storage" | "torch.cuda", _) if name.ends_with("Storage") => {
            Known::Storage(typed(STORAGES, name).unwrap_or(Elements::Unknown))
        }
        ("torch", _) => of_torch(name),
        ("numpy", "dtype") => Known::NumpyType,
        ("numpy", "ndarray") => Known::NumpyArrayClass,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Known::NumpyScalar,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Known::NumpyArray,
        ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Known::NumpyFromBuffer,
        _ => Known::Other,
    }
}

/// Returns the meaning of a name of the module `torch`, unless it is a class of storages.
fn of_torch(name: &str) -> Known {
    match name {
        "Size" => Known::Size,
        "device" => Known::Device,
        "Tensor" => Known::TensorClass,
        "float4_e2m1fn_x2" => Known::ElementType(Elements::Pairs(DType::F4E2M1FN)),
        _ => match typed(TYPES, name) {
            Some(elements) => Known::ElementType(elements),
            None if is_element_type(name) => Known::ElementType(Elements::Unknown),
            None => Known::Other,
        },
    }
}

fn typed(table: &[(&str, DType)], name: &str) -> Option<Elements> {
    table.iter().find(|(known, _)| *known == name).map(|(_, dtype)| Elements::Typed(*dtype))
}

/// Returns true if a name of the module `torch` names a type of elements, known or unknown.
fn is_element_type(name: &str) -> bool {
    ["float", "bfloat", "int", "uint", "complex", "qint", "quint", "bits"].iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_module_and_never_looked_up() {
        assert_eq!(known("collections", "OrderedDict"), Known::Dict);
        let bf16 = Known::Storage(Elements::Typed(DType::BF16));
        assert_eq!(known("torch", "BFloat16Storage"), bf16);
        assert_eq!(known("torch.storage", "UntypedStorage"), Known::Storage(Elements::Bytes));
        let u16 = Known::ElementType(Elements::Typed(DType::U16));
        assert_eq!(known("torch", "uint16"), u16);
        assert_eq!(known("torch", "uint4"), Known::ElementType(Elements::Unknown));
        assert_eq!(known("torch", "QInt8Storage"), Known::Storage(Elements::Unknown));
        for (module, name) in
            [("os", "system"), ("builtins", "eval"), ("torch", "load"), ("evil", "FloatStorage")]
        {
            assert_eq!(known(module, name), Known::Other);
        }
    }
}
