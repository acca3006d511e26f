//! Answers as messages.

use std::{sync::atomic::Ordering, time::Instant};

use serdes::{
    codec::StatusCode,
    proto::xla::ifrt::proxy::{IfrtRequest, IfrtResponse, ResponseMetadata},
};

use super::{request::Reply, table::kind};
use crate::{server::metrics::Gauges, status::to_proto};

/// A request that is to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Its number in its session.
    pub(crate) op_id: u64,
    pub(crate) kind: &'static str,
    since: Instant,
}

impl Asked {
    /// Returns the request that has just come.
    pub(crate) fn now(request: &IfrtRequest) -> Self {
        let metadata = request.request_metadata.as_ref();
        let op_id = metadata.map(|metadata| metadata.op_id).unwrap_or_default();
        Self { op_id, kind: kind(request.request.as_ref()), since: Instant::now() }
    }
}

/// Counts a request that is answered, and says so.
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

/// Returns the message of an answer; `answered` counts those that were no errors.
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
