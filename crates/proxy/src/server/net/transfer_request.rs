//! Requests that our own client sends together with the transfer of a host buffer: one call instead
//! of two. They have the same effects as on the session's stream.

use std::sync::Arc;

use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{IfrtRequest, ifrt_request::Request, ifrt_response::Response},
};
use tonic::metadata::MetadataMap;
use tracing::Instrument as _;

use super::{call::metadata, stream::span_of};
use crate::{
    server::{
        requests::{Answer, Asked, Reply, begin, note},
        sessions::Session,
    },
    service,
    status::status,
};

/// Decodes the request in a transfer's metadata, if there is one.
///
/// # Errors
/// INVALID_ARGUMENT for invalid bytes.
pub(super) fn of_metadata(given: &MetadataMap) -> Result<Option<IfrtRequest>, Status> {
    let key = service::REQUEST;
    if !given.contains_key(key) {
        return Ok(None);
    }
    let damaged =
        |error| status!(InvalidArgument, "the metadata `{key}` is no IfrtRequest: {error}");
    let missing = || status!(InvalidArgument, "the metadata `{key}` has no value");
    metadata(given, key, missing, damaged).map(Some)
}

/// Returns true if a request only creates an array from this host buffer.
pub(super) fn makes(request: &IfrtRequest, handle: u64) -> bool {
    matches!(
        &request.request,
        Some(Request::MakeArrayFromHostBufferRequest(request)) if request.host_buffer_handle == handle
    )
}

/// Returns true if a request only fills this host buffer.
pub(super) fn fills(request: &IfrtRequest, handle: u64) -> bool {
    matches!(
        &request.request,
        Some(Request::CopyToHostBufferRequest(request)) if request.host_buffer_handle == handle
    )
}

/// Returns the error for a client whose transfer brings another request along.
pub(super) fn wrong(handle: u64) -> Status {
    status!(
        InvalidArgument,
        "a transfer of the host buffer {handle} came with a request that is not for it; send that on the stream of the session"
    )
}

/// Takes up a request: its effects on handles are there when this returns. The result is its
/// answer, which may be waited for.
pub(super) fn take_up(
    session: &Arc<Session>,
    request: &IfrtRequest,
) -> impl Future<Output = Result<Response, Status>> + Send + use<> {
    let asked = Asked::now(request);
    let span = span_of(session, asked);
    let answer = span.in_scope(|| begin(session, request.request.as_ref()));
    let gauges = Arc::clone(&session.context.gauges);
    async move {
        let reply: Reply = match answer {
            Answer::Now(reply) => reply,
            Answer::Later(reply) => reply.await,
        };
        note(&gauges, asked, &reply);
        reply
    }
    .instrument(span)
}
