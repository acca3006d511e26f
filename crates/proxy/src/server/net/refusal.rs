//! Answers a connection that exceeds a limit: its first call gets the reason.

use std::{convert::Infallible, time::Duration};

use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serdes::codec::Status;
use tokio::{sync::Notify, time::timeout};
use tonic::body::Body;

use super::transport::AfterPreface;
use crate::status::to_grpc;

/// Longest wait for the first call, and for the client to read its answer.
const LONGEST: Duration = Duration::from_secs(1);
/// Maximum size of headers in bytes: those of a session carry initialization data.
const HEADER_LIST_BYTES: u32 = 64 << 10;

/// Answers the first call of a connection with `status`, and ends it.
pub(super) async fn refuse(io: AfterPreface, status: &Status) {
    let called = Notify::new();
    let service = service_fn(|_| {
        called.notify_one();
        let answer = to_grpc(status).into_http::<Body>();
        async { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).max_concurrent_streams(1);
    builder.max_header_list_size(HEADER_LIST_BYTES);
    let serving = builder.serve_connection(TokioIo::new(io), service);
    let mut serving = std::pin::pin!(serving);
    let answered = async {
        tokio::select! {
            _ = serving.as_mut() => return,
            () = called.notified() => serving.as_mut().graceful_shutdown(),
        }
        let _ended = serving.await;
    };
    let _in_time = timeout(LONGEST, answered).await;
}
