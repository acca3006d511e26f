//! Gauges of the resources that a server holds, and counters of events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use super::series::RequestSeries;

/// Resources that a server holds. All gauges return to zero when the last session ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Open sessions.
    pub sessions: u64,
    /// Sessions opened since the start.
    pub sessions_opened: u64,
    /// Array handles of all sessions, failed and deleted ones included.
    pub arrays: u64,
    /// Shards in the memory of devices or in pinned memory of the host.
    pub shards: u64,
    /// Bytes of these shards.
    pub shard_bytes: u64,
    /// Loaded programs.
    pub programs: u64,
    /// Programs compiled since the start.
    pub programs_compiled: u64,
    /// Executions in progress: begun by a plug-in and not ended.
    pub executions: u64,
    /// Executions begun since the start.
    pub executions_begun: u64,
    /// Host buffers of all sessions that have arrived or are arriving.
    pub host_buffers: u64,
    /// Bytes of these buffers, as announced.
    pub host_buffer_bytes: u64,
    /// Bytes of host buffers received from clients since the start.
    pub received_bytes: u64,
    /// Bytes of host buffers sent to clients since the start.
    pub sent_bytes: u64,
    /// Requests and transfers in progress.
    pub tasks: u64,
    /// Requests answered since the start.
    pub requests: u64,
    /// Requests answered with an error since the start.
    pub failed_requests: u64,
    /// Connections whose clients have identified themselves.
    pub connections: u64,
    /// Connections accepted since the start.
    pub connections_accepted: u64,
    /// Connections that ended before their clients had identified themselves, or that exceeded a
    /// limit.
    pub connections_refused: u64,
    /// Calls without a valid token since the start.
    pub unauthenticated: u64,
    /// Arrays in the state, as last saved by this server.
    pub saved_arrays: u64,
    /// Arrays that the last save left out: their data had not arrived, or they could not be
    /// created.
    pub left_out_arrays: u64,
    /// Successful saves of the state since the start.
    pub saves: u64,
    /// Failed saves of the state since the start.
    pub failed_saves: u64,
    /// Time of the last save of the state in seconds since 1970; 0 if there was none.
    pub last_save: u64,
}

/// Gauges and counters that are updated by the server.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) sessions: AtomicU64,
    pub(crate) sessions_opened: AtomicU64,
    pub(crate) arrays: AtomicU64,
    pub(crate) shards: AtomicU64,
    pub(crate) shard_bytes: AtomicU64,
    pub(crate) programs: AtomicU64,
    pub(crate) programs_compiled: AtomicU64,
    pub(crate) executions: AtomicU64,
    pub(crate) executions_begun: AtomicU64,
    pub(crate) host_buffers: AtomicU64,
    pub(crate) host_buffer_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) tasks: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) failed_requests: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_accepted: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) unauthenticated: AtomicU64,
    saved_arrays: AtomicU64,
    left_out_arrays: AtomicU64,
    saves: AtomicU64,
    failed_saves: AtomicU64,
    last_save: AtomicU64,
    pub(crate) by_kind: RequestSeries,
}

/// A contribution to a gauge, which is subtracted on drop.
#[derive(Debug)]
pub(crate) struct Counted {
    gauges: Arc<Gauges>,
    gauge: fn(&Gauges) -> &AtomicU64,
    amount: u64,
}

impl Gauges {
    /// Adds `amount` to a gauge for as long as the result lives.
    pub(crate) fn hold(self: &Arc<Self>, gauge: fn(&Self) -> &AtomicU64, amount: u64) -> Counted {
        gauge(self).fetch_add(amount, Ordering::Relaxed);
        Counted { gauges: Arc::clone(self), gauge, amount }
    }

    pub(crate) fn note_saved(&self, arrays: usize) {
        self.saved_arrays.store(arrays as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_left_out(&self, arrays: usize) {
        self.left_out_arrays.store(arrays as u64, Ordering::Relaxed);
    }

    /// Counts a save of the state that has ended.
    pub(crate) fn note_save(&self, done: bool) {
        if !done {
            self.failed_saves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.saves.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.last_save.store(now.map_or(0, |now| now.as_secs()), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Metrics {
        let read = |gauge: &AtomicU64| gauge.load(Ordering::Relaxed);
        Metrics {
            sessions: read(&self.sessions),
            sessions_opened: read(&self.sessions_opened),
            arrays: read(&self.arrays),
            shards: read(&self.shards),
            shard_bytes: read(&self.shard_bytes),
            programs: read(&self.programs),
            programs_compiled: read(&self.programs_compiled),
            executions: read(&self.executions),
            executions_begun: read(&self.executions_begun),
            host_buffers: read(&self.host_buffers),
            host_buffer_bytes: read(&self.host_buffer_bytes),
            received_bytes: read(&self.received_bytes),
            sent_bytes: read(&self.sent_bytes),
            tasks: read(&self.tasks),
            requests: read(&self.requests),
            failed_requests: read(&self.failed_requests),
            connections: read(&self.connections),
            connections_accepted: read(&self.connections_accepted),
            connections_refused: read(&self.connections_refused),
            unauthenticated: read(&self.unauthenticated),
            saved_arrays: read(&self.saved_arrays),
            left_out_arrays: read(&self.left_out_arrays),
            saves: read(&self.saves),
            failed_saves: read(&self.failed_saves),
            last_save: read(&self.last_save),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.gauge)(&self.gauges).fetch_sub(self.amount, Ordering::Relaxed);
    }
}
