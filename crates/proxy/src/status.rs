//! Conversions between the library's, the message's and gRPC's statuses.

use serdes::{
    codec::{Status, StatusCode},
    proto::tensorflow::StatusProto,
};
use serdes_abi::TF_Code;
use serdes_pjrt::PjrtError;

/// Builds a status from a code and the arguments of `format!`.
macro_rules! status {
    ($code:ident, $($message:tt)*) => {
        serdes::codec::Status::new(serdes::codec::StatusCode::$code, format!($($message)*))
    };
}
pub(super) use status;

/// Converts a status to a message. OK has no text.
pub(super) fn to_proto(status: &Status) -> StatusProto {
    StatusProto {
        code: status.code().number(),
        message: status.message().to_owned(),
        payload: Default::default(),
    }
}

/// Returns the status of a message; `None` for OK. A code that is not canonical becomes UNKNOWN.
pub(super) fn from_proto(proto: &StatusProto) -> Option<Status> {
    match StatusCode::from_number(proto.code) {
        Some(StatusCode::Ok) => None,
        Some(code) => Some(Status::new(code, proto.message.clone())),
        None => Some(status!(Unknown, "status code {}: {}", proto.code, proto.message)),
    }
}

/// Converts a status to gRPC's, which has the same codes.
pub(super) fn to_grpc(status: &Status) -> tonic::Status {
    tonic::Status::new(tonic::Code::from_i32(status.code().number()), status.message())
}

/// Converts the status of a call. A status that the transport created, because no answer came,
/// becomes UNAVAILABLE with its description.
pub(super) fn from_grpc(status: &tonic::Status) -> Status {
    if let Some(cause) = std::error::Error::source(status) {
        return status!(Unavailable, "{}: {}", status.message(), super::error::with_causes(cause));
    }
    let code = StatusCode::from_number(status.code() as i32).unwrap_or(StatusCode::Unknown);
    Status::new(code, status.message())
}

/// Converts an error of a PJRT client to a status for a peer.
pub(super) fn of_pjrt(error: &PjrtError) -> Status {
    let code = match error {
        PjrtError::OutOfHostMemory { .. } => StatusCode::ResourceExhausted,
        PjrtError::Missing { .. } => StatusCode::Unimplemented,
        PjrtError::Status { code, .. } => {
            code.canonical().filter(|code| *code != StatusCode::Ok).unwrap_or(StatusCode::Internal)
        }
        // Errors that a client's request may cause.
        PjrtError::InvalidArgument { .. } => StatusCode::InvalidArgument,
        _ => StatusCode::Internal,
    };
    Status::new(code, error.to_string())
}

/// Converts an error of a device to a status for a peer.
pub(super) fn of_device(error: &serdes_stream_executor::Error) -> Status {
    let code = match error {
        serdes_stream_executor::Error::OutOfMemory { .. } => StatusCode::ResourceExhausted,
        serdes_stream_executor::Error::Unsupported { .. } => StatusCode::Unimplemented,
        _ => error
            .status_code()
            .and_then(TF_Code::canonical)
            .filter(|code| *code != StatusCode::Ok)
            .unwrap_or(StatusCode::Internal),
    };
    Status::new(code, error.to_string())
}
