//! Evaluation of a pickle's calls of known classes and functions into descriptions. Nothing is
//! called.
//!
//! Source of the orders of arguments: PyTorch's `torch/_utils.py`, `torch/_tensor.py` and
//! `torch/serialization.py`.

use super::{
    super::error::cut,
    error::TorchError,
    globals::{Elements, Known},
    made::{Made, View},
    names::{describe, name_of},
    numpy,
    value::{Items, Value, ValueId, Values},
};

/// A storage, which lies outside the pickle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage<'v> {
    pub(super) key: &'v str,
    pub(super) elements: Elements,
    /// The class that determines its elements.
    pub(super) class: ValueId,
    /// Its length, in elements.
    pub(super) count: u64,
    /// Its first element in the storage of the key, if it is a part of that storage.
    pub(super) begin: u64,
}

/// Limit on the calls in which a tensor may be wrapped.
const MOST_WRAPPERS: usize = 8;

/// Returns the description of the object that a call would return.
///
/// # Errors
/// If it is a tensor or an array with impossible arguments.
pub(super) fn made(values: &Values, object: ValueId) -> Result<Made, TorchError> {
    let mut attributes: Vec<ValueId> = values.state(object).into_iter().collect();
    let Value::Call { mut function, mut arguments } = values.get(object) else {
        return Ok(Made::Other(describe(values, object)));
    };
    for _ in 0..MOST_WRAPPERS {
        let items = values.items(arguments).ok_or_else(|| {
            TorchError::damaged(values.get(arguments).type_name(), "a tuple of arguments")
        })?;
        match values.known(function) {
            Some(Known::Tensor) => {
                return Ok(Made::Tensor(tensor(values, items, false)?, attributes));
            }
            Some(Known::TensorOfBytes) => {
                return Ok(Made::Tensor(tensor(values, items, true)?, attributes));
            }
            Some(Known::Parameter | Known::ParameterWithState) => {
                let mut items = items;
                let Some(data) = items.next() else {
                    return Err(TorchError::damaged("a parameter", "a parameter of a tensor"));
                };
                attributes.extend(items.nth(2));
                attributes.extend(values.state(data));
                match values.get(data) {
                    Value::Call { function: inner, arguments: of_inner } => {
                        (function, arguments) = (inner, of_inner);
                    }
                    other => {
                        return Err(TorchError::damaged(
                            other.type_name(),
                            "a parameter of a tensor",
                        ));
                    }
                }
            }
            Some(Known::FromType) => {
                let Some([inner, class, of_inner, state]) = items.array() else {
                    return Err(TorchError::damaged("a tensor with a class", "its four arguments"));
                };
                if values.known(class) != Some(Known::TensorClass) {
                    return Ok(Made::Other(format!("an object of {}", name_of(values, class))));
                }
                attributes.push(state);
                (function, arguments) = (inner, of_inner);
            }
            Some(Known::NumpyScalar) => return numpy::scalar(values, items),
            Some(Known::NumpyArray) => return numpy::array(values, items, values.state(object)),
            Some(Known::NumpyFromBuffer) => return numpy::array_of_buffer(values, items),
            Some(Known::Encode) => return Ok(Made::Other("bytes".to_owned())),
            Some(Known::Device) => return Ok(device(values, items)),
            _ => return Ok(Made::Other(format!("an object of {}", name_of(values, function)))),
        }
    }
    Err(TorchError::unsupported("a tensor of it is wrapped again and again"))
}

/// Returns a device, as PyTorch writes it: `cuda:0`.
fn device(values: &Values, mut arguments: Items<'_>) -> Made {
    let kind = arguments.next().and_then(|kind| values.text_of(kind));
    let index = arguments.next().map(|index| values.unsigned(index));
    let text = match (kind, index) {
        (Some(kind), None) => cut(kind),
        (Some(kind), Some(Some(index))) => format!("{}:{index}", cut(kind)),
        _ => return Made::Other("an object of torch.device".to_owned()),
    };
    Made::Plain(serde_json::Value::from(text).to_string())
}

