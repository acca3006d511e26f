//! The names that a pickle of tensors uses, and what calling them with their arguments describes.
//!
//! Source of names and orders of arguments: PyTorch's `torch/_utils.py` and
//! `torch/serialization.py`.

use std::sync::Arc;

use super::{
    super::error::cut,
    error::TorchError,
    value::{Elements, Global, Storage, Value, ValueId, Values, View},
};
use crate::ifrt::DType;

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

/// Types of elements in the module `torch`. Types of which several elements fill a byte
/// (`float4_e2m1fn_x2`, `uint4`) are not among them: their tensors count bytes.
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

/// What a name of a module stands for.
pub(super) fn global(module: &str, name: &str) -> Global {
    let of = |table: &[(&str, DType)]| {
        table.iter().find(|(known, _)| *known == name).map(|(_, dtype)| Elements::Typed(*dtype))
    };
    // Every object of a class repeats its name.
    let full = || Arc::from(cut(&format!("{module}.{name}")));
    match (module, name) {
        ("collections", "OrderedDict" | "defaultdict" | "Counter") => Global::Dict,
        ("torch", "Size") => Global::Size,
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Global::Tensor,
        ("torch._utils", "_rebuild_tensor_v3") => Global::TensorOfBytes,
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            Global::Parameter
        }
        ("torch" | "torch.storage", "UntypedStorage" | "_UntypedStorage") => {
            Global::Storage(Elements::Bytes)
        }
        ("torch" | "torch.storage" | "torch.cuda", _) if name.ends_with("Storage") => {
            Global::Storage(of(STORAGES).unwrap_or_else(|| Elements::Unknown(full())))
        }
        ("torch", _) => of(TYPES).map_or_else(
            || match is_element_type(name) {
                true => Global::ElementType(Elements::Unknown(full())),
                false => Global::Other(full()),
            },
            Global::ElementType,
        ),
        _ => Global::Other(full()),
    }
}

