//! Answers as messages.

use std::{sync::atomic::Ordering, time::Instant};

use serdes::{
    codec::StatusCode,
    proto::xla::ifrt::proxy::{IfrtRequest, IfrtResponse, ResponseMetadata},
};

use super::{request::Reply, table::kind};
use crate::{server::metrics::Gauges, status::to_proto};

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Number of the request in its session.
    pub(crate) op_id: u64,
    pub(crate) kind: &'static str,
    since: Instant,
}

impl Asked {
    /// Records a request that has just arrived.
    pub(crate) fn now(request: &IfrtRequest) -> Self {
        let metadata = request.request_metadata.as_ref();
        let op_id = metadata.map(|metadata| metadata.op_id).unwrap_or_default();
        Self { op_id, kind: kind(request.request.as_ref()), since: Instant::now() }
    }
}

/// Counts and logs an answered request.
pub(crate) fn note(gauges: &Gauges, asked: Asked, reply: &Reply) {
    let Asked { kind, since, .. } = asked;
    gauges.requests.fetch_add(1, Ordering::Relaxed);
    let took = since.elapsed();
    let code = reply.as_ref().map_or_else(|status| status.code(), |_| StatusCode::Ok);
    gauges.by_kind.note(kind, code, took);
    let seconds = took.as_secs_f64();
    match reply {
        Ok(_) => tracing::debug!(seconds, "request answered"),
        Err(status) => {
            gauges.failed_requests.fetch_add(1, Ordering::Relaxed);
            tracing::info!(seconds, code = %status.code(), reason = status.message(), "request failed");
        }
    }
}

/// Encodes an answer; `answered` counts the successful ones.
pub(crate) fn respond(
    gauges: &Gauges,
    asked: Asked,
    reply: Reply,
    answered: &mut u64,
) -> IfrtResponse {
    note(gauges, asked, &reply);
    let mut metadata = ResponseMetadata { op_id: asked.op_id, ..Default::default() };
    let response = match reply {
        Ok(response) => {
            metadata.seq_num = i64::try_from(*answered).unwrap_or(i64::MAX);
            *answered += 1;
            Some(response)
        }
        Err(status) => {
            metadata.status = Some(to_proto(&status));
            None
        }
    };
    IfrtResponse { response_metadata: Some(metadata), response }
}
