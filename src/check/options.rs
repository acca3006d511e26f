//! What a check looks at, and for whom.

use super::{Consumer, Kind};
use crate::artifact::graph::DeprecatedOperations;

/// How artifacts are checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Who wants to load them.
    pub consumer: Consumer,
    /// The meta graph of a SavedModel; without it `serve`, or the only one.
    pub tags: Option<Vec<String>>,
    /// The kind, where the caller knows better.
    pub kind: Option<Kind>,
    /// Whether every byte of every tensor is read and checked.
    pub verify_data: bool,
    /// Whether warnings count as reasons.
    pub strict: bool,
    /// The operations that graphs may not use.
    pub deprecated: DeprecatedOperations,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            consumer: Consumer::default(),
            tags: None,
            kind: None,
            verify_data: false,
            strict: false,
            deprecated: DeprecatedOperations::tensorflow().clone(),
        }
    }
}

impl Options {
    /// The defaults, for another consumer.
    #[must_use]
    pub fn for_consumer(consumer: Consumer) -> Self {
        Self { consumer, ..Self::default() }
    }
}
