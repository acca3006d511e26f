//! Visits the leaves of a pickle's value with their paths: `model/layers/0/weight`.
//!
//! Names of leaves and the treatment of plain values are as in `serdes_ml.jax`: keys of dicts and
//! numbers of items joined by `/`. A container that occurs twice is visited twice, so the paths are
//! counted against the length of the pickle.

use std::{
    collections::{HashMap, HashSet, hash_map::RandomState},
    fmt::Write,
    hash::BuildHasher,
};

use super::{
    budget::Budget,
    error::TorchError,
    globals::Known,
    json::{number_in_json, text_in_json},
    made::{Array, Made, View},
    names::{describe, name_of},
    rebuild,
    value::{Items, Value, ValueId, Values},
};

/// Maximum nesting of containers.
const DEEPEST: usize = 100;

/// Maximum cost of a pickle's leaves per byte: characters of names and numbers of shapes.
const COST: u64 = 64;

/// Limit on the cost of the leaves of any pickle.
const MOST: u64 = 1 << 30;

/// Cost of a value in addition to its name, once there are more than [`FEW`]: for a tensor about
/// the memory that is kept for it. A pickle takes tens of bytes for a tensor, and two for a number.
const TENSOR: usize = 512;
const PLAIN: usize = 24;

/// Number of values that cost only their names, for any length of the pickle.
const FEW: usize = 4096;

/// Maximum number of leaves.
const MOST_LEAVES: usize = 1 << 21;

/// Maximum number of items of a tuple whose text is used as a key.
const MOST_IN_KEY: usize = 16;

/// Memory in bytes of a name or a key in a hash table.
const HASHED: usize = 64;

/// A leaf at the end of a path.
#[derive(Debug)]
pub(super) enum Leaf {
    /// A tensor.
    Tensor(View),
    /// A NumPy array.
    Array(Array),
    /// A number, a boolean or a text, in JSON like Python's.
    Plain(String),
    /// A value that a state cannot hold, and the reason.
    Refused(String),
    /// A property of a leaf that is lost, and the reason.
    LeftOut(String),
}

