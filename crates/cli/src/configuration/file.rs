//! Parser of `serdes.toml`, which records the line of each value.

use std::{collections::BTreeMap, fs, path::Path};

use serdes_check::{Rule, report::Level};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::key::{Form, Key, LEVELS};
use crate::{
    commands::nearest::nearest,
    failure::Failure,
    terminal::{shown, shown_path},
};

/// Maximum size of the file in bytes.
const LONGEST: u64 = 1 << 20;

/// A value of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Texts(Vec<String>),
    Flag(bool),
}

/// A value with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

/// Contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) check: BTreeMap<Key, Placed<Value>>,
    /// The level of each rule.
    pub(super) levels: BTreeMap<String, Placed<Level>>,
}

impl Content {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |words: &dyn std::fmt::Display| {
            Failure::new(format_args!("cannot read {}: {words}", shown_path(path)))
        };
        let size = fs::metadata(path).map_err(|error| failed(&error))?.len();
        if size > LONGEST {
            return Err(failed(&"it is longer than a configuration is (1 MiB)"));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        Self::parse(&text).map_err(|error| {
            let SyntaxError { line, message } = error;
            Failure::new(format_args!("{}:{line}: {message}", shown_path(path)))
        })
    }

    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let reader = Reader { text };
        let table = DeTable::parse(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            reader.error(start, error.message())
        })?;
        let mut content = Self::default();
        for (key, value) in table.get_ref() {
            if key.get_ref() != "check" {
                return Err(reader.unknown(key, "at the top", &["check"]));
            }
            reader.check(value, &mut content)?;
        }
        Ok(content)
    }
}

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    line: usize,
    message: String,
}

/// The parser's input.
struct Reader<'t> {
    text: &'t str,
}

type KeyOf<'t> = Spanned<std::borrow::Cow<'t, str>>;

