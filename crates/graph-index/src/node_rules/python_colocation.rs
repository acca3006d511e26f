//! The attribute `_class` as Python's importers read it.
//!
//! The importer in C++ reads only a list of strings. Python reads any value as if it were one, and
//! ignores the device of a node that is colocated with another one.

use crate::attributes::{AttributeValue, Attributes};

/// The prefix of a node's name in the attribute.
const PREFIX: &[u8] = b"loc:@";

/// The placement of a node by Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonColocation {
    /// On its own device.
    Alone,
    /// Beside another node, wherever its own device is.
    BesideAnother,
    /// Python fails to read the attribute.
    Unreadable,
}

impl PythonColocation {
    /// Reads the attribute from those of a node; `is_own` returns true for the node's own name.
    pub fn of(attributes: &Attributes, is_own: impl Fn(&[u8]) -> bool) -> Self {
        let list = match attributes.get("_class") {
            None | Some(AttributeValue::None) => return Self::Alone,
            Some(AttributeValue::String(text)) if text.length == 0 => return Self::Alone,
            Some(AttributeValue::List(list)) if list.is_empty() => return Self::Alone,
            // If there are several kinds of values, strings are read first.
            Some(AttributeValue::List(list)) if list.texts().next().is_some() => list,
            Some(_) => return Self::Unreadable,
        };
        let mut found = Self::Alone;
        for text in list.texts() {
            // A string that is too long to be kept is not the name of a node.
            let bytes = text.bytes.unwrap_or_default();
            if std::str::from_utf8(bytes).is_err() {
                return Self::Unreadable;
            }
            if bytes.strip_prefix(PREFIX).is_some_and(|name| !is_own(name)) {
                found = Self::BesideAnother;
            }
        }
        found
    }
}
