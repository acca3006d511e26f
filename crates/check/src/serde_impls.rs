//! `Serialize` implementations for types whose serialized form differs from their fields.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{Kind, Remedy, Rule};

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// Serializes shared dimensions, which serde does not support by default.
pub(super) fn dimensions<S: Serializer>(
    shape: &[String],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(shape)
}

pub(super) fn text<S: Serializer>(
    text: &Option<Arc<str>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Serialize::serialize(&text.as_deref(), serializer)
}
