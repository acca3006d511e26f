//! What clients may make a server hold, and for how long.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{codec::Status, proxy::status::status};

/// What clients may make a server hold, and for how long.
///
/// Stores and results are counted apart: a result never waits for a store, nor the other way round. What does not fit now waits; what
/// never fits is refused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Sessions at a time.
    pub sessions: usize,
    /// Handles that a session may have at a time: arrays, futures and host buffers each.
    pub handles_per_session: usize,
    /// Requests of a session in progress; it is not read on beyond them.
    pub requests_per_session: usize,
    /// Bytes of host buffers of a session, in each direction.
    pub session_host_bytes: u64,
    /// Bytes of host buffers of all sessions, in each direction.
    pub total_host_bytes: u64,
    /// Bytes of a session's arrays on devices and in pinned memory.
    pub session_array_bytes: u64,
    /// How long an array waits for its data, and a buffer for room.
    pub host_buffer_timeout: Duration,
    /// How long a transfer may stand still.
    pub idle_timeout: Duration,
    /// How often a silent connection is asked whether its client is still there, and how long the answer may take.
    pub keepalive: Duration,
    /// How long requests in progress may take when the server stops.
    pub stop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        Self {
            sessions: 4096,
            handles_per_session: 1 << 20,
            requests_per_session: 4096,
            session_host_bytes: 16 * GIB,
            total_host_bytes: 64 * GIB,
            session_array_bytes: u64::MAX,
            host_buffer_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            keepalive: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(5),
        }
    }
}

/// Bytes that may be in use at a time.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    what: &'static str,
    bytes: u64,
    pages: Arc<Semaphore>,
}

/// Bytes taken from a budget, given back on drop.
pub(super) type Share = OwnedSemaphorePermit;

impl Budget {
    const PAGE: u64 = 4096;

    pub(super) fn new(what: &'static str, bytes: u64) -> Self {
        let pages = usize::try_from(bytes / Self::PAGE).unwrap_or(usize::MAX);
        Self { what, bytes, pages: Arc::new(Semaphore::new(pages.min(Semaphore::MAX_PERMITS))) }
    }

    fn pages_of(&self, bytes: u64) -> Result<u32, Status> {
        let pages = u32::try_from(bytes.div_ceil(Self::PAGE)).ok();
        pages.filter(|_| bytes / Self::PAGE * Self::PAGE <= self.bytes && bytes <= self.bytes).ok_or_else(|| {
            status!(
                ResourceExhausted,
                "a buffer of {bytes} bytes is more than the {} bytes of {}; send smaller arrays or raise the server's limit",
                self.bytes,
                self.what,
            )
        })
    }

    /// Takes `bytes` bytes, and waits until that many are free.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are never that many.
    pub(super) async fn take(&self, bytes: u64) -> Result<Share, Status> {
        let pages = self.pages_of(bytes)?;
        let share = Arc::clone(&self.pages).acquire_many_owned(pages).await;
        share.map_err(|_| status!(Cancelled, "the session is over"))
    }

    /// Takes `bytes` bytes if that many are free.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if they are not.
    pub(super) fn take_now(&self, bytes: u64) -> Result<Share, Status> {
        let pages = self.pages_of(bytes)?;
        Arc::clone(&self.pages).try_acquire_many_owned(pages).map_err(|_| {
            status!(
                ResourceExhausted,
                "{bytes} bytes are more than what is left of the {} bytes of {}; delete some first",
                self.bytes,
                self.what,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::StatusCode;

    #[tokio::test]
    async fn what_never_fits_is_refused_and_what_does_not_fit_now_waits() {
        let budget = Budget::new("a test", 8192);
        assert_eq!(budget.take(8193).await.unwrap_err().code(), StatusCode::ResourceExhausted);
        assert_eq!(budget.take(u64::MAX).await.unwrap_err().code(), StatusCode::ResourceExhausted);
        let all = budget.take(8192).await.unwrap();
        let next = tokio::spawn({
            let budget = budget.clone();
            async move { budget.take(1).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!next.is_finished());
        drop(all);
        next.await.unwrap().unwrap();
    }
}
