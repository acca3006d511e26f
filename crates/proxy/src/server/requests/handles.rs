//! Requests about handles: futures, readiness of arrays, deletions.

use std::sync::Arc;

use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        CheckFutureRequest, CheckFutureResponse, CheckValueReadyRequest, CheckValueReadyResponse,
        DeleteArrayRequest, DeleteArrayResponse, DestructArrayRequest, DestructArrayResponse,
        IsArrayDeletedRequest, IsArrayDeletedResponse, ifrt_response::Response,
    },
};

use super::request::{Job, Nothing, Reply, Request, Work};
use crate::server::{
    arrays::Array,
    context::Context,
    promise::Promised,
    sessions::{Entry, Session, short},
};

impl Request for CheckFutureRequest {
    type Work = CheckFuture;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<CheckFuture>, Status> {
        let outcome = session.table().take_future(self.future_handle)?;
        match outcome.now() {
            None => Ok(Job::Work(CheckFuture(outcome))),
            Some(outcome) => outcome.map(|()| Job::Done(checked())),
        }
    }
}

/// Waits for the result of a future.
pub(super) struct CheckFuture(Promised<()>);

impl Work for CheckFuture {
    async fn run(self, _: Arc<Session>) -> Reply {
        self.0.wait().await.map(|()| checked())
    }
}

fn checked() -> Response {
    Response::CheckFutureResponse(CheckFutureResponse {})
}

impl Request for CheckValueReadyRequest {
    type Work = CheckValueReady;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<CheckValueReady>, Status> {
        session.table().arrays(&self.value_handles).map(CheckValueReady).map(Job::Work)
    }
}

/// Waits for arrays.
pub(super) struct CheckValueReady(Vec<Arc<Array>>);

impl Work for CheckValueReady {
    async fn run(self, _: Arc<Session>) -> Reply {
        for array in self.0 {
            array.wait().await?;
        }
        Ok(Response::CheckValueReadyResponse(CheckValueReadyResponse {}))
    }
}

impl Request for DeleteArrayRequest {
    type Work = Nothing;

    /// Deletes as many arrays as possible; the future reports failures.
    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let mut table = session.table();
        let mut outcome = Ok(());
        for handle in &self.array_handle {
            let deleted = match table.array(*handle) {
                Ok(array) => session.state.delete(&session.names, *handle, &array),
                Err(_) => Ok(()),
            };
            outcome = outcome.and(deleted.and_then(|()| table.delete(*handle)));
        }
        let outcome = outcome.map_err(|status| short(&status));
        let deletion_future_handle = table.future(Promised::known(outcome))?;
        Ok(Job::Done(Response::DeleteArrayResponse(DeleteArrayResponse { deletion_future_handle })))
    }
}

impl Request for IsArrayDeletedRequest {
    type Work = Nothing;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let deleted = match session.table().entry(self.array_handle)? {
            Entry::Live(_) => false,
            Entry::Deleted => true,
            Entry::Failed(status) => return Err(status.clone()),
        };
        Ok(Job::Done(Response::IsArrayDeletedResponse(IsArrayDeletedResponse { deleted })))
    }
}

impl Request for DestructArrayRequest {
    type Work = Nothing;

    /// Removes as many handles as possible; the error names the first invalid one.
    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let mut table = session.table();
        let mut outcome = Ok(());
        let mut shown = session.names.shown();
        for handle in &self.array_handle {
            outcome = outcome.and(table.destruct(*handle));
            shown.remove(handle);
        }
        drop(shown);
        session.shrink_names(&table);
        outcome.map(|()| Job::Done(Response::DestructArrayResponse(DestructArrayResponse {})))
    }
}
