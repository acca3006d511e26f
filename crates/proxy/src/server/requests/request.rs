//! The trait of requests: planned in order, run concurrently.

use std::{future::Future, pin::Pin, sync::Arc};

use serdes::{codec::Status, proto::xla::ifrt::proxy::ifrt_response::Response};

use crate::server::{context::Context, sessions::Session};

/// Result of a request.
pub(crate) type Reply = Result<Response, Status>;

/// The answer to a request: available at once, or later.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, while its request is answered")]
pub(crate) enum Answer {
    Now(Reply),
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// A request of a client.
pub(super) trait Request {
    /// The work that remains after planning; [`Nothing`] for requests that are complete then.
    type Work: Work;

    /// Applies the effects of the request on handles: the next request can use new handles, with
    /// promises behind them.
    ///
    /// # Errors
    /// The client's error. Nothing has changed then.
    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Self::Work>, Status>;

    /// Returns the handles that the client has chosen for arrays of the request. If planning fails,
    /// the error is stored under them.
    fn results(&self) -> &[u64] {
        &[]
    }

    /// Cleans up if the request cannot be planned.
    fn refuse(&self, _session: &Session, _status: &Status) {}
}

/// The remaining work of a planned request.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, while its request is answered")]
pub(super) enum Job<W> {
    Done(Response),
    Work(W),
}

/// Work that waits for bytes, a device or another request. It always fulfils its promises; an error
/// during the work is in the answer and in the promises.
pub(super) trait Work: Send + 'static {
    fn run(self, session: Arc<Session>) -> impl Future<Output = Reply> + Send;
}

/// No work.
pub(super) enum Nothing {}

impl Work for Nothing {
    async fn run(self, _: Arc<Session>) -> Reply {
        match self {}
    }
}

/// Starts a request: its effects on handles are complete when this returns.
pub(super) fn take_up<R: Request>(request: &R, session: &Arc<Session>) -> Answer {
    match request.plan(&session.context, session) {
        Ok(Job::Done(response)) => Answer::Now(Ok(response)),
        Ok(Job::Work(work)) => Answer::Later(Box::pin(work.run(Arc::clone(session)))),
        Err(status) => {
            session.table().poison(request.results(), &status);
            request.refuse(session, &status);
            Answer::Now(Err(status))
        }
    }
}