/// Maximum number of flags of a tensor: PyTorch knows two.
const MOST_MARKS: usize = 16;

/// Returns a tensor from the arguments storage, offset, shape, strides, whether it requires
/// gradients, hooks, and flags if they are given (after the type of elements if that is given).
fn tensor(values: &Values, mut arguments: Items<'_>, has_type: bool) -> Result<View, TorchError> {
    let mut next = || arguments.next();
    let (Some(storage), Some(offset), Some(shape), Some(strides)) =
        (next(), next(), next(), next())
    else {
        return Err(TorchError::damaged(
            "a tensor of too few arguments",
            "storage, offset, shape and strides",
        ));
    };
    let Value::Persistent(storage) = values.get(storage) else {
        let found = values.get(storage).type_name();
        return Err(TorchError::damaged(found, "the storage of a tensor"));
    };
    let offset = values.unsigned(offset).ok_or_else(|| {
        TorchError::damaged(values.get(offset).type_name(), "the first element of a tensor")
    })?;
    let (_, _) = (next(), next());
    let element_type = match has_type {
        true => next(),
        false => None,
    };
    if has_type
        && !element_type
            .is_some_and(|named| matches!(values.known(named), Some(Known::ElementType(_))))
    {
        return Err(TorchError::damaged("a tensor", "a tensor with a type"));
    }
    let is_lazy = match next().map(|marks| values.get(marks)) {
        Some(Value::Dict(items)) => is_marked(values, items)?,
        _ => false,
    };
    Ok(View { storage, offset, shape, strides, element_type, is_lazy })
}

/// Returns true if one of the flags of a tensor is set.
fn is_marked(values: &Values, mut items: Items<'_>) -> Result<bool, TorchError> {
    let (mut count, mut is_marked) = (0_usize, false);
    while let Some((_, mark)) = items.next().zip(items.next()) {
        count += 1;
        // Every tensor may have the same dict of flags, so a long one would be read as often.
        if count > MOST_MARKS {
            let found = format!("a tensor with {} marks", count + items.count() / 2);
            return Err(TorchError::damaged(found, "the marks conj and neg"));
        }
        is_marked |= matches!(values.get(mark), Value::Bool(true));
    }
    Ok(is_marked)
}

/// Returns the storage that a persistent id stands for: `("storage", class, key, place, elements)`,
/// before 1.6 with a part of another storage behind. `None` for a module with its source.
///
/// # Errors
/// If the id is neither.
pub(super) fn storage(values: &Values, id: ValueId) -> Result<Option<Storage<'_>>, TorchError> {
    let damaged = || TorchError::damaged(values.get(id).type_name(), "the id of a storage");
    let mut items = values.items(id).ok_or_else(damaged)?;
    let mut next = || items.next();
    let kind = next().and_then(|kind| values.text_of(kind)).ok_or_else(damaged)?;
    let class = next().ok_or_else(damaged)?;
    if kind == "module" {
        return Ok(None);
    }
    let (true, Some(Known::Storage(elements))) = (kind == "storage", values.known(class)) else {
        return Err(damaged());
    };
    let key = next().and_then(|key| values.text_of(key)).ok_or_else(damaged)?;
    let _place = next();
    let count = next().and_then(|count| values.unsigned(count)).ok_or_else(damaged)?;
    let (begin, count) = match next().map(|part| values.get(part)) {
        None | Some(Value::None) => (0, count),
        Some(Value::Tuple(part)) => {
            let [_, begin, count] = part.array().ok_or_else(damaged)?;
            values.unsigned(begin).zip(values.unsigned(count)).ok_or_else(damaged)?
        }
        Some(_) => return Err(damaged()),
    };
    Ok(Some(Storage { key, elements, class, count, begin }))
}
