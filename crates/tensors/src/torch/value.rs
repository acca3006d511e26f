//! Values of a pickle: containers, plain values, names, calls, and references to data outside of
//! the pickle.
//!
//! A value is one word: small numbers are stored in the word, everything else is an index into an
//! array of words. So each byte of the pickle takes only a few bytes of memory, and cyclic
//! containers need no cyclic pointers.

use std::collections::HashMap;

use super::{
    budget::Budget,
    error::TorchError,
    globals::{Known, known},
    id::{PLACE, PLACE_BITS, kind},
    pool::{Place, Pool},
    words::Words,
};
pub(super) use super::{id::ValueId, items::Items};

/// A class or a function, by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Global {
    module: ValueId,
    name: ValueId,
    /// Its meaning, if it is known.
    pub(super) known: Known,
}

/// A value of a pickle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'v> {
    None,
    Bool(bool),
    Integer(i64),
    /// An integer beyond 64 bits: two's complement, little endian.
    Long(&'v [u8]),
    Number(f64),
    Text(&'v str),
    Bytes(&'v [u8]),
    Tuple(Items<'v>),
    List(Items<'v>),
    /// Alternating keys and values.
    Dict(Items<'v>),
    /// A `set` or a `frozenset`, whose items are not kept.
    Set(&'static str),
    Global(Global),
    /// Result of calling a class or a function with these arguments.
    Call {
        function: ValueId,
        arguments: ValueId,
    },
    /// Data outside of the pickle, under this id.
    Persistent(ValueId),
}

impl Value<'_> {
    /// Returns Python's name of the value's type, for messages.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Integer(_) => "an int",
            Self::Long(_) => "an int of more than 64 bits",
            Self::Number(_) => "a float",
            Self::Text(_) => "a str",
            Self::Bytes(_) => "bytes",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dict",
            Self::Set(name) => name,
            Self::Global(_) => "the name of a class or a function",
            Self::Call { .. } => "an object",
            Self::Persistent(_) => "a storage",
        }
    }
}

/// Maximum number of entries of a dict of attributes.
const MOST_ATTRIBUTES: usize = 64;

/// Maximum memory in bytes of an entry of a hash table, including the old table while it grows.
const HASHED: usize = 64;

/// All values of a pickle.
#[derive(Debug)]
pub(super) struct Values {
    words: Words,
    texts: Pool<String>,
    bytes: Pool<Vec<u8>>,
    globals: Vec<Global>,
    /// Indices of globals by module and name.
    places: HashMap<(ValueId, ValueId), u32>,
    /// State that `BUILD` gave to an object, by the object.
    states: HashMap<ValueId, ValueId>,
    /// All references to data outside of the pickle, with repetitions.
    persistent: Words,
    pub(super) budget: Budget,
}

impl Values {
    /// Creates an empty set of values with a memory budget.
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            words: Words::default(),
            texts: Pool::default(),
            bytes: Pool::default(),
            globals: Vec::new(),
            places: HashMap::new(),
            states: HashMap::new(),
            persistent: Words::default(),
            budget,
        }
    }

    /// Appends words; returns the value of this kind for them.
    fn add(&mut self, kind: u32, words: &[u32]) -> Result<ValueId, TorchError> {
        // Index 0 is unused, so that it can mark a list without items.
        if self.words.len() == 0 {
            self.words.push(0, &mut self.budget)?;
        }
        let place = self.place_of(self.words.len())?;
        for word in words {
            self.words.push(*word, &mut self.budget)?;
        }
        Ok(ValueId::of(kind, place))
    }

    fn place_of(&self, place: usize) -> Result<u32, TorchError> {
        u32::try_from(place).ok().filter(|place| *place < PLACE).ok_or_else(|| {
            TorchError::unsupported(
                "it describes hundreds of millions of values; save tensors alone, as model.state_dict()",
            )
        })
    }

    pub(super) fn integer(&mut self, number: i64) -> Result<ValueId, TorchError> {
        const HALF: i64 = 1 << (PLACE_BITS - 1);
        if (-HALF..HALF).contains(&number) {
            return Ok(ValueId::of(kind::SMALL, (number + HALF) as u32));
        }
        self.wide(kind::INTEGER, number.cast_unsigned())
    }

    pub(super) fn number(&mut self, number: f64) -> Result<ValueId, TorchError> {
        self.wide(kind::NUMBER, number.to_bits())
    }

    fn wide(&mut self, kind: u32, bits: u64) -> Result<ValueId, TorchError> {
        self.add(kind, &[bits as u32, (bits >> 32) as u32])
    }

    pub(super) fn text(&mut self, text: String) -> Result<ValueId, TorchError> {
        if text.is_empty() {
            return Ok(ValueId::EMPTY_TEXT);
        }
        let place = self.texts.add(text, &mut self.budget)?;
        self.add(kind::TEXT, &place)
    }

    pub(super) fn bytes(&mut self, bytes: Vec<u8>) -> Result<ValueId, TorchError> {
        let place = self.bytes.add(bytes, &mut self.budget)?;
        self.add(kind::BYTES, &place)
    }

    /// Returns an integer beyond 64 bits.
    pub(super) fn long(&mut self, bytes: Vec<u8>) -> Result<ValueId, TorchError> {
        let place = self.bytes.add(bytes, &mut self.budget)?;
        self.add(kind::LONG, &place)
    }

    /// Returns a tuple of the values behind the first `from` of a stack.
    pub(super) fn tuple(&mut self, stack: &mut Words, from: usize) -> Result<ValueId, TorchError> {
        let count = stack.len().saturating_sub(from);
        let kind = match count {
            0 => return Ok(ValueId::EMPTY_TUPLE),
            1 => kind::ONE,
            2 => kind::TWO,
            3 => kind::THREE,
            _ => kind::TUPLE,
        };
        let tuple = match kind {
            kind::TUPLE => self.add(kind, &[self.place_of(count)?])?,
            _ => self.add(kind, &[])?,
        };
        self.take_over(stack, from)?;
        Ok(tuple)
    }

    /// Returns a list without items.
    pub(super) fn list(&mut self) -> Result<ValueId, TorchError> {
        self.add(kind::LIST, &[0])
    }

    /// Returns a dict without items.
    pub(super) fn dict(&mut self) -> Result<ValueId, TorchError> {
        self.add(kind::DICT, &[0])
    }

    /// Appends the values behind the first `from` of a stack to a list or a dict.
    ///
    /// The stretches of its items form a ring: each refers to the next one, and the list to the
    /// last one.
    pub(super) fn extend(
        &mut self,
        into: ValueId,
        stack: &mut Words,
        from: usize,
    ) -> Result<(), TorchError> {
        let count = stack.len().saturating_sub(from);
        if count == 0 {
            return Ok(());
        }
        let last = self.words.get(into.place()).unwrap_or_default();
        let length = self.words.get(last as usize + 1).unwrap_or_default();
        if last != 0 && last as usize + 2 + length as usize == self.words.len() {
            self.words.set(last as usize + 1, self.place_of(length as usize + count)?);
            return self.take_over(stack, from);
        }
        let stretch = self.place_of(self.words.len())?;
        let first = match last {
            0 => stretch,
            last => self.words.get(last as usize).unwrap_or_default(),
        };
        let count = self.place_of(count)?;
        self.add(kind::LIST, &[first, count])?;
        if last != 0 {
            self.words.set(last as usize, stretch);
        }
        self.words.set(into.place(), stretch);
        self.take_over(stack, from)
    }

    /// Moves the values behind the first `from` of a stack to the end of the words.
    fn take_over(&mut self, stack: &mut Words, from: usize) -> Result<(), TorchError> {
        for at in from..stack.len() {
            self.words.push(stack.get(at).unwrap_or_default(), &mut self.budget)?;
        }
        stack.truncate(from, &mut self.budget);
        self.place_of(self.words.len()).map(drop)
    }

    /// Returns the class or function with this module and name. Equal texts give the same value.
    pub(super) fn global(&mut self, module: ValueId, name: ValueId) -> Result<ValueId, TorchError> {
        if let Some(place) = self.places.get(&(module, name)) {
            return Ok(ValueId::of(kind::GLOBAL, *place));
        }
        let (Value::Text(module_text), Value::Text(name_text)) = (self.get(module), self.get(name))
        else {
            return Err(TorchError::damaged(
                "a pickle with a name that is no text",
                "the name of a class",
            ));
        };
        let known = known(module_text, name_text);
        let place = self.place_of(self.globals.len())?;
        self.budget.take(2 * HASHED)?;
        self.globals.push(Global { module, name, known });
        self.places.insert((module, name), place);
        Ok(ValueId::of(kind::GLOBAL, place))
    }

    /// Adds the result of calling a class or a function.
    pub(super) fn call(
        &mut self,
        function: ValueId,
        arguments: ValueId,
    ) -> Result<ValueId, TorchError> {
        self.add(kind::CALL, &[function.word(), arguments.word()])
    }

    /// Adds a reference to data outside of the pickle.
    pub(super) fn outside(&mut self, id: ValueId) -> Result<ValueId, TorchError> {
        let value = self.add(kind::PERSISTENT, &[id.word()])?;
        self.persistent.push(id.word(), &mut self.budget)?;
        Ok(value)
    }

    /// Sets the state of an object, replacing an earlier one.
    pub(super) fn build(&mut self, object: ValueId, state: ValueId) -> Result<(), TorchError> {
        if matches!(object.kind(), kind::CALL | kind::DICT)
            && self.states.insert(object, state).is_none()
        {
            self.budget.take(HASHED)?;
        }
        Ok(())
    }

    /// Returns the state that `BUILD` gave to an object.
    pub(super) fn state(&self, object: ValueId) -> Option<ValueId> {
        self.states.get(&object).copied()
    }

    /// Returns the remaining budget; afterwards no more values can be added.
    pub(super) fn take_budget(&mut self) -> Budget {
        std::mem::take(&mut self.budget)
    }

    /// Returns the ids of all references to data outside the pickle, with repetitions.
    pub(super) fn outside_ids(&self) -> impl Iterator<Item = ValueId> {
        (0..self.persistent.len()).filter_map(|at| self.persistent.get(at).map(ValueId::of_word))
    }

    /// Returns a value. It exists, because only this type creates ids.
    pub(super) fn get(&self, id: ValueId) -> Value<'_> {
        let (words, place) = (&self.words, id.place());
        let word = |number: usize| words.get(place + number).unwrap_or_default();
        let bits = || u64::from(word(0)) | u64::from(word(1)) << 32;
        let kept = || -> Place { [word(0), word(1), word(2)] };
        let bytes = || self.bytes.get(kept()).unwrap_or_default();
        match id.kind() {
            kind::SPECIAL => self.special(id),
            kind::SMALL => Value::Integer(place as i64 - (1 << (PLACE_BITS - 1))),
            kind::INTEGER => Value::Integer(bits().cast_signed()),
            kind::NUMBER => Value::Number(f64::from_bits(bits())),
            kind::TEXT => Value::Text(self.texts.get(kept()).unwrap_or_default()),
            kind::BYTES => Value::Bytes(bytes()),
            kind::LONG => Value::Long(bytes()),
            kind @ (kind::ONE | kind::TWO | kind::THREE) => {
                Value::Tuple(Items::flat(words, place, (kind - kind::ONE + 1) as usize))
            }
            kind::TUPLE => Value::Tuple(Items::flat(words, place + 1, word(0) as usize)),
            kind::LIST => Value::List(Items::stretches(words, word(0) as usize)),
            kind::DICT => Value::Dict(Items::stretches(words, word(0) as usize)),
            kind::GLOBAL => self.globals.get(place).copied().map_or(Value::None, Value::Global),
            kind::CALL => Value::Call {
                function: ValueId::of_word(word(0)),
                arguments: ValueId::of_word(word(1)),
            },
            _ => Value::Persistent(ValueId::of_word(word(0))),
        }
    }

    fn special(&self, id: ValueId) -> Value<'_> {
        match id {
            ValueId::FALSE => Value::Bool(false),
            ValueId::TRUE => Value::Bool(true),
            ValueId::EMPTY_TUPLE => Value::Tuple(Items::none(&self.words)),
            ValueId::EMPTY_TEXT => Value::Text(""),
            ValueId::SET => Value::Set("a set"),
            ValueId::FROZEN_SET => Value::Set("a frozenset"),
            _ => Value::None,
        }
    }

    /// Returns the items of a tuple or a list.
    pub(super) fn items(&self, id: ValueId) -> Option<Items<'_>> {
        match self.get(id) {
            Value::Tuple(items) | Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns an integer that is 0 or more.
    pub(super) fn unsigned(&self, id: ValueId) -> Option<u64> {
        match self.get(id) {
            Value::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// Returns the text of a value, if it is one.
    pub(super) fn text_of(&self, id: ValueId) -> Option<&str> {
        match self.get(id) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the meaning of the class or function that a value names, if it is known.
    pub(super) fn known(&self, id: ValueId) -> Option<Known> {
        match self.get(id) {
            Value::Global(global) => Some(global.known),
            _ => None,
        }
    }

    /// Returns the module and the name of a class or a function.
    pub(super) fn names(&self, global: &Global) -> (&str, &str) {
        let text = |id| self.text_of(id).unwrap_or_default();
        (text(global.module), text(global.name))
    }

    /// Returns the last value of a key in a dict with few entries whose keys are texts. A dict with
    /// more entries is not a set of attributes, and might be searched again and again.
    pub(super) fn entry(&self, dict: ValueId, wanted: &str) -> Option<ValueId> {
        let Value::Dict(items) = self.get(dict) else { return None };
        let (mut items, mut found) = (items.take(2 * MOST_ATTRIBUTES), None);
        while let Some((key, value)) = items.next().zip(items.next()) {
            if self.text_of(key) == Some(wanted) {
                found = Some(value);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> (Values, Words) {
        (Values::new(Budget::of_file(0)), Words::default())
    }

    #[test]
    fn numbers_of_every_size_are_given_back() {
        let (mut values, _) = values();
        for number in [0, 1, -1, (1 << 27) - 1, 1 << 27, -(1 << 27), -(1 << 27) - 1, i64::MIN] {
            let id = values.integer(number).unwrap();
            assert!(matches!(values.get(id), Value::Integer(found) if found == number), "{number}");
        }
        let id = values.number(-0.5).unwrap();
        assert!(matches!(values.get(id), Value::Number(-0.5)));
    }

    #[test]
    fn items_of_a_list_that_grows_between_others_are_in_order() {
        let (mut values, mut stack) = values();
        let (one, two) = (values.list().unwrap(), values.list().unwrap());
        for number in 0..20 {
            for (list, times) in [(one, 1), (two, 3)] {
                for _ in 0..times {
                    let item = values.integer(number).unwrap();
                    stack.push(item.word(), &mut values.budget).unwrap();
                }
                values.extend(list, &mut stack, 0).unwrap();
                if number % 3 == 0 {
                    values.number(0.0).unwrap();
                }
            }
        }
        let numbers = |list| -> Vec<u64> {
            values.items(list).unwrap().map(|item| values.unsigned(item).unwrap()).collect()
        };
        assert_eq!(numbers(one), (0..20).collect::<Vec<_>>());
        assert_eq!(numbers(two), (0..60).map(|at| at / 3).collect::<Vec<_>>());
        assert_eq!(stack.len(), 0);
    }
}
