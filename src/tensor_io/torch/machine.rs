//! The machine that reads a pickle: a stack, a memo, and values. It runs nothing.
//!
//! Source of the operations: Python's `pickletools.py`, protocols 0 to 5. Each costs a byte of the
//! file at least and keeps one value at most, so that what is kept is a small multiple of the
//! pickle's length; strings are as long as the file has bytes for them.

use std::{collections::HashMap, sync::Arc};

use super::{
    super::error::cut,
    error::TorchError,
    input::Input,
    rebuild::{self, Outcome},
    value::{Global, Value, ValueId, Values},
};

/// The most values that are kept, and items that are copied: some hundred megabytes of them.
const MOST_VALUES: usize = 1 << 24;

/// Bytes of the longest integer that is kept.
const LONGEST_INTEGER: u64 = 1 << 10;

/// Reads one pickle, up to its end; what it describes, and all values.
///
/// # Errors
/// If the bytes are no pickle, or too long to be one of tensors.
pub(super) fn read(input: &mut Input<'_>) -> Result<(Values, ValueId), TorchError> {
    let mut machine = Machine {
        input,
        values: Values::default(),
        copied: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        let at = machine.input.position();
        let operation = machine.input.byte()?;
        if operation == b'.' {
            let root = machine.pop()?;
            return Ok((machine.values, root));
        }
        machine.step(operation, at)?;
    }
}

struct Machine<'a, 'i> {
    input: &'a mut Input<'i>,
    values: Values,
    /// Items of containers that were copied, beyond those that the file has itself.
    copied: usize,
    stack: Vec<ValueId>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: HashMap<u64, ValueId>,
}

fn damaged(found: &str, expected: &str) -> TorchError {
    TorchError::damaged(format!("a pickle with {found}"), expected)
}

