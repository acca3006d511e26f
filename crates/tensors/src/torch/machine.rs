//! Reader of pickles: a stack, a memo and values. It runs nothing.
//!
//! Source of the operations: Python's `pickletools.py`, protocols 0 to 5. Each takes at least one
//! byte of the file and stores a few words at most; strings are at most as long as the file.

use std::collections::HashMap;

use super::{
    budget::Budget,
    error::TorchError,
    globals::Known,
    input::Input,
    value::{Value, ValueId, Values},
    words::Words,
};

/// Maximum size in bytes of an integer that is kept.
const LONGEST_INTEGER: u64 = 1 << 10;

/// Maximum gap in the memo's numbers before they are stored in a hash table.
const MOST_LEFT_OUT: u64 = 16;

/// Memory of an entry of that table in bytes.
const HASHED: usize = 80;

/// Reads one pickle to its end; returns its root and all values, which keep the budget.
///
/// # Errors
/// If the bytes are not a pickle, or the values exceed the budget.
pub(super) fn read(input: &mut Input<'_>, budget: Budget) -> Result<(Values, ValueId), TorchError> {
    let mut machine = Machine {
        input,
        values: Values::new(budget),
        stack: Words::default(),
        marks: Words::default(),
        memo: Words::default(),
        far_memo: HashMap::new(),
    };
    loop {
        let at = machine.input.position();
        let operation = machine.input.byte()?;
        if operation == b'.' {
            let root = machine.pop()?;
            return Ok((machine.into_values(), root));
        }
        machine.step(operation, at)?;
    }
}

struct Machine<'a, 'i> {
    input: &'a mut Input<'i>,
    values: Values,
    stack: Words,
    /// Height of the stack at each mark.
    marks: Words,
    /// Memoized values with consecutive numbers from 0.
    memo: Words,
    /// Memoized values with distant numbers.
    far_memo: HashMap<u64, ValueId>,
}

fn damaged(found: &str, expected: &str) -> TorchError {
    TorchError::damaged(format!("a pickle with {found}"), expected)
}

impl Machine<'_, '_> {
    /// Returns the values and frees the other memory.
    fn into_values(mut self) -> Values {
        for words in [&mut self.stack, &mut self.marks, &mut self.memo] {
            words.truncate(0, &mut self.values.budget);
        }
        self.values.budget.give_back(self.far_memo.len() * HASHED);
        self.values
    }

    /// Executes one operation other than the end.
    fn step(&mut self, operation: u8, at: u64) -> Result<(), TorchError> {
        match operation {
            // The protocol's number and frame lengths need no action.
            0x80 => drop(self.input.byte()?),
            0x95 => drop(self.input.array::<8>()?),
            b'(' => {
                let height = u32::try_from(self.stack.len()).unwrap_or(u32::MAX);
                self.marks.push(height, &mut self.values.budget)?;
            }
            b'0' => drop(self.pop()?),
            b'1' => {
                let mark = self.mark()?;
                self.stack.truncate(mark, &mut self.values.budget);
            }
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            b'N' => self.push(ValueId::NONE)?,
            0x88 => self.push(ValueId::TRUE)?,
            0x89 => self.push(ValueId::FALSE)?,
            b'J' | b'K' | b'M' | b'I' | b'L' | 0x8a | 0x8b | b'F' | b'G' => {
                let number = self.number(operation)?;
                self.push(number)?;
            }
            b'S' | b'T' | b'U' | b'V' | b'X' | 0x8c | 0x8d => {
                let text = self.text(operation)?;
                self.push(text)?;
            }
            b'B' | b'C' | 0x8e | 0x96 => {
                let bytes = self.bytes(operation)?;
                let bytes = self.values.bytes(bytes)?;
                self.push(bytes)?;
            }
            b')' | b't' | 0x85..=0x87 | b']' | b'l' | b'}' | b'd' | 0x8f | 0x91 => {
                self.container(operation)?;
            }
            b'a' | b'e' | b's' | b'u' | 0x90 => self.fill(operation)?,
            b'c' | 0x93 | b'R' | 0x81 | 0x92 | b'b' | b'i' | b'o' => self.describe(operation)?,
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.remember(operation)?,
            b'Q' => {
                let id = self.pop()?;
                let outside = self.values.outside(id)?;
                self.push(outside)?;
            }
            _ => return Err(refused_operation(operation, at)),
        }
        Ok(())
    }

