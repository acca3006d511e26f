//! Options for writing a state.

use std::{num::NonZero, thread::available_parallelism};

use super::{Durability, Part, ProgressMonitor, Versions};

/// Default number of bytes per checksum.
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
    /// The part to write, for a state of several processes.
    pub(super) part: Option<Part>,
}

impl WriteOptions {
    /// Creates options for readers of these versions, with sync and without metadata.
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

    /// Sets the durability that the file has before it gets its name.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns the durability of written files.
    pub const fn durability(&self) -> Durability {
        self.durability
    }

    /// Sets the key-value metadata of the state, kept in this order.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Option<Vec<(String, String)>>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the monitor, which reports progress and may cancel the work.
    #[must_use]
    pub fn with_monitor(mut self, monitor: ProgressMonitor) -> Self {
        self.monitor = monitor;
        self
    }

    /// Returns the monitor, which reports progress and may cancel the work.
    pub fn monitor(&self) -> ProgressMonitor {
        self.monitor.clone()
    }

    /// Sets the number of bytes per checksum: a power of two from 64 to 2^24; others are rounded up
    /// to one. Small chunks let a reader verify small parts.
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: u32) -> Self {
        self.chunk_bytes = bytes.clamp(64, 1 << 24).next_power_of_two();
        self
    }

    /// Sets the name and release of the writing program, as readers show it.
    #[must_use]
    pub fn with_producer_release(mut self, release: impl Into<String>) -> Self {
        self.producer_release = release.into();
        self
    }

    /// Sets if files are written past the system's page cache (`O_DIRECT`, on Linux), for states
    /// that are not read soon and should not evict data of other programs. The bytes of the file
    /// are the same.
    ///
    /// If the file system refuses, the state is written through the cache, which
    /// [`Written::direct`](super::Written::direct) reports. Shards of several devices are then
    /// copied one after the other, not at the same time. Streams and stores other than files ignore
    /// the option.
    #[must_use]
    pub fn with_direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Sets how many previous states of the path are kept, as `PATH.1` (the newest), `PATH.2` and
    /// so on; none by default.
    ///
    /// Once there was a state at the path, there is a complete one at any time. If the path is a
    /// link, they are beside the file that it points to. States in stores other than files replace
    /// the old one.
    #[must_use]
    pub fn with_previous(mut self, states: u32) -> Self {
        self.previous = states;
        self
    }
}
