//! What a check looks at, and for whom.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
    /// Threads that verify data; 0 for as many as the machine has.
    pub threads: usize,
    /// Is told how many bytes were read while data is verified.
    pub progress: Option<Progress>,
    /// Once true, verifying stops, and the verdict is incomplete.
    pub cancelled: Option<Arc<AtomicBool>>,
}

/// Something that is told the number of bytes after each part of the data that was read; from several threads.
#[derive(Clone)]
pub struct Progress(pub Arc<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
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
            threads: 0,
            progress: None,
            cancelled: None,
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
