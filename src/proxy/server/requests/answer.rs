//! Answers as messages.

use std::sync::atomic::Ordering;

use super::request::Reply;
use crate::{
    proto::xla::ifrt::proxy::{IfrtResponse, ResponseMetadata},
    proxy::{server::metrics::Gauges, status::to_proto},
};

/// The message of an answer; `answered` counts those that were no errors.
pub(crate) fn respond(
    gauges: &Gauges,
    op_id: u64,
    reply: Reply,
    answered: &mut u64,
) -> IfrtResponse {
    gauges.requests.fetch_add(1, Ordering::Relaxed);
    let mut metadata = ResponseMetadata { op_id, ..Default::default() };
    let response = match reply {
        Ok(response) => {
            metadata.seq_num = i64::try_from(*answered).unwrap_or(i64::MAX);
            *answered += 1;
            Some(response)
        }
        Err(status) => {
            gauges.failed_requests.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(op_id, code = %status.code(), message = status.message(), "request failed");
            metadata.status = Some(to_proto(&status));
            None
        }
    };
    IfrtResponse { response_metadata: Some(metadata), response }
}
