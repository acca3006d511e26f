//! A session without a network.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{IfrtRequest, IfrtResponse},
};

use super::{
    registry::Registry,
    requests::{Answer, Asked, begin, respond},
    sessions::{Direction, HostBufferBuilder, Session},
};
use crate::{Agreement, status::status};

/// A session in this process: does what a server does for one client, request by request. Dropping
/// it ends the session.
pub struct LocalSession {
    registry: Arc<Registry>,
    session: Arc<Session>,
    answered: Arc<Mutex<u64>>,
}

impl fmt::Debug for LocalSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSession").field("number", &self.session.number).finish_non_exhaustive()
    }
}

impl LocalSession {
    pub(crate) fn new(registry: Arc<Registry>, session: Arc<Session>) -> Self {
        Self { registry, session, answered: Arc::default() }
    }

    #[cfg(test)]
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the negotiated versions.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        self.session.agreement
    }

    /// Executes a request and returns the answer. A request that needs a host buffer waits for it.
    pub async fn request(&mut self, request: IfrtRequest) -> IfrtResponse {
        self.begin(request).await
    }

    /// Starts a request at once; its answer can be awaited concurrently with those of others: a
    /// request for the next call of a function is answered when a program makes the call, which may
    /// be a program whose answer is awaited as well.
    pub fn begin(
        &mut self,
        request: IfrtRequest,
    ) -> impl Future<Output = IfrtResponse> + Send + use<> {
        let asked = Asked::now(&request);
        let answer = begin(&self.session, request.request.as_ref());
        let (session, answered) = (Arc::clone(&self.session), Arc::clone(&self.answered));
        async move {
            let reply = match answer {
                Answer::Now(reply) => reply,
                Answer::Later(reply) => reply.await,
            };
            let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
            respond(&session.context.gauges, asked, reply, &mut answered)
        }
    }

    /// Executes an encoded request and returns the answer.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the bytes are not a request.
    pub async fn request_bytes(&mut self, bytes: Bytes) -> Result<IfrtResponse, Status> {
        let request = IfrtRequest::decode(bytes)
            .map_err(|error| status!(InvalidArgument, "the bytes are no IfrtRequest: {error}"))?;
        Ok(self.request(request).await)
    }

    /// Stores a host buffer.
    ///
    /// # Errors
    /// ALREADY_EXISTS if the handle is in use; RESOURCE_EXHAUSTED if the buffer is too large.
    pub async fn store(&self, handle: u64, bytes: Bytes) -> Result<(), Status> {
        let filling = self.session.host_buffers.fill(handle)?;
        let size = bytes.len() as u64;
        let mut buffer =
            HostBufferBuilder::new(size, self.session.hold(size, Direction::Store).await?);
        buffer.cover(size, self.session.arriving(size).await?);
        buffer.push(bytes)?;
        filling.finish(buffer.finish()?);
        Ok(())
    }

    /// Returns the bytes of a host buffer.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn look_up(&self, handle: u64) -> Result<Bytes, Status> {
        let buffer = self.session.host_buffers.look_up(handle).await?;
        self.session.blocking(move || buffer.whole()).await
    }

    /// Deletes a host buffer.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub fn delete(&self, handle: u64) -> Result<(), Status> {
        self.session.host_buffers.delete(handle)
    }
}

impl Drop for LocalSession {
    fn drop(&mut self) {
        self.registry.end(&self.session);
    }
}
