//! Properties of an object in a store, which must not change from one request to the next.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use object_store::ObjectMeta;

use super::changed::{changed, header_text};
use crate::Stamp;

/// Properties of an object in the first answer, with which every later answer is compared: stores
/// need not honour conditions, and not all have entity tags.
pub(super) struct Held(Mutex<State>);

struct State {
    expected: Attributes,
    /// True once bytes arrived with the expected properties; until then a later answer may add
    /// properties.
    is_confirmed: bool,
}

/// Properties of an object in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attributes {
    e_tag: Option<String>,
    version: Option<String>,
    /// Time of the last change in seconds: lists have a finer resolution than answers.
    modified: Option<i64>,
    size: u64,
}

impl Attributes {
    fn of(meta: &ObjectMeta) -> Self {
        // Lists of some stores omit the quotes.
        let plain = |tag: &String| match tag.starts_with("W/") {
            true => tag.clone(),
            false => tag.trim_matches('"').to_owned(),
        };
        Self {
            e_tag: meta.e_tag.as_ref().map(plain),
            version: meta.version.clone(),
            // The crate reports the epoch for a store that gives no time.
            modified: Some(meta.last_modified.timestamp()).filter(|second| *second != 0),
            size: meta.size,
        }
    }

    /// Returns the error for the first property that differs from `expected`.
    fn compare(&self, expected: &Self, is_first: bool) -> std::io::Result<()> {
        let texts = [
            ("ETag", self.e_tag.as_deref(), expected.e_tag.as_deref()),
            ("version", self.version.as_deref(), expected.version.as_deref()),
        ];
        for (name, found, expected) in texts {
            if found != expected && !(is_first && expected.is_none()) {
                let text = |value: Option<&str>| header_text(name, value.map(str::as_bytes));
                return Err(changed(text(found), text(expected)));
            }
        }
        if self.modified != expected.modified && !(is_first && expected.modified.is_none()) {
            let time = |second: Option<i64>| match second {
                Some(second) => format!("Last-Modified at second {second}"),
                None => "no Last-Modified".to_owned(),
            };
            return Err(changed(time(self.modified), time(expected.modified)));
        }
        if self.size != expected.size {
            return Err(changed(format_args!("{} bytes", self.size), expected.size));
        }
        Ok(())
    }
}

impl Held {
    /// Creates the properties from the store's description of the object.
    pub(super) fn new(meta: &ObjectMeta) -> Self {
        Self(Mutex::new(State { expected: Attributes::of(meta), is_confirmed: false }))
    }

    /// Creates the properties from an entry of a list: the time of the last change may differ from
    /// the one in an answer about the object itself.
    pub(super) fn listed(meta: &ObjectMeta) -> Self {
        let expected = Attributes { modified: None, ..Attributes::of(meta) };
        Self(Mutex::new(State { expected, is_confirmed: false }))
    }

    /// Compares the properties in an answer with the expected ones.
    ///
    /// # Errors
    /// If a property differs or is missing: the bytes may belong to another object.
    pub(super) fn check(&self, meta: &ObjectMeta) -> std::io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = Attributes::of(meta);
        found.compare(&state.expected, !state.is_confirmed)?;
        *state = State { expected: found, is_confirmed: true };
        Ok(())
    }

    /// Returns the stamp of the object, which is the same for lists and answers: where there are
    /// entity tags, it consists of them alone.
    pub(super) fn stamp(meta: &ObjectMeta) -> Stamp {
        let attributes = Attributes::of(meta);
        match attributes.e_tag {
            Some(tag) => Stamp::new(format!("{tag} {}", attributes.size)),
            None => Stamp::new(format!("{:?} {}", attributes.modified, attributes.size)),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("Held").field(&state.expected).finish()
    }
}
