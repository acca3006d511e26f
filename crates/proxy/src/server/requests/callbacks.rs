//! Functions of the client that programs call: the client polls for the next call, which may take
//! long, and returns the function's results.

use std::sync::Arc;

use bytes::Bytes;
use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        LoadedHostCallbackPollRequest, LoadedHostCallbackPollResponse,
        LoadedHostCallbackReturnRequest, LoadedHostCallbackReturnResponse, ifrt_response::Response,
        loaded_host_callback_return_request::Result as Returned,
    },
};
use tokio::sync::oneshot;

use super::request::{Job, Reply, Request, Work};
use crate::{
    server::{
        context::Context,
        programs::{Call, HostCallback},
        sessions::{Arrival, Direction, Filling, HostBuffer, Session, short},
    },
    status::{from_proto, status},
};

impl Request for LoadedHostCallbackPollRequest {
    type Work = Polling;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Polling>, Status> {
        let handle = self.loaded_host_callback_handle;
        let callback = session.table().callback(handle)?;
        let operands = session.host_buffers.fill(self.operand_host_buffer_handle)?;
        Ok(Job::Work(Polling { handle, callback, operands }))
    }
}

/// Waits for the next call of a function.
pub(super) struct Polling {
    handle: u64,
    callback: Arc<HostCallback>,
    /// Host buffer that receives the operands.
    operands: Filling,
}

impl Work for Polling {
    /// Waits for a call. An answer without a handle ends the polling.
    async fn run(self, session: Arc<Session>) -> Reply {
        let Self { handle, callback, operands } = self;
        let mut stop = session.context.stop.subscribe();
        let call = tokio::select! {
            call = callback.next() => call,
            () = session.ended() => None,
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let host_callback_execution_handle = match call {
            Some(call) => Some(take(&session, call, operands).await?),
            None => {
                session.table().drop_callback(handle);
                None
            }
        };
        Ok(Response::LoadedHostCallbackPollResponse(LoadedHostCallbackPollResponse {
            host_callback_execution_handle,
        }))
    }
}

/// Passes a call to the client: its operands as a host buffer, and a handle for the answer.
async fn take(session: &Session, call: Call, operands: Filling) -> Result<u64, Status> {
    let held = match session.hold(call.operands.len() as u64, Direction::Result).await {
        Ok(held) => held,
        Err(status) => {
            // An error answer is always valid.
            let _ = call.answer(Err(status.message().to_owned()));
            return Err(status);
        }
    };
    operands.finish(HostBuffer::of_bytes(call.operands.clone(), held));
    session.table().add_call(call)
}

impl Request for LoadedHostCallbackReturnRequest {
    type Work = Returning;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Returning>, Status> {
        let call = session.table().take_call(self.host_callback_execution_handle)?;
        let error = match &self.result {
            Some(Returned::ResultHostBufferHandle(handle)) => {
                let arriving = session.host_buffers.take(*handle, false)?;
                return Ok(Job::Work(Returning { call, handle: *handle, arriving }));
            }
            Some(Returned::Error(error)) => from_proto(error),
            None => None,
        };
        let words = error.map_or_else(
            || {
                "the client has answered a call of its program with neither results nor an error"
                    .to_owned()
            },
            |error| short(&error).message().to_owned(),
        );
        call.answer(Err(words)).map(|()| Job::Done(returned()))
    }
}

/// The results of a call that are arriving.
pub(super) struct Returning {
    call: Call,
    handle: u64,
    arriving: oneshot::Receiver<Result<Arrival, Status>>,
}

impl Work for Returning {
    async fn run(self, session: Arc<Session>) -> Reply {
        let Self { call, handle, arriving } = self;
        let results = results(&session, handle, arriving).await;
        match results {
            Ok(results) => call.answer(Ok(results))?,
            Err(status) => {
                // An error answer has no length to check.
                let _ = call.answer(Err(status.message().to_owned()));
                return Err(status);
            }
        }
        Ok(returned())
    }
}

async fn results(
    session: &Session,
    handle: u64,
    arriving: oneshot::Receiver<Result<Arrival, Status>>,
) -> Result<Bytes, Status> {
    match session.arrived(handle, arriving).await? {
        Arrival::Whole(buffer) => session.blocking(move || buffer.whole()).await,
        Arrival::Stream(_) => {
            Err(status!(Internal, "host buffer {handle} comes in pieces; it was asked for whole"))
        }
    }
}

fn returned() -> Response {
    Response::LoadedHostCallbackReturnResponse(LoadedHostCallbackReturnResponse {})
}