/// Whether a name of the module `torch` is that of a type of elements, known or not.
fn is_element_type(name: &str) -> bool {
    ["float", "bfloat", "int", "uint", "complex", "qint", "quint", "bits"].iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// What calling a class or a function with a tuple of arguments describes. Nothing is called.
pub(super) fn call(
    values: &Values,
    function: &Value,
    arguments: ValueId,
) -> Result<Outcome, TorchError> {
    let items = values.items(arguments).ok_or_else(|| {
        TorchError::damaged(values.get(arguments).describe(), "a tuple of arguments")
    })?;
    Ok(match function {
        Value::Global(Global::Dict) => dict(values, items)?,
        Value::Global(Global::Size) => match items {
            [one] if values.items(*one).is_some() => Outcome::Same(*one),
            _ => Outcome::New(Value::Tuple(Box::default())),
        },
        Value::Global(Global::Tensor) => Outcome::New(tensor(values, items, None)?),
        Value::Global(Global::TensorOfBytes) => {
            let elements = match items.get(6).map(|id| values.get(*id)) {
                Some(Value::Global(Global::ElementType(elements))) => elements.clone(),
                _ => return Err(TorchError::damaged("a tensor", "a tensor with a type")),
            };
            Outcome::New(tensor(values, items, Some(elements))?)
        }
        Value::Global(Global::Parameter) => match items {
            [data, ..] => Outcome::Same(*data),
            [] => return Err(TorchError::damaged("a parameter", "a parameter of a tensor")),
        },
        Value::Global(Global::Other(name)) | Value::Object(name) => {
            Outcome::New(Value::Object(Arc::clone(name)))
        }
        Value::Global(Global::Storage(_) | Global::ElementType(_)) => {
            Outcome::New(Value::Object(Arc::from("a storage or a type of torch")))
        }
        other => return Err(TorchError::damaged(other.describe(), "a class or a function")),
    })
}

/// What a call describes.
pub(super) enum Outcome {
    /// A new value.
    New(Value),
    /// One that is there.
    Same(ValueId),
}

/// A dict out of the arguments of its class: nothing, what makes default values, another dict, or
/// pairs.
fn dict(values: &Values, arguments: &[ValueId]) -> Result<Outcome, TorchError> {
    let Some(given) = arguments.last() else { return Ok(Outcome::New(Value::Dict(Vec::new()))) };
    Ok(match values.get(*given) {
        Value::Dict(_) => Outcome::Same(*given),
        Value::List(items) => {
            // What is no pair is an error in Python, too. Passing over it would be work that leaves
            // nothing behind to be counted.
            let pair = |item: &ValueId| match values.items(*item) {
                Some([key, value]) => Ok((*key, *value)),
                _ => Err(TorchError::damaged(values.get(*item).describe(), "a key and a value")),
            };
            Outcome::New(Value::Dict(items.iter().map(pair).collect::<Result<_, _>>()?))
        }
        _ => Outcome::New(Value::Dict(Vec::new())),
    })
}

/// Marks that a tensor may have: PyTorch knows two.
const MOST_MARKS: usize = 16;

/// A tensor out of the arguments storage, offset, shape, strides, whether it wants gradients,
/// hooks, and (with the type of elements before it, where they are given) marks.
fn tensor(
    values: &Values,
    arguments: &[ValueId],
    elements: Option<Elements>,
) -> Result<Value, TorchError> {
    let [storage, offset, shape, strides, ..] = *arguments else {
        let found = format!("a tensor of {} arguments", arguments.len());
        return Err(TorchError::damaged(found, "storage, offset, shape and strides"));
    };
    if !matches!(values.get(storage), Value::Storage(_)) {
        return Err(TorchError::damaged(values.get(storage).describe(), "the storage of a tensor"));
    }
    let offset = values.unsigned(offset).ok_or_else(|| {
        TorchError::damaged(values.get(offset).describe(), "the first element of a tensor")
    })?;
    let marks = arguments.get(if elements.is_some() { 7 } else { 6 });
    let is_lazy = match marks.map(|marks| values.get(*marks)) {
        // Every tensor may have the same ones, so that many of them would be gone through as often.
        Some(Value::Dict(pairs)) if pairs.len() > MOST_MARKS => {
            let found = format!("a tensor with {} marks", pairs.len());
            return Err(TorchError::damaged(found, "the marks conj and neg"));
        }
        Some(Value::Dict(pairs)) => {
            pairs.iter().any(|(_, mark)| matches!(values.get(*mark), Value::Bool(true)))
        }
        _ => false,
    };
    Ok(Value::Tensor(Box::new(View { storage, offset, shape, strides, elements, is_lazy })))
}

/// What a persistent id stands for: `("storage", class, key, place, elements)`, before 1.6 with a
/// part of another storage behind; or a module with its source.
pub(super) fn persistent(values: &Values, id: ValueId) -> Result<Outcome, TorchError> {
    let damaged = || TorchError::damaged(values.get(id).describe(), "the id of a storage");
    let items = values.items(id).ok_or_else(damaged)?;
    let text = |at: usize| match items.get(at).map(|item| values.get(*item)) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    };
    if text(0).is_some_and(|kind| &**kind == "module") {
        return items.get(1).map(|class| Outcome::Same(*class)).ok_or_else(damaged);
    }
    let class = items.get(1).map(|item| values.get(*item));
    let (Some("storage"), Some(Value::Global(Global::Storage(elements))), Some(key)) =
        (text(0).map(|kind| &**kind), class, text(2))
    else {
        return Err(damaged());
    };
    let count = items.get(4).and_then(|count| values.unsigned(*count)).ok_or_else(damaged)?;
    let part = match items.get(5).map(|part| values.get(*part)) {
        None | Some(Value::None) => (0, count),
        Some(Value::Tuple(part)) => match **part {
            [_, begin, count] => {
                values.unsigned(begin).zip(values.unsigned(count)).ok_or_else(damaged)?
            }
            _ => return Err(damaged()),
        },
        Some(_) => return Err(damaged()),
    };
    Ok(Outcome::New(Value::Storage(Box::new(Storage {
        key: Arc::clone(key),
        elements: elements.clone(),
        count: part.1,
        begin: part.0,
    }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_module_and_never_looked_up() {
        assert_eq!(global("collections", "OrderedDict"), Global::Dict);
        assert_eq!(
            global("torch", "BFloat16Storage"),
            Global::Storage(Elements::Typed(DType::BF16))
        );
        assert_eq!(global("torch.storage", "UntypedStorage"), Global::Storage(Elements::Bytes));
        assert_eq!(global("torch", "uint16"), Global::ElementType(Elements::Typed(DType::U16)));
        assert_eq!(
            global("torch", "uint4"),
            Global::ElementType(Elements::Unknown("torch.uint4".into()))
        );
        assert_eq!(
            global("torch", "QInt8Storage"),
            Global::Storage(Elements::Unknown("torch.QInt8Storage".into()))
        );
        for (module, name) in
            [("os", "system"), ("builtins", "eval"), ("torch", "load"), ("evil", "FloatStorage")]
        {
            assert_eq!(global(module, name), Global::Other(format!("{module}.{name}").into()));
        }
    }
}
