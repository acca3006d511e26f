//! Properties of an object in a store, which must not change from one request to the next.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use object_store::ObjectMeta;

use super::changed::{changed, header_text};
use crate::Stamp;

/// Properties of an object in the first answer. Stores need not honour conditions, and not all of
/// them have entity tags: so every answer is compared with it.
pub(super) struct Held(Mutex<State>);

struct State {
    expected: Attributes,
    /// True once bytes came with the expected properties; until then a later answer may add
    /// properties.
    is_confirmed: bool,
}

/// Properties of an object in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attributes {
    e_tag: Option<String>,
    version: Option<String>,
    /// Second of the last change: lists tell it finer than answers do.
    modified: Option<i64>,
    size: u64,
}

impl Attributes {
    fn of(meta: &ObjectMeta) -> Self {
        // Lists of some stores leave the quotes out.
        let plain = |tag: &String| match tag.starts_with("W/") {
            true => tag.clone(),
            false => tag.trim_matches('"').to_owned(),
        };
        Self {
            e_tag: meta.e_tag.as_ref().map(plain),
            version: meta.version.clone(),
            // A store that does not say it is taken to say the beginning of time.
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
    /// Creates the object as the store described it before it was read.
    pub(super) fn new(meta: &ObjectMeta) -> Self {
        Self(Mutex::new(State { expected: Attributes::of(meta), is_confirmed: false }))
    }

    /// Returns the object as a list described it: the time of its last change may differ from that
    /// in an answer about the object itself.
    pub(super) fn listed(meta: &ObjectMeta) -> Self {
        let expected = Attributes { modified: None, ..Attributes::of(meta) };
        Self(Mutex::new(State { expected, is_confirmed: false }))
    }

    /// Compares what came with bytes with what was said before.
    ///
    /// # Errors
    /// If anything is another, or is not said any more: the bytes may be those of another object.
    pub(super) fn check(&self, meta: &ObjectMeta) -> std::io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = Attributes::of(meta);
        found.compare(&state.expected, !state.is_confirmed)?;
        *state = State { expected: found, is_confirmed: true };
        Ok(())
    }

    /// Stamp that tells the object from another one at its key, whichever answer it is made from:
    /// where there are entity tags, of these alone, because a list and an answer have the same.
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
