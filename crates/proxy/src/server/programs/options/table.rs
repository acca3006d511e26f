//! The known fields of `xla.DebugOptions`, and their permitted values.

use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
    sync::LazyLock,
};

use super::wire::{Value, packed};

/// The table as text, which explains itself.
const TEXT: &str = include_str!("debug_options.txt");

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(TEXT));

/// Permitted values of a field of the compiler's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    /// A number with a name.
    Enum,
    Float,
    Double,
    Text,
    Message,
    /// Numbers, in one field or in several.
    List,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "bool" => Self::Bool,
            "int" => Self::Int,
            "enum" => Self::Enum,
            "float" => Self::Float,
            "double" => Self::Double,
            "text" => Self::Text,
            "message" => Self::Message,
            "list" => Self::List,
            _ => return None,
        })
    }
}

/// One or several permitted values.
#[derive(Clone, Debug, PartialEq)]
enum Passing {
    Numbers(RangeInclusive<i64>),
    Number(f64),
    Text(&'static str),
    Message(Vec<u8>),
}

/// Treatment of values that are not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    Refused,
    /// Omitted without an error, because every client sends them.
    LeftOut,
    /// Refused, and the operator cannot allow them either.
    NeverAllowed,
}

/// A field of `xla.DebugOptions`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DebugOption {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) otherwise: Otherwise,
    values: Vec<Passing>,
    /// The permitted values as text of the table.
    words: &'static str,
}

impl DebugOption {
    /// Parses a line: number, name, kind, values.
    fn read(line: &'static str) -> Option<Self> {
        let mut words = line.split(' ');
        let number = words.next()?.parse().ok()?;
        let (name, kind) = (words.next()?, Kind::of(words.next()?)?);
        let all = words.next()?;
        let mut option = Self {
            number,
            name,
            kind,
            otherwise: Otherwise::Refused,
            values: Vec::new(),
            words: all,
        };
        for value in all.split(',') {
            match value {
                "-" => {}
                "left-out" => option.otherwise = Otherwise::LeftOut,
                "never" => option.otherwise = Otherwise::NeverAllowed,
                value => option.values.push(passing(kind, value)?),
            }
        }
        words.next().is_none().then_some(option)
    }

    /// Returns true if the value is permitted unchanged.
    pub(super) fn takes(&self, value: Value<'_>) -> bool {
        match (self.kind, value) {
            (Kind::Bool | Kind::Int | Kind::Enum | Kind::List, Value::Number(number)) => {
                self.takes_number(number.cast_signed())
            }
            (Kind::List, Value::Bytes(bytes)) => packed(bytes)
                .is_some_and(|numbers| numbers.iter().all(|number| self.takes_number(*number))),
            (Kind::Float, Value::Fixed32(bytes)) => {
                self.takes_fraction(f32::from_le_bytes(bytes).into())
            }
            (Kind::Double, Value::Fixed64(bytes)) => self.takes_fraction(f64::from_le_bytes(bytes)),
            (Kind::Text, Value::Bytes(bytes)) => {
                std::str::from_utf8(bytes).is_ok_and(|text| self.takes_text(text))
            }
            (Kind::Message, Value::Bytes(bytes)) => {
                bytes.is_empty()
                    || self
                        .values
                        .iter()
                        .any(|value| matches!(value, Passing::Message(known) if known == bytes))
            }
            _ => false,
        }
    }

    pub(super) fn takes_number(&self, number: i64) -> bool {
        let within =
            |value: &Passing| matches!(value, Passing::Numbers(range) if range.contains(&number));
        number == 0 || self.values.iter().any(within)
    }

    pub(super) fn takes_fraction(&self, number: f64) -> bool {
        let is = |value: &Passing| matches!(value, Passing::Number(known) if known.to_bits() == number.to_bits());
        number.to_bits() == 0 || self.values.iter().any(is)
    }

    pub(super) fn takes_text(&self, text: &str) -> bool {
        let is = |value: &Passing| matches!(value, Passing::Text(known) if *known == text);
        text.is_empty() || self.values.iter().any(is)
    }

    /// Returns the text of the permitted values.
    pub(super) fn expected(&self) -> String {
        match self.words {
            "-" | "never" | "left-out" => "nothing".to_owned(),
            _ if self.kind == Kind::Message => "what clients send unasked".to_owned(),
            words => words.replace("..", " to ").replace(',', ", "),
        }
    }
}

/// Parses a permitted value.
fn passing(kind: Kind, text: &'static str) -> Option<Passing> {
    Some(match kind {
        Kind::Bool | Kind::Int | Kind::Enum | Kind::List => {
            let (first, last) = text.split_once("..").unwrap_or((text, text));
            Passing::Numbers(first.parse().ok()?..=last.parse().ok()?)
        }
        // A float is compared as a double.
        Kind::Float => Passing::Number(text.parse::<f32>().ok()?.into()),
        Kind::Double => Passing::Number(text.parse().ok()?),
        Kind::Text => Passing::Text(text),
        Kind::Message => {
            let digits = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
            let bytes = digits.map(|pair| u8::from_str_radix(pair?, 16).ok());
            Passing::Message(bytes.collect::<Option<_>>()?)
        }
    })
}

/// All options, by number and by name.
#[derive(Debug, Default)]
struct Table {
    by_number: BTreeMap<u32, DebugOption>,
    numbers: HashMap<&'static str, u32>,
}

impl Table {
    /// Parses the table. Invalid lines are skipped; a test asserts that there are none.
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        for option in lines(text).filter_map(DebugOption::read) {
            table.numbers.insert(option.name, option.number);
            table.by_number.insert(option.number, option);
        }
        table
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the option with this number, if it is known.
pub(super) fn by_number(number: u32) -> Option<&'static DebugOption> {
    TABLE.by_number.get(&number)
}

/// Returns the option with this name, if it is known.
pub(super) fn by_name(name: &str) -> Option<&'static DebugOption> {
    by_number(*TABLE.numbers.get(name)?)
}

/// Returns all known options, by number.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static DebugOption> {
    TABLE.by_number.values()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_every_line_once() {
        let read: Vec<_> = lines(TEXT).map(|line| DebugOption::read(line).expect(line)).collect();
        assert_eq!(read.len(), TABLE.by_number.len());
        assert_eq!(read.len(), TABLE.numbers.len());
        assert!(read.len() > 370, "{}", read.len());
    }

    #[test]
    fn table_lets_no_path_and_no_command_line_pass() {
        for option in all() {
            let of_files = ["_to", "_file", "_path", "_filename", "_dir", "_flags", "_directory"];
            if of_files.iter().any(|end| option.name.ends_with(end)) {
                assert!(!option.takes_text("a") && !option.takes_text("/a"), "{}", option.name);
            }
        }
        for name in ["xla_backend_extra_options", "xla_gpu_ptx_compiler_extra_flags"] {
            let option = by_name(name).unwrap();
            assert_eq!(option.otherwise, Otherwise::NeverAllowed, "{name}");
            assert!(option.values.is_empty(), "{name}");
        }
    }
}
