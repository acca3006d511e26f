//! Requests that this server does not support.

use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        LoadedExecutableMpmdCostAnalysisRequest, LoadedExecutableMpmdMetadataRequest,
    },
};

use super::request::{Job, Nothing, Request};
use crate::{
    server::{context::Context, sessions::Session},
    status::status,
};

/// Returns the error for a client of a plug-in without programs.
pub(super) fn unserved(what: &str) -> Status {
    status!(
        Unimplemented,
        "this server moves arrays; it does not {what}, for its plug-in has no programs: ask the server's operator to serve a plug-in of PJRT that compiles, or use nothing but jax.device_put and np.asarray here"
    )
}

macro_rules! refused {
    ($($why:literal: $($request:ident),*;)*) => {
        $($(impl Request for $request {
            type Work = Nothing;

            fn plan(&self, _: &Context, _: &Session) -> Result<Job<Nothing>, Status> {
                Err(status!(Unimplemented, $why))
            }
        })*)*
    };
}

refused! {
    "this server compiles programs of one part; ask for the executable as a whole":
        LoadedExecutableMpmdMetadataRequest, LoadedExecutableMpmdCostAnalysisRequest;
}
