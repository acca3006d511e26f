//! The list of all requests.

use std::sync::Arc;

use serdes::proto::xla::ifrt::proxy::ifrt_request::Request as Body;

use super::request::{Answer, take_up};
use crate::{server::sessions::Session, status::status};

macro_rules! requests {
    ($($body:ident,)*) => {
        /// Starts a request: its effects on handles are complete when this returns. A request
        /// without a body comes from a newer build.
        pub(crate) fn begin(session: &Arc<Session>, body: Option<&Body>) -> Answer {
            match body {
                $(Some(Body::$body(request)) => take_up(request, session),)*
                None => Answer::Now(Err(status!(
                    Unimplemented,
                    "the request has no body that this server knows"
                ))),
            }
        }

        /// Returns the protocol's name for the kind of a request.
        pub(crate) fn kind(body: Option<&Body>) -> &'static str {
            match body {
                $(Some(Body::$body(_)) => stringify!($body),)*
                None => "unknown",
            }
        }
    };
}

// A missing request, or one without `Request`, does not compile.
requests! {
    // queries.rs
    InitRequest,
    GetDefaultLayoutRequest,
    GetDefaultDeviceAssignmentRequest,
    // handles.rs
    CheckFutureRequest,
    CheckValueReadyRequest,
    DeleteArrayRequest,
    IsArrayDeletedRequest,
    DestructArrayRequest,
    // arrays.rs
    MakeArrayFromHostBufferRequest,
    MakeArraysFromHostBufferShardsRequest,
    MakeErrorArraysRequest,
    // reads.rs
    CopyToHostBufferRequest,
    // copies.rs, remap.rs, resharding.rs
    FullyReplicatedShardRequest,
    DisassembleIntoSingleDeviceArraysRequest,
    AssembleArrayFromSingleDeviceArraysRequest,
    CopyArraysRequest,
    BitcastArraysRequest,
    RemapArraysRequest,
    ReshardArraysRequest,
    // compilation.rs
    CompileRequest,
    LoadedExecutableMetadataRequest,
    LoadedExecutableDeleteRequest,
    LoadedExecutableIsDeletedRequest,
    LoadedExecutableDestructRequest,
    LoadedExecutableCostAnalysisRequest,
    LoadedExecutableHumanReadableProgramTextRequest,
    // execution.rs
    LoadedExecutableExecuteRequest,
    LoadedExecutableFetchExecuteResultRequest,
    // callbacks.rs
    LoadedHostCallbackPollRequest,
    LoadedHostCallbackReturnRequest,
    // refused.rs
    LoadedExecutableMpmdMetadataRequest,
    LoadedExecutableMpmdCostAnalysisRequest,
}
