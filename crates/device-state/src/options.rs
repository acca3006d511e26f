//! Options for writing a state.

use std::{num::NonZero, thread::available_parallelism};

use super::{Durability, Part, ProgressMonitor, Versions};

/// Bytes under one checksum.
const CHUNK_BYTES: u32 = 1 << 20;

/// Options for writing a state.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    pub(super) versions: Versions,
    pub(super) durability: Durability,
    pub(super) metadata: Option<Vec<(String, String)>>,
    pub(super) monitor: ProgressMonitor,
    pub(super) chunk_bytes: u32,
    pub(super) producer_release: String,
    pub(super) threaded: bool,
    pub(super) direct: bool,
    pub(super) previous: u32,
    /// The part to write, for a state of several savers.
    pub(super) part: Option<Part>,
}

impl WriteOptions {
    /// Creates a state for readers of these versions, synced, without metadata.
    pub fn new(versions: Versions) -> Self {
        Self {
            versions,
            durability: Durability::Data,
            metadata: None,
            monitor: ProgressMonitor::new(),
            chunk_bytes: CHUNK_BYTES,
            producer_release: concat!("serdes ", env!("CARGO_PKG_VERSION")).to_owned(),
            threaded: available_parallelism().map_or(1, NonZero::get) > 1,
            direct: false,
            previous: 0,
            part: None,
        }
    }

    /// Returns the versions at which the state is written.
    pub const fn versions(&self) -> Versions {
        self.versions
    }

    /// Returns the durability that the file has before it gets its name.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns the durability of written files.
    pub const fn durability(&self) -> Durability {
        self.durability
    }

    /// Words about the state, kept in this order.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Option<Vec<(String, String)>>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the monitor, which hears of progress and may stop the work.
    #[must_use]
    pub fn with_monitor(mut self, monitor: ProgressMonitor) -> Self {
        self.monitor = monitor;
        self
    }

    /// Returns the monitor, which hears of progress and may stop the work.
    pub fn monitor(&self) -> ProgressMonitor {
        self.monitor.clone()
    }

    /// Sets the number of bytes under one checksum: a power of two from 64 to 2^24; others are
    /// rounded up to one. Small chunks let a reader verify small parts.
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: u32) -> Self {
        self.chunk_bytes = bytes.clamp(64, 1 << 24).next_power_of_two();
        self
    }

    /// Returns the name and release of the program that writes, as readers will name it.
    #[must_use]
    pub fn with_producer_release(mut self, release: impl Into<String>) -> Self {
        self.producer_release = release.into();
        self
    }

    /// With `true`, writes files past the system's page cache (`O_DIRECT`, on Linux), for states
    /// that are not read soon and should not evict data of other programs. The bytes of the file
    /// are the same.
    ///
    /// Where the file system refuses, the state is written through the cache;
    /// [`Written::direct`](super::Written::direct) tells. Shards of several devices are copied one
    /// after the other then, not all at the same time. Streams and other stores than files are as
    /// without.
    #[must_use]
    pub fn with_direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Keeps up to `states` states that were at the path before, as `PATH.1` (the newest), `PATH.2`
    /// and so on; none by default.
    ///
    /// At every moment there is a whole state at the path itself, once there was one. Where the
    /// path is a link, they are beside the file that it points to. States in other stores than
    /// files replace what was there.
    #[must_use]
    pub fn with_previous(mut self, states: u32) -> Self {
        self.previous = states;
        self
    }
}
