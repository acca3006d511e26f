//! The leaves of what a pickle describes, by the way to each: `model/layers/0/weight`.
//!
//! Names of leaves and what becomes of plain values are as in `serdes_ml.jax`: keys of dicts and
//! numbers of items joined by `/`. A container that is there twice is gone through twice, so that
//! the ways to it are counted against the length of the pickle.

use std::collections::{HashMap, HashSet};

use super::{
    error::TorchError,
    value::{Value, ValueId, Values, View},
};

/// How deep containers may lie in each other.
const DEEPEST: usize = 100;

/// What the leaves of a pickle may cost, in letters of names and numbers of shapes, for each of its
/// bytes.
const COST: u64 = 64;

/// What the leaves of no pickle may cost more than: names of a gigabyte.
const MOST: u64 = 1 << 30;

/// What a value costs besides its name, once there are more than [`FEW`]: for a tensor about what
/// is kept of it. A pickle has tens of bytes for a tensor of its own, and two for a number.
const TENSOR: usize = 512;
const PLAIN: usize = 24;

/// Values that cost their names alone, whatever the length of the pickle.
const FEW: usize = 4096;

/// The most leaves: what was found of each takes some hundred bytes.
const MOST_LEAVES: usize = 1 << 21;

/// What lies at the end of a way.
#[derive(Debug, PartialEq)]
pub(super) enum Leaf {
    /// A tensor.
    Tensor(View),
    /// A number, a truth or a text, in JSON as Python reads and writes it.
    Plain(String),
    /// Something that no state holds, and why.
    Refused(String),
}

/// The leaves of `root`, in the order of the pickle. A root that is no container is called `stem`.
///
/// # Errors
/// If the containers are nested too deep, or what they describe is beyond what a pickle of that
/// length would say of tensors.
pub(super) fn leaves(
    values: &Values,
    root: ValueId,
    pickle_bytes: u64,
    stem: &str,
) -> Result<Vec<(String, Leaf)>, TorchError> {
    let budget = pickle_bytes.saturating_mul(COST).saturating_add(4096).min(MOST);
    let mut walk = Walk { values, budget, names: HashSet::new(), leaves: Vec::new() };
    match values.get(root) {
        Value::Dict(_) | Value::List(_) | Value::Tuple(_) => walk.container(root, "", 0)?,
        Value::Object(name) => {
            return Err(TorchError::unsupported(format!(
                "it is an object of {name}, which only its own code can make; save its state_dict()"
            )));
        }
        _ => walk.leaf(root, stem.to_owned())?,
    }
    Ok(walk.leaves)
}

struct Walk<'a> {
    values: &'a Values,
    budget: u64,
    names: HashSet<String>,
    leaves: Vec<(String, Leaf)>,
}

impl Walk<'_> {
    fn pay(&mut self, cost: usize) -> Result<(), TorchError> {
        let left = self.budget.checked_sub(cost as u64);
        self.budget = left.ok_or_else(|| {
            TorchError::unsupported(
                "its containers hold each other so often that far more is described than is there",
            )
        })?;
        Ok(())
    }

    fn pay_leaf(&mut self, cost: usize) -> Result<(), TorchError> {
        if self.leaves.len() < FEW { Ok(()) } else { self.pay(cost) }
    }

    fn container(&mut self, id: ValueId, prefix: &str, depth: usize) -> Result<(), TorchError> {
        if depth > DEEPEST {
            let reason = format!("its containers lie in each other more than {DEEPEST} deep");
            return Err(TorchError::unsupported(reason));
        }
        for (name, item) in self.entries(id, prefix)? {
            match self.values.get(item) {
                Value::Dict(_) | Value::List(_) | Value::Tuple(_) => {
                    self.container(item, &format!("{name}/"), depth + 1)?;
                }
                _ => self.leaf(item, name)?,
            }
        }
        Ok(())
    }

    /// What a container holds, by the way to it. Of a key that comes twice the last value counts.
    fn entries(&mut self, id: ValueId, prefix: &str) -> Result<Vec<(String, ValueId)>, TorchError> {
        let values = self.values;
        let mut entries: Vec<(String, ValueId)> = Vec::new();
        match values.get(id) {
            Value::Dict(pairs) => {
                let mut places: HashMap<(bool, String), usize> = HashMap::new();
                for (number, (key, item)) in pairs.iter().enumerate() {
                    let (is_text, key) = match values.get(*key) {
                        Value::Text(text) => (true, text.to_string()),
                        Value::Integer(number) => (false, number.to_string()),
                        other => (false, format!("<entry {number}: {}>", other.describe())),
                    };
                    self.pay(prefix.len() + 2 * key.len() + 1)?;
                    let name = format!("{prefix}{key}");
                    match places.get(&(is_text, key.clone())) {
                        Some(place) => {
                            if let Some(entry) = entries.get_mut(*place) {
                                entry.1 = *item;
                            }
                        }
                        None => {
                            places.insert((is_text, key), entries.len());
                            entries.push((name, *item));
                        }
                    }
                }
            }
            _ => {
                for (number, item) in values.items(id).unwrap_or_default().iter().enumerate() {
                    self.pay(prefix.len() + 8)?;
                    entries.push((format!("{prefix}{number}"), *item));
                }
            }
        }
        Ok(entries)
    }

    fn leaf(&mut self, id: ValueId, name: String) -> Result<(), TorchError> {
        if self.leaves.len() >= MOST_LEAVES {
            let reason = format!(
                "it describes more than {MOST_LEAVES} values by their names; save tensors alone, as model.state_dict()"
            );
            return Err(TorchError::unsupported(reason));
        }
        let leaf = match self.values.get(id) {
            Value::Tensor(view) => {
                let rank = self.values.items(view.shape).map_or(0, <[_]>::len);
                self.pay_leaf(TENSOR + 2 * rank)?;
                Leaf::Tensor((**view).clone())
            }
            Value::Bool(_) | Value::Integer(_) | Value::Number(_) => {
                self.pay_leaf(PLAIN)?;
                Leaf::Plain(plain_in_json(self.values.get(id)))
            }
            Value::Text(text) => {
                self.pay_leaf(PLAIN)?;
                self.pay(text.len())?;
                Leaf::Plain(serde_json::Value::from(&**text).to_string())
            }
            // As in a pytree, it is the absence of a leaf.
            Value::None => return Ok(()),
            other => {
                let reason = format!("is {}, which no state holds", other.describe());
                self.pay_leaf(PLAIN + reason.len())?;
                Leaf::Refused(reason)
            }
        };
        let leaf = if self.names.contains(&name) {
            Leaf::Refused("is the second value that gets this name".to_owned())
        } else {
            leaf
        };
        self.names.insert(name.clone());
        self.leaves.push((name, leaf));
        Ok(())
    }
}

/// A truth or a number in JSON.
fn plain_in_json(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number_in_json(*number),
        _ => "null".to_owned(),
    }
}

/// A float as Python's `json` writes and reads it.
fn number_in_json(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        format!("{number:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_stay_floats_in_json() {
        for (number, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number_in_json(number), text);
        }
    }
}
