//! The stream of a session's small arrays, which carries many of them concurrently.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use prost::Message as _;
use serdes::codec::Status;
use tokio::{runtime::Handle, sync::oneshot, task::AbortHandle};
use tonic::{
    Streaming, body::Body, codec::Codec as _, codegen::http::StatusCode as HttpStatus,
    metadata::MetadataValue,
};
use tonic_prost::ProstCodec;

use super::transport::Transport;
use crate::{
    ProxyError, requests, service,
    small_transfers::{Outbox, Outgone, SmallTransfer, SmallTransferred},
    status::{from_grpc, from_proto, status},
};

type Waiter = oneshot::Sender<Result<Bytes, Status>>;

/// Pending transfers by the number of their answer, or a mark that no further answer will come.
#[derive(Default)]
struct Waiting {
    by_op: HashMap<u64, Waiter>,
    is_over: bool,
}

/// The stream of a session's small arrays. Dropping it ends the stream.
pub(super) struct SmallTransfers {
    outbox: Arc<Outbox>,
    waiting: Arc<Mutex<Waiting>>,
    reader: AbortHandle,
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SmallTransfers {
    /// Opens the stream of a session without waiting.
    pub(super) fn open(transport: &Transport, session: u64, runtime: &Handle) -> Self {
        let (outbox, waiting) = (Arc::default(), Arc::default());
        let reader =
            read_all(transport.clone(), session, Arc::clone(&outbox), Arc::clone(&waiting));
        Self { outbox, waiting, reader: runtime.spawn(reader).abort_handle() }
    }

    /// Sends a request with the data of its host buffer; the answer is the data of the host buffer
    /// that it fills. Returns `None` and sends nothing if the stream has ended.
    pub(super) fn send(
        &self,
        transfer: &SmallTransfer,
    ) -> Option<impl Future<Output = Result<Bytes, ProxyError>> + Send + use<>> {
        let metadata = transfer.request.as_ref()?.request_metadata.as_ref()?;
        let op_id = metadata.op_id;
        let (sender, receiver) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.is_over {
            return None;
        }
        waiting.by_op.insert(op_id, sender);
        drop(waiting);
        self.outbox.push(transfer, None);
        Some(async {
            let gone = |_| Err(status!(Unavailable, "the session is over"));
            Ok(receiver.await.unwrap_or_else(gone)?)
        })
    }

    /// Ends the stream, as a server may.
    #[cfg(test)]
    pub(super) async fn end(&self) {
        self.outbox.close();
        while !lock(&self.waiting).is_over {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for SmallTransfers {
    fn drop(&mut self) {
        self.reader.abort();
        self.outbox.close();
    }
}

/// Hands answers to the waiting callers, until the stream ends.
async fn read_all(
    transport: Transport,
    session: u64,
    outbox: Arc<Outbox>,
    waiting: Arc<Mutex<Waiting>>,
) {
    let over = match read(&transport, session, &outbox, &waiting).await {
        Ok(()) => status!(Unavailable, "the server ended the stream of small arrays"),
        Err(error) => error,
    };
    let mut waiting = lock(&waiting);
    waiting.is_over = true;
    outbox.close();
    for (_, waiter) in waiting.by_op.drain() {
        drop(waiter.send(Err(over.clone())));
    }
}

async fn read(
    transport: &Transport,
    session: u64,
    outbox: &Arc<Outbox>,
    waiting: &Mutex<Waiting>,
) -> Result<(), Status> {
    let mut call = transport.call(());
    let metadata = requests::store_metadata(session, 0, 0).encode_to_vec();
    let metadata = MetadataValue::from_bytes(&metadata);
    call.metadata_mut().insert_bin(service::STORE_METADATA, metadata);
    let body = Body::new(Outgone(Arc::clone(outbox)));
    let answer = transport.send(service::SMALL_TRANSFERS, call, body).await?;
    let decoder = ProstCodec::<SmallTransfer, SmallTransferred>::default().decoder();
    let most = Some(service::ANSWER_BYTES);
    let body = answer.into_body();
    let mut answers = Streaming::new_response(decoder, body, HttpStatus::OK, None, most);
    while let Some(answer) = answers.message().await.map_err(|error| from_grpc(&error))? {
        let Some(waiter) = lock(waiting).by_op.remove(&answer.op_id) else { continue };
        let error = answer.status.as_ref().and_then(from_proto);
        drop(waiter.send(error.map_or(Ok(answer.data), Err)));
    }
    Ok(())
}
