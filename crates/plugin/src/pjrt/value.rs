//! Named values: the options of a client, and the attributes of a plug-in.

use crate::{Result, Status};

/// A value of one of the types in the C API.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A list of integers.
    Integers(Vec<i64>),
    /// A floating-point number.
    Float(f32),
    /// A boolean.
    Boolean(bool),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Integers(_) => "a list of whole numbers",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "yes or no",
        }
    }
}

/// The prefix of the options by which frameworks describe themselves to every client.
const OF_FRAMEWORKS: &str = "ml_framework_";

/// The options that a client is created with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    values: Vec<(String, Value)>,
}

impl Options {
    /// Creates options with these names and values.
    #[must_use]
    pub fn new(values: Vec<(String, Value)>) -> Self {
        Self { values }
    }

    /// Returns the option with this name; the last one, if it occurs twice.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// Fails if there is an option that is not in `known`. Options by which frameworks describe
    /// themselves (`ml_framework_name`, …) are ignored.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the option's name and the known ones.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        let is_known = |name: &str| known.contains(&name) || name.starts_with(OF_FRAMEWORKS);
        match self.values.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Status::invalid_argument(format!(
                "found the option {name:?}, expected one of {known:?}"
            ))),
        }
    }

    /// Returns the integer option with this name, if it is given.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the option has another type.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.read(name, "a whole number", |value| match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        })
    }

    /// Returns the text option with this name, if it is given.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the option has another type.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        self.read(name, "a text", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the boolean option with this name, if it is given.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the option has another type.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.read(name, "yes or no", |value| match value {
            Value::Boolean(flag) => Some(*flag),
            _ => None,
        })
    }

    fn read<'a, T>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| {
            let found = value.kind();
            Status::invalid_argument(format!("the option {name:?} is {found}, expected {expected}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_option_is_refused_with_the_possible_ones() {
        let text = |name: &str| (name.to_owned(), Value::Text("4".to_owned()));
        let options = Options::new(vec![text("devices"), text("ml_framework_name")]);
        let error = options.integer("devices").unwrap_err();
        assert!(error.message().contains("a text, expected a whole number"), "{error}");
        assert_eq!(options.text("devices"), Ok(Some("4")));
        assert_eq!(options.boolean("other"), Ok(None));
        assert_eq!(options.only(&["devices"]), Ok(()));
        assert!(options.only(&["memory"]).unwrap_err().message().contains("\"devices\""));
    }
}
