//! Requests of programs, which this server does not run: an answer that says so, and handles that
//! say it again.

use super::request::{Job, Nothing, Request};
use crate::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        CompileRequest, LoadedExecutableCostAnalysisRequest, LoadedExecutableDeleteRequest,
        LoadedExecutableDestructRequest, LoadedExecutableExecuteRequest,
        LoadedExecutableFetchExecuteResultRequest, LoadedExecutableHumanReadableProgramTextRequest,
        LoadedExecutableIsDeletedRequest, LoadedExecutableMetadataRequest,
        LoadedExecutableMpmdCostAnalysisRequest, LoadedExecutableMpmdMetadataRequest,
        LoadedHostCallbackPollRequest, LoadedHostCallbackReturnRequest,
    },
    proxy::{
        server::{context::Context, promise::Promised, sessions::Session},
        status::status,
    },
};

fn unserved(what: &str) -> Status {
    status!(Unimplemented, "this server moves arrays; it does not {what}")
}

macro_rules! unserved {
    ($($what:literal: $($request:ident),*;)*) => {
        $($(impl Request for $request {
            type Work = Nothing;

            fn plan(&self, _: &Context, _: &Session) -> Result<Job<Nothing>, Status> {
                Err(unserved($what))
            }
        })*)*
    };
}

unserved! {
    "compile programs": CompileRequest;
    "load executables":
        LoadedExecutableMetadataRequest,
        LoadedExecutableDeleteRequest,
        LoadedExecutableIsDeletedRequest,
        LoadedExecutableDestructRequest,
        LoadedExecutableCostAnalysisRequest,
        LoadedExecutableHumanReadableProgramTextRequest,
        LoadedExecutableMpmdMetadataRequest,
        LoadedExecutableMpmdCostAnalysisRequest,
        LoadedExecutableFetchExecuteResultRequest;
    "call back into the host": LoadedHostCallbackPollRequest, LoadedHostCallbackReturnRequest;
}

impl Request for LoadedExecutableExecuteRequest {
    type Work = Nothing;

    fn plan(&self, _: &Context, _: &Session) -> Result<Job<Nothing>, Status> {
        Err(unserved("execute programs"))
    }

    fn results(&self) -> &[u64] {
        &self.result_array_handle
    }

    fn refuse(&self, session: &Session, status: &Status) {
        if self.result_status_handle != 0 {
            let outcome = Promised::known(Err(status.clone()));
            // Without room for it, the client is told that there is none.
            drop(session.table().named_future(self.result_status_handle, outcome));
        }
    }
}
