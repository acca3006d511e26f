//! What a pickle describes: containers, plain values, storages, tensors, and names of everything
//! else.

use std::sync::Arc;

use crate::ifrt::DType;

/// A value, by its place among all values of a pickle: containers that hold each other are no
/// circle of pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValueId(u32);

/// What a storage or a tensor says of its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// Elements of this type.
    Typed(DType),
    /// Bytes: the tensor says what they are.
    Bytes,
    /// Those of a class that has no counterpart.
    Unknown(Arc<str>),
}

/// A function or a class that describes tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// `collections.OrderedDict`, `defaultdict`, `Counter`: dicts.
    Dict,
    /// `torch.Size`: a tuple.
    Size,
    /// `torch._utils._rebuild_tensor`, `_rebuild_tensor_v2`.
    Tensor,
    /// `torch._utils._rebuild_tensor_v3`.
    TensorOfBytes,
    /// `torch._utils._rebuild_parameter`, `_rebuild_parameter_with_state`.
    Parameter,
    /// A class of storages.
    Storage(Elements),
    /// A type of elements.
    ElementType(Elements),
    /// Anything else, by its name.
    Other(Arc<str>),
}

/// Where a storage is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Storage {
    pub(super) key: Arc<str>,
    pub(super) elements: Elements,
    /// Its length, in elements.
    pub(super) count: u64,
    /// The first element in the storage of the key, where it is a part of that.
    pub(super) begin: u64,
}

/// A tensor: elements of a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) storage: ValueId,
    /// The first element in the storage.
    pub(super) offset: u64,
    /// Tuples of numbers: extents, and elements from one index to the next.
    pub(super) shape: ValueId,
    pub(super) strides: ValueId,
    /// What the tensor itself says of its elements.
    pub(super) elements: Option<Elements>,
    /// Whether it stands for the conjugate or the negative of what is stored.
    pub(super) is_lazy: bool,
}

/// A value of a pickle.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Integer(i64),
    /// An integer beyond 64 bits: two's complement, little endian.
    Long(Arc<[u8]>),
    Number(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Tuple(Box<[ValueId]>),
    List(Vec<ValueId>),
    Dict(Vec<(ValueId, ValueId)>),
    Global(Global),
    Storage(Box<Storage>),
    Tensor(Box<View>),
    /// An instance of a class, or what a function gives, by the name of the class or the function.
    Object(Arc<str>),
}

impl Value {
    /// What it is, for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(_) => "a bool".to_owned(),
            Self::Integer(_) | Self::Long(_) => "an int".to_owned(),
            Self::Number(_) => "a float".to_owned(),
            Self::Text(_) => "a str".to_owned(),
            Self::Bytes(_) => "bytes".to_owned(),
            Self::Tuple(_) => "a tuple".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Dict(_) => "a dict".to_owned(),
            Self::Global(Global::Other(name)) => format!("the name {name}"),
            Self::Global(_) => "the name of a class or a function".to_owned(),
            Self::Storage(_) => "a storage".to_owned(),
            Self::Tensor(_) => "a tensor".to_owned(),
            Self::Object(name) => format!("an object of {name}"),
        }
    }
}

/// All values of a pickle.
#[derive(Debug, Default)]
pub(super) struct Values(Vec<Value>);

impl Values {
    /// Adds a value; `None` where there are too many.
    pub(super) fn add(&mut self, value: Value, most: usize) -> Option<ValueId> {
        let id = u32::try_from(self.0.len()).ok().filter(|_| self.0.len() < most)?;
        self.0.push(value);
        Some(ValueId(id))
    }

    /// A value. Ids are given out by [`add`](Self::add) alone, so that it is there.
    pub(super) fn get(&self, id: ValueId) -> &Value {
        self.0.get(id.0 as usize).unwrap_or(&Value::None)
    }

    /// A value that is changed; `None` for an id of other values.
    pub(super) fn get_mut(&mut self, id: ValueId) -> Option<&mut Value> {
        self.0.get_mut(id.0 as usize)
    }

    /// All storages that are named, as often as they are.
    pub(super) fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.0.iter().filter_map(|value| match value {
            Value::Storage(storage) => Some(&**storage),
            _ => None,
        })
    }

    /// The items of a tuple or a list.
    pub(super) fn items(&self, id: ValueId) -> Option<&[ValueId]> {
        match self.get(id) {
            Value::Tuple(items) => Some(items),
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// An integer that is 0 or more.
    pub(super) fn unsigned(&self, id: ValueId) -> Option<u64> {
        match self.get(id) {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}