/// Name of the root.
#[derive(Clone, Copy)]
pub(super) enum Root<'a> {
    /// Name for a value that is not a container.
    Stem(&'a str),
    /// Name of the value, and prefix of the names in it.
    Name(&'a str),
}

/// Receiver of the leaves with their names, in the order of the pickle.
pub(super) trait Leaves {
    /// Receives a leaf; memory that is kept for it is taken from the budget.
    fn take(&mut self, name: &str, leaf: Leaf, budget: &mut Budget) -> Result<(), TorchError>;
}

/// Visits the leaves of `root`.
///
/// # Errors
/// If the containers are nested too deeply, or describe more than a pickle of this length plausibly
/// would.
pub(super) fn leaves(
    values: &Values,
    root: ValueId,
    pickle_bytes: u64,
    name: Root<'_>,
    into: &mut dyn Leaves,
    budget: &mut Budget,
) -> Result<(), TorchError> {
    let left = pickle_bytes.saturating_mul(COST).saturating_add(4096).min(MOST);
    let mut walk = Walk {
        values,
        into,
        memory: budget,
        left,
        way: String::new(),
        open: Vec::new(),
        names: Hashes::default(),
        leaves: 0,
    };
    if walk.items(root).is_some() {
        if let Root::Name(name) = name {
            walk.way = format!("{name}/");
        }
        return walk.container(root);
    }
    let what = match values.get(root) {
        Value::Call { .. } => match rebuild::made(values, root)? {
            Made::Other(what) if what.starts_with("an object") => Some(what),
            _ => None,
        },
        Value::Set(name) => Some(name.to_owned()),
        _ => None,
    };
    let (Root::Stem(stem) | Root::Name(stem)) = name;
    if let Some(what) = what.filter(|_| matches!(name, Root::Stem(_))) {
        return Err(TorchError::unsupported(format!(
            "it is {what}, which only its own code can make; save its state_dict()"
        )));
    }
    stem.clone_into(&mut walk.way);
    walk.leaf(root)
}

/// A hasher for keys that are hashes themselves.
#[derive(Default)]
struct Hashes {
    one: RandomState,
    other: RandomState,
    names: HashSet<(u64, u64)>,
}

impl Hashes {
    fn of(&self, is_text: bool, text: &str) -> (u64, u64) {
        (self.one.hash_one((is_text, text)), self.other.hash_one((is_text, text)))
    }
}

/// The items of a container.
enum Contents<'v> {
    Items(Items<'v>),
    /// Alternating keys and values.
    Entries(Items<'v>),
    /// Pairs of a key and a value.
    Pairs(Items<'v>),
}

struct Walk<'a> {
    values: &'a Values,
    into: &'a mut dyn Leaves,
    memory: &'a mut Budget,
    /// Remaining cost of names and numbers.
    left: u64,
    /// The path of the current value.
    way: String,
    /// The containers around the current value.
    open: Vec<ValueId>,
    names: Hashes,
    leaves: usize,
}

/// Function for each entry: it gets the walk, the entry's number, its key and its value.
type EachEntry<'e, W> = dyn FnMut(&mut W, usize, ValueId, ValueId) -> Result<(), TorchError> + 'e;

impl<'a> Walk<'a> {
    fn pay(&mut self, cost: usize) -> Result<(), TorchError> {
        let left = self.left.checked_sub(cost as u64);
        self.left = left.ok_or_else(|| {
            TorchError::unsupported(
                "its containers hold each other so often that far more is described than is there",
            )
        })?;
        Ok(())
    }

    fn pay_leaf(&mut self, cost: usize) -> Result<(), TorchError> {
        if self.leaves < FEW { Ok(()) } else { self.pay(cost) }
    }

    /// Contents of a container; `None` for any other value.
    fn items(&self, id: ValueId) -> Option<Contents<'a>> {
        let values = self.values;
        match values.get(id) {
            Value::Dict(items) => Some(Contents::Entries(items)),
            Value::List(items) | Value::Tuple(items) => Some(Contents::Items(items)),
            Value::Call { function, arguments } if values.known(function) == Some(Known::Dict) => {
                let pairs = values.items(arguments).and_then(Iterator::last);
                pairs.and_then(|pairs| values.items(pairs)).map(Contents::Pairs)
            }
            _ => None,
        }
    }

    fn container(&mut self, id: ValueId) -> Result<(), TorchError> {
        if self.open.contains(&id) {
            let reason = "one of its containers holds itself, which is endlessly deep and far more than is there; save tensors alone, as model.state_dict()";
            return Err(TorchError::unsupported(reason));
        }
        if self.open.len() > DEEPEST {
            let reason = format!("its containers lie in each other more than {DEEPEST} deep");
            return Err(TorchError::unsupported(reason));
        }
        self.open.push(id);
        let begin = self.way.len();
        match self.items(id) {
            Some(Contents::Items(items)) => {
                for (number, item) in items.enumerate() {
                    self.pay(begin + 8)?;
                    // Writing into a text does not fail.
                    let _ = write!(self.way, "{number}");
                    self.item(item)?;
                    self.way.truncate(begin);
                }
            }
            Some(Contents::Entries(items)) => self.entries(items, false)?,
            Some(Contents::Pairs(items)) => self.entries(items, true)?,
            None => {}
        }
        self.open.pop();
        self.attributes_of_dict(id)
    }

    /// Returns the attributes of a dict. `_metadata` is the bookkeeping of each `state_dict()`.
    fn attributes_of_dict(&mut self, id: ValueId) -> Result<(), TorchError> {
        match self.values.state(id) {
            Some(state) => self.attributes(state, &["_metadata"]),
            None => Ok(()),
        }
    }

    /// Returns the keys and values of a dict. Of a key that occurs twice the last value counts.
    fn entries(&mut self, items: Items<'a>, are_pairs: bool) -> Result<(), TorchError> {
        let begin = self.way.len();
        let mut last: HashMap<(u64, u64), ValueId> = HashMap::new();
        self.each(items, are_pairs, &mut |walk, number, key, item| {
            let (is_text, _) = walk.key(number, key)?;
            walk.pay(2 * walk.way.len())?;
            let hash = walk.names.of(is_text, walk.way.get(begin..).unwrap_or_default());
            if last.insert(hash, item).is_none() {
                walk.memory.take(HASHED)?;
            }
            walk.way.truncate(begin);
            Ok(())
        })?;
        let count = last.len();
        self.each(items, are_pairs, &mut |walk, number, key, _| {
            let (is_text, note) = walk.key(number, key)?;
            let hash = walk.names.of(is_text, walk.way.get(begin..).unwrap_or_default());
            if let Some(item) = last.remove(&hash) {
                if let Some(note) = note {
                    walk.left_out(note)?;
                }
                walk.item(item)?;
            }
            walk.way.truncate(begin);
            Ok(())
        })?;
        self.memory.give_back(count * HASHED);
        Ok(())
    }

    /// Calls a function for each key and value.
    fn each(
        &mut self,
        mut items: Items<'a>,
        are_pairs: bool,
        to: &mut EachEntry<'_, Self>,
    ) -> Result<(), TorchError> {
        for number in 0.. {
            let Some(first) = items.next() else { break };
            // Python also reports an error for an entry that is not a pair.
            let pair = match are_pairs {
                true => self.values.items(first).and_then(Items::array),
                false => items.next().map(|value| [first, value]),
            };
            let Some([key, value]) = pair else {
                let found = self.values.get(first).type_name();
                return Err(TorchError::damaged(found, "a key and a value"));
            };
            to(self, number, key, value)?;
        }
        Ok(())
    }

    /// Appends a key to the path; returns true if it is a text, and the reason why its name does
    /// not identify it.
    fn key(&mut self, number: usize, key: ValueId) -> Result<(bool, Option<String>), TorchError> {
        let value = self.values.get(key);
        match value {
            Value::Text(text) => {
                self.pay(text.len())?;
                self.way.push_str(text);
                return Ok((true, None));
            }
            Value::Integer(number) => {
                let _ = write!(self.way, "{number}");
                return Ok((false, None));
            }
            _ => {}
        }
        let note = match self.python_text(key) {
            Some(text) => {
                self.pay(text.len())?;
                self.way.push_str(&text);
                format!("its key is {}, of which the text alone is kept", value.type_name())
            }
            None => {
                let what = describe(self.values, key);
                let _ = write!(self.way, "<entry {number}: {what}>");
                format!("its key is {what}, which has no place in a name")
            }
        };
        Ok((false, Some(note)))
    }

    /// Returns a plain value, or a tuple of plain values, as Python displays it.
    fn python_text(&self, id: ValueId) -> Option<String> {
        let one = |id| match self.values.get(id) {
            Value::None => Some("None".to_owned()),
            Value::Bool(true) => Some("True".to_owned()),
            Value::Bool(false) => Some("False".to_owned()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Number(number) => Some(number_in_json(number)),
            Value::Text(text) if text.len() <= 1 << 10 => {
                Some(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")))
            }
            _ => None,
        };
        let Value::Tuple(items) = self.values.get(id) else { return one(id) };
        if items.clone().nth(MOST_IN_KEY).is_some() {
            return None;
        }
        let parts: Vec<String> = items.map(one).collect::<Option<_>>()?;
        Some(match &*parts {
            [one] => format!("({one},)"),
            parts => format!("({})", parts.join(", ")),
        })
    }

    fn item(&mut self, id: ValueId) -> Result<(), TorchError> {
        if self.items(id).is_none() {
            return self.leaf(id);
        }
        let length = self.way.len();
        self.way.push('/');
        self.container(id)?;
        self.way.truncate(length);
        Ok(())
    }

    fn leaf(&mut self, id: ValueId) -> Result<(), TorchError> {
        // As in a pytree, None is the absence of a leaf.
        if id == ValueId::NONE {
            return Ok(());
        }
        self.leaves += 1;
        if self.leaves > MOST_LEAVES {
            let reason = format!(
                "it describes more than {MOST_LEAVES} values by their names; save tensors alone, as model.state_dict()"
            );
            return Err(TorchError::unsupported(reason));
        }
        let (leaf, attributes) = self.made(id)?;
        let hash = self.names.of(true, &self.way);
        self.memory.take(HASHED)?;
        if !self.names.names.insert(hash) {
            let reason = "is the second value that gets this name".to_owned();
            return self.give(Leaf::Refused(reason));
        }
        self.give(leaf)?;
        for state in attributes {
            self.attributes(state, &[])?;
        }
        Ok(())
    }

    /// Returns the leaf of a value, and its attributes.
    fn made(&mut self, id: ValueId) -> Result<(Leaf, Vec<ValueId>), TorchError> {
        let mut none = Vec::new();
        let leaf = match self.values.get(id) {
            value @ (Value::Bool(_) | Value::Integer(_) | Value::Number(_)) => {
                self.pay_leaf(PLAIN)?;
                Leaf::Plain(plain_in_json(value))
            }
            Value::Text(text) => {
                self.pay_leaf(PLAIN)?;
                self.pay(text.len())?;
                self.memory.take(text.len())?;
                Leaf::Plain(text_in_json(text))
            }
            Value::Global(global) if matches!(global.known, Known::ElementType(_)) => {
                self.pay_leaf(PLAIN)?;
                Leaf::Plain(text_in_json(&name_of(self.values, id)))
            }
            Value::Call { .. } => match rebuild::made(self.values, id)? {
                Made::Tensor(view, attributes) => {
                    let rank =
                        self.values.items(view.shape).map_or(0, |shape| shape.take(64).count());
                    self.pay_leaf(TENSOR + 2 * rank)?;
                    none = attributes;
                    Leaf::Tensor(view)
                }
                Made::Array(array) => {
                    self.pay_leaf(TENSOR + 2 * array.shape.len())?;
                    self.memory.take(array.bytes.len())?;
                    Leaf::Array(array)
                }
                Made::Plain(value) => {
                    self.pay_leaf(PLAIN)?;
                    self.pay(value.len())?;
                    Leaf::Plain(value)
                }
                Made::Other(what) => self.refused(&what)?,
            },
            Value::Persistent(outside) => {
                // Checks that the id refers to a storage.
                rebuild::storage(self.values, outside)?;
                self.refused("a storage, which is no tensor")?
            }
            _ => {
                let what = describe(self.values, id);
                self.refused(&what)?
            }
        };
        Ok((leaf, none))
    }

    fn refused(&mut self, what: &str) -> Result<Leaf, TorchError> {
        self.pay_leaf(PLAIN + what.len())?;
        Ok(Leaf::Refused(format!("is {what}, which no state holds")))
    }

    fn give(&mut self, leaf: Leaf) -> Result<(), TorchError> {
        self.into.take(&self.way, leaf, self.memory)
    }

    fn left_out(&mut self, reason: String) -> Result<(), TorchError> {
        self.pay_leaf(PLAIN + reason.len())?;
        self.give(Leaf::LeftOut(reason))
    }

    /// Reports the attributes of a leaf or a dict, except some; their values are not kept.
    fn attributes(&mut self, state: ValueId, but: &[&str]) -> Result<(), TorchError> {
        // Only the attributes, or the attributes before those in slots of the class.
        let states = match self.values.get(state) {
            Value::Tuple(items) => items.array().unwrap_or([state, ValueId::NONE]),
            _ => [state, ValueId::NONE],
        };
        for state in states {
            match self.values.get(state) {
                Value::Dict(items) => self.each(items, false, &mut |walk, _, key, value| {
                    let Some(name) = walk.values.text_of(key) else { return Ok(()) };
                    if but.contains(&name) {
                        return Ok(());
                    }
                    walk.pay(8 + name.len())?;
                    let what = describe(walk.values, value);
                    let name = super::super::error::cut(name);
                    walk.left_out(format!("its attribute {name:?}, {what}, is not kept"))
                })?,
                Value::None => {}
                other => self.left_out(format!("its state, {}, is not kept", other.type_name()))?,
            }
        }
        Ok(())
    }
}

/// Returns a boolean or a number in JSON.
fn plain_in_json(value: Value<'_>) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number_in_json(number),
        _ => "null".to_owned(),
    }
}
