//! What a check looks at, and for whom.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Consumer, Kind};
use crate::artifact::graph::DeprecatedOperations;
use crate::artifact::tensor_bundle::VerifyOptions;
use crate::device_state::{Phase, Watch};

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
    /// Hears how far verifying data has come, and may stop it: the verdict is then incomplete, and means nothing.
    pub watch: Watch,
    /// What a walk leaves out.
    excluded: Option<Excluded>,
}

/// Says of a path below a walked directory, and whether that is a directory, whether it is left out.
type Excludes = dyn Fn(&Path, bool) -> bool + Send + Sync;

#[derive(Clone)]
struct Excluded(Arc<Excludes>);

impl fmt::Debug for Excluded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Excluded")
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
            watch: Watch::new(),
            excluded: None,
        }
    }
}

impl Options {
    /// The defaults, for another consumer.
    #[must_use]
    pub fn for_consumer(consumer: Consumer) -> Self {
        Self { consumer, ..Self::default() }
    }

    /// The same, where a [walk](super::walk()) leaves out what `excluded` says, neither checked nor skipped. It is asked about the path of
    /// each entry below the walked directory, and whether the entry is a directory, into which the walk then does not go.
    #[must_use]
    pub fn with_excluded(
        mut self,
        excluded: impl Fn(&Path, bool) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.excluded = Some(Excluded(Arc::new(excluded)));
        self
    }

    pub(super) fn excludes(&self, below: &Path, is_directory: bool) -> bool {
        self.excluded.as_ref().is_some_and(|excluded| excluded.0(below, is_directory))
    }

    /// Verifies a checkpoint as these options say, and lets the watch hear of it.
    pub(super) fn verify<T>(&self, run: impl FnOnce(&VerifyOptions<'_>) -> T) -> T {
        let begin = |bytes| self.watch.begin(Phase::Verify, bytes);
        // Whether to stop is asked through the flag.
        let advance = |bytes| self.watch.advance(bytes).unwrap_or_default();
        run(&VerifyOptions::default()
            .with_data(self.verify_data)
            .with_threads(self.threads)
            .with_total(&begin)
            .with_progress(&advance)
            .with_cancellation(self.watch.flag()))
    }
}