    fn push(&mut self, value: ValueId) -> Result<(), TorchError> {
        self.stack.push(value.word(), &mut self.values.budget)
    }

    /// Returns the height of the stack at the last mark, below which values belong to outer
    /// containers.
    fn floor(&self) -> usize {
        let last = self.marks.len().checked_sub(1).and_then(|last| self.marks.get(last));
        last.unwrap_or_default() as usize
    }

    fn top(&self) -> Result<ValueId, TorchError> {
        let last = self.stack.len().checked_sub(1).filter(|last| *last >= self.floor());
        let top = last.and_then(|last| self.stack.get(last)).map(ValueId::of_word);
        top.ok_or_else(|| damaged("an operation that finds nothing", "a value for it"))
    }

    fn pop(&mut self) -> Result<ValueId, TorchError> {
        let top = self.top()?;
        self.stack.pop(&mut self.values.budget);
        Ok(top)
    }

    /// Removes the last mark and returns its height of the stack.
    fn mark(&mut self) -> Result<usize, TorchError> {
        let mark = self.marks.pop(&mut self.values.budget);
        mark.map(|mark| mark as usize).ok_or_else(|| damaged("no mark", "a mark before its items"))
    }

    fn number(&mut self, operation: u8) -> Result<ValueId, TorchError> {
        match operation {
            b'J' => {
                let number = i32::from_le_bytes(self.input.array()?);
                self.values.integer(number.into())
            }
            b'K' => {
                let number = self.input.byte()?;
                self.values.integer(number.into())
            }
            b'M' => {
                let number = u16::from_le_bytes(self.input.array()?);
                self.values.integer(number.into())
            }
            b'G' => {
                let number = f64::from_be_bytes(self.input.array()?);
                self.values.number(number)
            }
            0x8a => {
                let length = self.input.byte()?;
                self.long(length.into())
            }
            0x8b => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.long(length.into())
            }
            _ => self.number_in_text(operation),
        }
    }

    fn number_in_text(&mut self, operation: u8) -> Result<ValueId, TorchError> {
        let line = self.input.line()?;
        let line = String::from_utf8_lossy(&line);
        let text = line.trim();
        let wrong = || damaged("text that is no number", "a number");
        match operation {
            b'F' => self.values.number(text.parse().map_err(|_| wrong())?),
            b'I' if text == "01" => Ok(ValueId::TRUE),
            b'I' if text == "00" => Ok(ValueId::FALSE),
            _ => {
                let number = text.trim_end_matches('L').parse().map_err(|_| wrong())?;
                self.values.integer(number)
            }
        }
    }

    /// Reads an integer of `length` bytes.
    fn long(&mut self, length: u64) -> Result<ValueId, TorchError> {
        if length > LONGEST_INTEGER {
            let found = format!("an integer of {length} bytes");
            return Err(damaged(&found, "integers of at most 1024 bytes"));
        }
        let bytes = self.input.bytes(length)?;
        let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
        if bytes.len() > 8 {
            return self.values.long(bytes);
        }
        let mut word = [if negative { 0xff } else { 0 }; 8];
        word.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        self.values.integer(i64::from_le_bytes(word))
    }

    /// Reads a text, or a Python 2 string that is not valid text.
    fn text(&mut self, operation: u8) -> Result<ValueId, TorchError> {
        let bytes = match operation {
            b'S' | b'V' => self.input.line()?,
            b'U' | 0x8c => {
                let length = self.input.byte()?;
                self.input.bytes(length.into())?
            }
            b'T' | b'X' => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.input.bytes(length.into())?
            }
            _ => {
                let length = u64::from_le_bytes(self.input.array()?);
                self.input.bytes(length)?
            }
        };
        match String::from_utf8(bytes) {
            // Quoted, with escapes that names of tensors do not need.
            Ok(text) if operation == b'S' => {
                let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
                let text = quoted('\'').or_else(|| quoted('"'));
                let text = text.filter(|text| !text.contains('\\')).ok_or_else(|| {
                    TorchError::unsupported("its pickle has a text with escapes; save it again")
                })?;
                self.values.text(text.to_owned())
            }
            Ok(text) => self.values.text(text),
            Err(error) if matches!(operation, b'T' | b'U') => self.values.bytes(error.into_bytes()),
            Err(_) => Err(damaged("text that is not UTF-8", "UTF-8")),
        }
    }

    fn bytes(&mut self, operation: u8) -> Result<Vec<u8>, TorchError> {
        let length = match operation {
            b'C' => self.input.byte()?.into(),
            b'B' => u32::from_le_bytes(self.input.array()?).into(),
            _ => u64::from_le_bytes(self.input.array()?),
        };
        self.input.bytes(length)
    }

    /// Creates a container, empty or from values of the stack.
    fn container(&mut self, operation: u8) -> Result<(), TorchError> {
        let value = match operation {
            b')' => ValueId::EMPTY_TUPLE,
            b']' => self.values.list()?,
            b'}' => self.values.dict()?,
            0x8f => ValueId::SET,
            0x91 => {
                let mark = self.mark()?;
                self.stack.truncate(mark, &mut self.values.budget);
                ValueId::FROZEN_SET
            }
            b't' => {
                let mark = self.mark()?;
                self.values.tuple(&mut self.stack, mark)?
            }
            b'l' => {
                let mark = self.mark()?;
                let list = self.values.list()?;
                self.values.extend(list, &mut self.stack, mark)?;
                list
            }
            b'd' => {
                let mark = self.mark()?;
                self.check_pairs(mark)?;
                let dict = self.values.dict()?;
                self.values.extend(dict, &mut self.stack, mark)?;
                dict
            }
            _ => {
                let from = self.below(usize::from(operation - 0x84))?;
                self.values.tuple(&mut self.stack, from)?
            }
        };
        self.push(value)
    }

    /// Returns the height of the stack below its last values, which must be after the last mark.
    fn below(&self, count: usize) -> Result<usize, TorchError> {
        let from = self.stack.len().checked_sub(count).filter(|from| *from >= self.floor());
        from.ok_or_else(|| damaged("an operation that finds nothing", "values for it"))
    }

    /// Returns an error unless there are as many keys as values above a height of the stack.
    fn check_pairs(&self, from: usize) -> Result<(), TorchError> {
        match self.stack.len().saturating_sub(from) % 2 {
            0 => Ok(()),
            _ => Err(damaged("a key without a value", "keys and values")),
        }
    }

    /// Adds values of the stack to the container below them. Values that are added to an object are
    /// dropped.
    fn fill(&mut self, operation: u8) -> Result<(), TorchError> {
        let from = match operation {
            b'a' => self.below(1)?,
            b's' => self.below(2)?,
            _ => self.mark()?,
        };
        let into = from.checked_sub(1).filter(|into| *into >= self.floor());
        let into = into.and_then(|into| self.stack.get(into)).map(ValueId::of_word);
        let into = into.ok_or_else(|| damaged("items for nothing", "a container for them"))?;
        match (operation, self.values.get(into)) {
            (b'a' | b'e', Value::List(_)) => self.values.extend(into, &mut self.stack, from),
            (b's' | b'u', Value::Dict(_)) => {
                self.check_pairs(from)?;
                self.values.extend(into, &mut self.stack, from)
            }
            (_, Value::Call { .. } | Value::Set(_)) => {
                self.stack.truncate(from, &mut self.values.budget);
                Ok(())
            }
            (_, other) => {
                let found = format!("items for {}", other.type_name());
                Err(damaged(&found, "items for a list, a dict or a set"))
            }
        }
    }

    /// Pushes names of classes and functions, and descriptions of their results.
    fn describe(&mut self, operation: u8) -> Result<(), TorchError> {
        match operation {
            b'c' => {
                let global = self.global_in_lines()?;
                self.push(global)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let global = self.values.global(module, name)?;
                self.push(global)
            }
            b'R' | 0x81 | 0x92 => {
                if operation == 0x92 {
                    // Keyword arguments: no known class takes any.
                    self.pop()?;
                }
                let (arguments, class) = (self.pop()?, self.pop()?);
                self.call(class, arguments)
            }
            b'b' => {
                let state = self.pop()?;
                let object = self.top()?;
                self.values.build(object, state)
            }
            b'i' => {
                let global = self.global_in_lines()?;
                let mark = self.mark()?;
                let arguments = self.values.tuple(&mut self.stack, mark)?;
                self.call(global, arguments)
            }
            _ => {
                let mark = self.mark()?;
                let class = self.stack.get(mark).map(ValueId::of_word);
                let class = class.filter(|class| self.values.known(*class).is_some());
                let class = class
                    .ok_or_else(|| damaged("an object without a class", "the name of a class"))?;
                let arguments = self.values.tuple(&mut self.stack, mark + 1)?;
                self.stack.truncate(mark, &mut self.values.budget);
                self.call(class, arguments)
            }
        }
    }

    fn global_in_lines(&mut self) -> Result<ValueId, TorchError> {
        let mut line = || -> Result<ValueId, TorchError> {
            let line = self.input.line()?;
            let line = String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            self.values.text(line)
        };
        let (module, name) = (line()?, line()?);
        self.values.global(module, name)
    }

    /// Pushes the description of a call of a class or a function. Containers that are filled
    /// afterwards correspond to the objects that Python would create.
    fn call(&mut self, function: ValueId, arguments: ValueId) -> Result<(), TorchError> {
        if !matches!(
            self.values.get(function),
            Value::Global(_) | Value::Call { .. } | Value::Persistent(_)
        ) {
            let found = self.values.get(function).type_name();
            return Err(TorchError::damaged(found, "a class or a function"));
        }
        let Value::Tuple(items) = self.values.get(arguments) else {
            let found = self.values.get(arguments).type_name();
            return Err(TorchError::damaged(found, "a tuple of arguments"));
        };
        let last = items.take(MOST_LEFT_OUT as usize).last();
        let value = match (self.values.known(function), last.map(|last| self.values.get(last))) {
            (Some(Known::Dict), Some(Value::Dict(_))) => last.unwrap_or(ValueId::NONE),
            // Pairs, which are read when the dict is visited.
            (Some(Known::Dict), Some(Value::List(_))) => self.values.call(function, arguments)?,
            (Some(Known::Dict), _) => self.values.dict()?,
            (Some(Known::Size), Some(Value::Tuple(_) | Value::List(_))) => {
                last.unwrap_or(ValueId::EMPTY_TUPLE)
            }
            (Some(Known::Size), _) => ValueId::EMPTY_TUPLE,
            _ => self.values.call(function, arguments)?,
        };
        self.push(value)
    }

    /// Stores the top of the stack in the memo, or pushes a stored value.
    fn remember(&mut self, operation: u8) -> Result<(), TorchError> {
        let number = match operation {
            b'q' | b'h' => self.input.byte()?.into(),
            b'r' | b'j' => u32::from_le_bytes(self.input.array()?).into(),
            0x94 => (self.memo.len() + self.far_memo.len()) as u64,
            _ => {
                let line = self.input.line()?;
                let number = std::str::from_utf8(&line).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| damaged("no number of the memo", "a number"))?
            }
        };
        if matches!(operation, b'p' | b'q' | b'r' | 0x94) {
            let top = self.top()?;
            return self.keep(number, top);
        }
        let near = usize::try_from(number).ok().and_then(|number| self.memo.get(number));
        let kept = near.map(ValueId::of_word).filter(|kept| *kept != ValueId::MISSING);
        let kept = kept.or_else(|| self.far_memo.get(&number).copied()).ok_or_else(|| {
            damaged(&format!("the number {number}, which nothing has"), "what was kept before")
        })?;
        self.push(kept)
    }

    fn keep(&mut self, number: u64, value: ValueId) -> Result<(), TorchError> {
        let budget = &mut self.values.budget;
        let length = self.memo.len() as u64;
        if number >= length.saturating_add(MOST_LEFT_OUT) {
            if self.far_memo.insert(number, value).is_none() {
                budget.take(HASHED)?;
            }
            return Ok(());
        }
        for _ in length..=number {
            self.memo.push(ValueId::MISSING.word(), budget)?;
        }
        self.memo.set(number as usize, value.word());
        Ok(())
    }
}

/// Returns the error for an unsupported operation.
fn refused_operation(operation: u8, at: u64) -> TorchError {
    let reason = match operation {
        b'P' => {
            "its storages have ids in text, which only a pickle of protocol 0 has; save it again"
        }
        0x82..=0x84 => {
            "its pickle uses codes that only the program that wrote it knows; save model.state_dict()"
        }
        0x97 | 0x98 => "its pickle has buffers outside of it; save it with torch.save",
        _ => {
            let found = format!("the operation {operation:#04x} at byte {at}");
            return damaged(&found, "operations of the protocols 0 to 5");
        }
    };
    TorchError::unsupported(reason)
}