impl Reader<'_> {
    fn line(&self, start: usize) -> usize {
        let before = self.text.as_bytes().get(..start).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn error(&self, start: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line(start), message: message.into() }
    }

    /// Returns the error for an unknown key, with the one that was probably meant.
    fn unknown(&self, key: &KeyOf<'_>, place: &str, known: &[&str]) -> SyntaxError {
        let found = key.get_ref();
        let hint = match nearest(found, known.iter().copied()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("known are {}", known.join(", ")),
        };
        let found = shown(found).to_string();
        self.error(key.span().start, format!("unknown key {found:?} {place}; {hint}"))
    }

    fn table<'v, 't>(
        &self,
        value: &'v Spanned<DeValue<'t>>,
        name: &str,
    ) -> Result<&'v DeTable<'t>, SyntaxError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            other => Err(self.wrong(value, name, "a table", other)),
        }
    }

    fn wrong(
        &self,
        at: &Spanned<DeValue<'_>>,
        name: &str,
        expected: &str,
        found: &DeValue<'_>,
    ) -> SyntaxError {
        let found = match found {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(at.span().start, format!("{name} is {found}; expected {expected}"))
    }

    fn check(
        &self,
        value: &Spanned<DeValue<'_>>,
        content: &mut Content,
    ) -> Result<(), SyntaxError> {
        for (name, value) in self.table(value, "check")? {
            if name.get_ref() == LEVELS {
                self.levels(value, content)?;
                continue;
            }
            let Some(key) = Key::ALL.into_iter().find(|key| key.name() == name.get_ref()) else {
                let mut known: Vec<&str> = Key::ALL.map(Key::name).to_vec();
                known.push(LEVELS);
                return Err(self.unknown(name, "in [check]", &known));
            };
            let line = self.line(name.span().start);
            content.check.insert(key, Placed { value: self.value(key, value)?, line });
        }
        Ok(())
    }

    fn value(&self, key: Key, value: &Spanned<DeValue<'_>>) -> Result<Value, SyntaxError> {
        let expected = match key.form() {
            Form::List => "a list of texts",
            Form::Texts => "a text or a list of texts",
            Form::Flag => "true or false",
        };
        match (key.form(), value.get_ref()) {
            (Form::Flag, DeValue::Boolean(flag)) => Ok(Value::Flag(*flag)),
            (Form::Texts, DeValue::String(text)) => {
                Ok(Value::Texts(vec![text.clone().into_owned()]))
            }
            (Form::Texts | Form::List, DeValue::Array(values)) => {
                let texts = values.iter().map(|value| match value.get_ref() {
                    DeValue::String(text) => Ok(text.clone().into_owned()),
                    other => Err(self.wrong(value, "an element", "a text", other)),
                });
                Ok(Value::Texts(texts.collect::<Result<_, _>>()?))
            }
            (_, other) => Err(self.wrong(value, key.name(), expected, other)),
        }
    }

    /// Refuses anything but a rule of warnings.
    fn rule(&self, rule: &KeyOf<'_>) -> Result<(), SyntaxError> {
        let name = rule.get_ref();
        let found = shown(name).to_string();
        let message = match name.parse::<Rule>() {
            Ok(known) if known.is_warning() => return Ok(()),
            Ok(_) => format!("{found} has no level: what it finds refuses an artifact"),
            Err(_) => {
                let known = Rule::ALL.iter().filter(|rule| rule.is_warning());
                match nearest(name, known.map(|rule| rule.id())) {
                    Some(meant) => format!("there is no rule {found:?}; did you mean {meant}?"),
                    None => format!("there is no rule {found:?}; `serdes explain` lists the rules"),
                }
            }
        };
        Err(self.error(rule.span().start, message))
    }

    fn level(&self, rule: &str, value: &Spanned<DeValue<'_>>) -> Result<Level, SyntaxError> {
        match value.get_ref() {
            DeValue::String(word) => {
                let levels = [Level::Deny, Level::Warn, Level::Allow];
                let known = levels.into_iter().find(|level| level.id() == word.as_ref());
                known.ok_or_else(|| {
                    let word = shown(word).to_string();
                    let message =
                        format!("found {word:?} for {rule}; expected deny, warn or allow");
                    self.error(value.span().start, message)
                })
            }
            other => Err(self.wrong(value, rule, "deny, warn or allow", other)),
        }
    }

    fn levels(
        &self,
        value: &Spanned<DeValue<'_>>,
        content: &mut Content,
    ) -> Result<(), SyntaxError> {
        for (rule, value) in self.table(value, "levels")? {
            let name = rule.get_ref();
            self.rule(rule)?;
            let level = self.level(name, value)?;
            let line = self.line(rule.span().start);
            content.levels.insert(name.clone().into_owned(), Placed { value: level, line });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (usize, String) {
        let SyntaxError { line, message } = Content::parse(text).unwrap_err();
        (line, message)
    }

    #[test]
    fn every_key_is_read_with_its_line() {
        let text = "[check]\npaths = ['models']\nexclude = []\ntensorflow = '2.16..2.21'\njax = ['0.9.0', 'latest']\n\
                    tags = ['serve']\nstrict = true\nrequire-known = false\ncustom-ops = ['Ours']\n\
                    [check.levels]\nattribute_dropped = 'deny'\n";
        let content = Content::parse(text).unwrap();
        assert_eq!(content.check.len(), Key::ALL.len());
        let tensorflow = &content.check[&Key::Tensorflow];
        assert_eq!(tensorflow.line, 4);
        assert_eq!(tensorflow.value, Value::Texts(vec!["2.16..2.21".to_owned()]));
        assert_eq!(content.check[&Key::Strict].value, Value::Flag(true));
        assert_eq!(content.levels["attribute_dropped"].line, 11);
    }

    #[test]
    fn an_unknown_key_names_the_nearest_right_one() {
        let (line, message) = error("[check]\n\ntensorflw = 'all'\n");
        assert_eq!(line, 3);
        assert!(
            message.contains("\"tensorflw\"") && message.contains("mean tensorflow?"),
            "{message}"
        );
        let (_, message) = error("[check]\nrequire_known = true\n");
        assert!(message.contains("did you mean require-known?"), "{message}");
        let (_, message) = error("[chekc]\n");
        assert!(message.contains("did you mean check?"), "{message}");
        let (_, message) = error("[check.levels]\natribute_dropped = 'deny'\n");
        assert!(message.contains("did you mean attribute_dropped?"), "{message}");
        let (_, message) = error("[check.levels]\ncorrupt = 'allow'\n");
        assert!(message.contains("corrupt has no level"), "{message}");
    }

    #[test]
    fn a_value_of_another_form_is_told_with_the_form_expected() {
        for (text, words) in [
            ("[check]\nstrict = 'yes'", "strict is a text; expected true or false"),
            ("[check]\npaths = 'models'", "paths is a text; expected a list of texts"),
            ("[check]\njax = [1]", "an element is a number; expected a text"),
            ("check = 1", "check is a number; expected a table"),
            ("[check.levels]\nempty = 'no'", "found \"no\" for empty; expected deny"),
        ] {
            let (_, message) = error(text);
            assert!(message.contains(words), "{message}");
        }
        assert_eq!(error("[check]\npaths = [").0, 2);
    }
}
