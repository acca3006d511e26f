//! Time limits for futures.

use std::{future::Future, time::Duration};

use serdes::codec::Status;

use crate::status::status;

/// Awaits a future with a time limit.
///
/// # Errors
/// The errors of the future; DEADLINE_EXCEEDED.
pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    future: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| {
        Err(status!(DeadlineExceeded, "waited {} seconds for {what}", limit.as_secs_f64()))
    })
}
