//! Counts the objects that a host created and destroyed, so that leaks are visible from outside.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one kind of object.
#[derive(Debug, Default)]
pub struct Counter {
    created: AtomicU64,
    destroyed: AtomicU64,
}

impl Counter {
    pub(crate) fn created_one(&self) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn destroyed_one(&self) {
        self.destroyed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of objects created.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }

    /// Returns the number of objects destroyed.
    #[must_use]
    pub fn destroyed(&self) -> u64 {
        self.destroyed.load(Ordering::Relaxed)
    }

    /// Returns the number of living objects.
    #[must_use]
    pub fn live(&self) -> u64 {
        let destroyed = self.destroyed();
        self.created().saturating_sub(destroyed)
    }
}

/// Counters of the objects that a host created and destroyed through one registration of a plug-in.
#[derive(Debug, Default)]
pub struct Counters {
    /// Platforms: one per registration.
    pub platforms: Counter,
    /// Devices.
    pub devices: Counter,
    /// Tables of device functions.
    pub device_functions: Counter,
    /// Executors.
    pub stream_executors: Counter,
    /// Tables of timer functions.
    pub timer_functions: Counter,
    /// Allocators of RFC #257, of both kinds.
    pub allocators: Counter,
    /// Streams.
    pub streams: Counter,
    /// Events.
    pub events: Counter,
    /// Timers.
    pub timers: Counter,
    /// Pieces of device memory.
    pub device_memory: Counter,
    /// Pieces of host memory.
    pub host_memory: Counter,
    /// Pieces of unified memory.
    pub unified_memory: Counter,
    /// Host functions: accepted (created) and run (destroyed).
    pub host_callbacks: Counter,
}

impl Counters {
    /// Returns the counters with their names.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Counter)> {
        [
            ("platforms", &self.platforms),
            ("devices", &self.devices),
            ("device_functions", &self.device_functions),
            ("stream_executors", &self.stream_executors),
            ("timer_functions", &self.timer_functions),
            ("allocators", &self.allocators),
            ("streams", &self.streams),
            ("events", &self.events),
            ("timers", &self.timers),
            ("device_memory", &self.device_memory),
            ("host_memory", &self.host_memory),
            ("unified_memory", &self.unified_memory),
            ("host_callbacks", &self.host_callbacks),
        ]
        .into_iter()
    }

    /// Returns the names and numbers of live objects; empty if everything that was created was
    /// destroyed.
    #[must_use]
    pub fn live(&self) -> Vec<(&'static str, u64)> {
        self.all()
            .map(|(name, counter)| (name, counter.live()))
            .filter(|(_, live)| *live > 0)
            .collect()
    }
}
