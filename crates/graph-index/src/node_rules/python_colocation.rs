//! The attribute `_class` as Python's imports read it.
//!
//! The importer looks at a list of texts alone. Python reads whatever the attribute has as if it
//! were one, and leaves the device of a node that has to be beside another one unread.

use crate::attributes::{AttributeValue, Attributes};

/// The prefix of a node's name in the attribute.
const PREFIX: &[u8] = b"loc:@";

/// The place where Python puts a node.
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
            // Of several kinds of values, texts are what is read first.
            Some(AttributeValue::List(list)) if list.texts().next().is_some() => list,
            Some(_) => return Self::Unreadable,
        };
        let mut found = Self::Alone;
        for text in list.texts() {
            // What is too long to be kept is nobody's name.
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