impl Machine<'_, '_> {
    /// Does one operation, other than the end.
    fn step(&mut self, operation: u8, at: u64) -> Result<(), TorchError> {
        match operation {
            // Which protocol it is, and how long its frames are: nothing to do.
            0x80 => drop(self.input.byte()?),
            0x95 => drop(self.input.array::<8>()?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'N' => self.push(Value::None)?,
            0x88 => self.push(Value::Bool(true))?,
            0x89 => self.push(Value::Bool(false))?,
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
                self.push(Value::Bytes(bytes.into()))?;
            }
            b')' | b't' | 0x85..=0x87 | b']' | b'l' | b'}' | b'd' | 0x8f | 0x91 => {
                self.container(operation)?;
            }
            b'a' | b'e' | b's' | b'u' | 0x90 => self.fill(operation)?,
            b'c' | 0x93 | b'R' | 0x81 | 0x92 | b'b' | b'i' | b'o' => self.describe(operation)?,
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.remember(operation)?,
            b'Q' => {
                let id = self.pop()?;
                let outcome = rebuild::persistent(&self.values, id)?;
                self.put(outcome)?;
            }
            b'P' => {
                return Err(TorchError::unsupported(
                    "its storages have ids in text, which only a pickle of protocol 0 has; save it again",
                ));
            }
            0x82..=0x84 => {
                return Err(TorchError::unsupported(
                    "its pickle uses codes that only the program that wrote it knows; save model.state_dict()",
                ));
            }
            0x97 | 0x98 => {
                return Err(TorchError::unsupported(
                    "its pickle has buffers outside of it; save it with torch.save",
                ));
            }
            _ => {
                let found = format!("the operation {operation:#04x} at byte {at}");
                return Err(damaged(&found, "operations of the protocols 0 to 5"));
            }
        }
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<(), TorchError> {
        let most = MOST_VALUES.saturating_sub(self.copied);
        let id = self.values.add(value, most).ok_or_else(|| {
            TorchError::unsupported(format!(
                "it describes more than {MOST_VALUES} values; save tensors alone, as model.state_dict()"
            ))
        })?;
        self.stack.push(id);
        Ok(())
    }

    fn put(&mut self, outcome: Outcome) -> Result<(), TorchError> {
        match outcome {
            Outcome::Same(id) => self.stack.push(id),
            Outcome::New(value) => {
                if let Value::Dict(pairs) = &value {
                    self.copied = self.copied.saturating_add(pairs.len());
                }
                self.push(value)?;
            }
        }
        Ok(())
    }

    fn top(&self) -> Result<ValueId, TorchError> {
        let floor = self.marks.last().copied().unwrap_or_default();
        let top = self.stack.last().copied().filter(|_| self.stack.len() > floor);
        top.ok_or_else(|| damaged("an operation that finds nothing", "a value for it"))
    }

    fn pop(&mut self) -> Result<ValueId, TorchError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// What was put on the stack since the last mark, which goes.
    fn pop_to_mark(&mut self) -> Result<Vec<ValueId>, TorchError> {
        let mark = self.marks.pop().ok_or_else(|| damaged("no mark", "a mark before its items"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn number(&mut self, operation: u8) -> Result<Value, TorchError> {
        Ok(match operation {
            b'J' => Value::Integer(i32::from_le_bytes(self.input.array()?).into()),
            b'K' => Value::Integer(self.input.byte()?.into()),
            b'M' => Value::Integer(u16::from_le_bytes(self.input.array()?).into()),
            b'G' => Value::Number(f64::from_be_bytes(self.input.array()?)),
            0x8a => {
                let length = self.input.byte()?;
                self.long(length.into())?
            }
            0x8b => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.long(length.into())?
            }
            _ => {
                let line = self.input.line()?;
                let line = String::from_utf8_lossy(&line);
                let text = line.trim();
                let number = match operation {
                    b'F' => text.parse().ok().map(Value::Number),
                    b'I' if text == "01" => Some(Value::Bool(true)),
                    b'I' if text == "00" => Some(Value::Bool(false)),
                    _ => text.trim_end_matches('L').parse().ok().map(Value::Integer),
                };
                number.ok_or_else(|| damaged("text that is no number", "a number"))?
            }
        })
    }

    /// An integer of that many bytes.
    fn long(&mut self, length: u64) -> Result<Value, TorchError> {
        if length > LONGEST_INTEGER {
            let found = format!("an integer of {length} bytes");
            return Err(damaged(&found, "integers of at most 1024 bytes"));
        }
        let bytes = self.input.bytes(length)?;
        let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
        if bytes.len() > 8 {
            return Ok(Value::Long(bytes.into()));
        }
        let mut word = [if negative { 0xff } else { 0 }; 8];
        word.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        Ok(Value::Integer(i64::from_le_bytes(word)))
    }

    /// A text, or bytes of an older Python that are none.
    fn text(&mut self, operation: u8) -> Result<Value, TorchError> {
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
            // In quotes, and with escapes that no name of a tensor needs.
            Ok(text) if operation == b'S' => {
                let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
                let text = quoted('\'').or_else(|| quoted('"'));
                let text = text.filter(|text| !text.contains('\\'));
                text.map(|text| Value::Text(text.into())).ok_or_else(|| {
                    TorchError::unsupported("its pickle has a text with escapes; save it again")
                })
            }
            Ok(text) => Ok(Value::Text(text.into())),
            Err(error) if matches!(operation, b'T' | b'U') => {
                Ok(Value::Bytes(error.into_bytes().into()))
            }
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

    /// Makes a container, of nothing or of what lies on the stack.
    fn container(&mut self, operation: u8) -> Result<(), TorchError> {
        let value = match operation {
            b')' => Value::Tuple(Box::default()),
            b']' => Value::List(Vec::new()),
            b'}' => Value::Dict(Vec::new()),
            0x8f => Value::Object(Arc::from("set")),
            b't' => Value::Tuple(self.pop_to_mark()?.into()),
            b'l' => Value::List(self.pop_to_mark()?),
            b'd' => Value::Dict(pairs(&self.pop_to_mark()?)?),
            0x91 => {
                self.pop_to_mark()?;
                Value::Object(Arc::from("frozenset"))
            }
            _ => {
                let mut items = Vec::with_capacity(3);
                for _ in 0x85..=operation {
                    items.push(self.pop()?);
                }
                items.reverse();
                Value::Tuple(items.into())
            }
        };
        self.push(value)
    }

    /// Puts what lies on the stack into the container below it. Of what an object gets nothing is
    /// kept.
    fn fill(&mut self, operation: u8) -> Result<(), TorchError> {
        let items = match operation {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.pop_to_mark()?,
        };
        let into = self.top()?;
        match (operation, self.values.get_mut(into)) {
            (b'a' | b'e', Some(Value::List(list))) => list.extend(items),
            (b's' | b'u', Some(Value::Dict(dict))) => dict.extend(pairs(&items)?),
            (_, Some(Value::Object(_))) => {}
            _ => {
                let found = format!("items for {}", self.values.get(into).describe());
                return Err(damaged(&found, "items for a list, a dict or a set"));
            }
        }
        Ok(())
    }

    /// Names classes and functions, and says what they would give.
    fn describe(&mut self, operation: u8) -> Result<(), TorchError> {
        match operation {
            b'c' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                self.name(&String::from_utf8_lossy(&module), &String::from_utf8_lossy(&name))
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |id| match self.values.get(id) {
                    Value::Text(text) => Some(Arc::clone(text)),
                    _ => None,
                };
                match text(module).zip(text(name)) {
                    Some((module, name)) => self.name(&module, &name),
                    None => Err(damaged("a name that is no text", "the name of a class")),
                }
            }
            b'R' | 0x81 | 0x92 => {
                if operation == 0x92 {
                    // Arguments by name: no class that is known takes any.
                    self.pop()?;
                }
                let (arguments, class) = (self.pop()?, self.pop()?);
                self.call(class, arguments)
            }
            // The state of an object: attributes, of which none is kept. The metadata of a state
            // dict are such.
            b'b' => {
                self.pop()?;
                self.top().map(drop)
            }
            b'i' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                self.pop_to_mark()?;
                let (module, name) =
                    (String::from_utf8_lossy(&module), String::from_utf8_lossy(&name));
                self.push(Value::Object(Arc::from(cut(&format!("{module}.{name}")))))
            }
            _ => {
                let items = self.pop_to_mark()?;
                let class = items.first().map(|class| self.values.get(*class));
                let name = match class {
                    Some(Value::Global(Global::Other(name))) => Arc::clone(name),
                    _ => return Err(damaged("an object without a class", "the name of a class")),
                };
                self.push(Value::Object(name))
            }
        }
    }

    fn name(&mut self, module: &str, name: &str) -> Result<(), TorchError> {
        self.push(Value::Global(rebuild::global(module, name)))
    }

    fn call(&mut self, class: ValueId, arguments: ValueId) -> Result<(), TorchError> {
        // What names a class is small.
        let class = self.values.get(class);
        let outcome = rebuild::call(&self.values, class, arguments)?;
        self.put(outcome)
    }

    /// Keeps the top of the stack under a number, or brings back what is kept.
    fn remember(&mut self, operation: u8) -> Result<(), TorchError> {
        let number = match operation {
            b'q' | b'h' => self.input.byte()?.into(),
            b'r' | b'j' => u32::from_le_bytes(self.input.array()?).into(),
            0x94 => self.memo.len() as u64,
            _ => {
                let line = self.input.line()?;
                let number = std::str::from_utf8(&line).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| damaged("no number of the memo", "a number"))?
            }
        };
        if matches!(operation, b'p' | b'q' | b'r' | 0x94) {
            let top = self.top()?;
            if self.memo.len() >= MOST_VALUES {
                return Err(TorchError::unsupported(format!(
                    "it keeps more than {MOST_VALUES} values in mind; save tensors alone, as model.state_dict()"
                )));
            }
            self.memo.insert(number, top);
            return Ok(());
        }
        let kept = self.memo.get(&number).copied();
        let kept = kept.ok_or_else(|| {
            damaged(&format!("the number {number}, which nothing has"), "what was kept before")
        })?;
        self.stack.push(kept);
        Ok(())
    }
}

/// Keys and values that lie in turns.
fn pairs(items: &[ValueId]) -> Result<Vec<(ValueId, ValueId)>, TorchError> {
    let (pairs, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(damaged("a key without a value", "keys and values"));
    }
    Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
}
