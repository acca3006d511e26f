//! The calls that carry host buffers.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response};

use super::{
    Shared,
    element::zeroed,
    grpc::metadata,
    host_buffer::{Filling, Held, HostBuffer, HostBufferBuilder, HostBufferReader, wrong_size},
    session::{Direction, Session, within},
};
use crate::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        GrpcHostBufferDeleteRequest, GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest,
        GrpcHostBufferLookupResponse, GrpcHostBufferReadFromDiskRequest,
        GrpcHostBufferReadFromDiskResponse, GrpcHostBufferStoreMetadata,
        GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse,
    },
    proxy::{
        service::{self, Inbound},
        status::{from_grpc, status, to_grpc},
    },
};

/// Where a store's bytes go, and how many they are.
///
/// # Errors
/// NOT_FOUND for an unknown session; INVALID_ARGUMENT for a negative size; ALREADY_EXISTS.
fn announced(
    shared: &Arc<Shared>,
    metadata: &GrpcHostBufferStoreMetadata,
) -> Result<(Arc<Session>, Filling, u64), Status> {
    let session = shared.session(metadata.session_id)?;
    let size = u64::try_from(metadata.buffer_size).map_err(|_| {
        status!(
            InvalidArgument,
            "a host buffer of {} bytes; expected 0 or more",
            metadata.buffer_size
        )
    })?;
    let filling = session.host_buffers.fill(metadata.handle)?;
    Ok((session, filling, size))
}

pub(super) async fn store(
    shared: Arc<Shared>,
    request: Inbound<GrpcHostBufferStoreRequest>,
) -> Result<Response<GrpcHostBufferStoreResponse>, tonic::Status> {
    let _counted = shared.gauges.hold(|gauges| &gauges.tasks, 1);
    let stored = async {
        let metadata: GrpcHostBufferStoreMetadata = metadata(
            &request,
            service::STORE_METADATA,
            || {
                status!(
                    Internal,
                    "HostBufferStore needs the metadata `{}`",
                    service::STORE_METADATA
                )
            },
            |error| {
                status!(
                    DataLoss,
                    "the metadata of HostBufferStore is no GrpcHostBufferStoreMetadata: {error}"
                )
            },
        )?;
        let (session, filling, size) = announced(&shared, &metadata)?;
        let received = receive(&shared, &session, &filling, size, request.into_inner()).await;
        match received {
            Ok(Some(buffer)) => filling.finish(buffer),
            Ok(None) => filling.streamed(),
            Err(status) => {
                filling.fail(status.clone());
                return Err(status);
            }
        }
        Ok(())
    };
    match stored.await {
        Ok(()) => Ok(Response::new(GrpcHostBufferStoreResponse {})),
        Err(status) => {
            tracing::debug!(code = %status.code(), message = status.message(), "store failed");
            Err(to_grpc(&status))
        }
    }
}

/// Where received bytes go.
enum Target {
    /// Into the store.
    Store(HostBufferBuilder),
    /// Into an array that waits for them.
    Array { pieces: mpsc::Sender<Result<Bytes, Status>>, size: u64, received: u64, _held: Held },
}

impl Target {
    async fn push(&mut self, piece: Bytes) -> Result<(), Status> {
        match self {
            Self::Store(buffer) => buffer.push(piece),
            Self::Array { pieces, size, received, .. } => {
                *received = received.saturating_add(piece.len() as u64);
                if received > size {
                    return Err(wrong_size(*size, *received));
                }
                if !piece.is_empty() {
                    // An array that could not be made does not take the rest.
                    let _ = pieces.send(Ok(piece)).await;
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Option<HostBuffer>, Status> {
        match self {
            Self::Store(buffer) => buffer.finish().map(Some),
            Self::Array { size, received, .. } if size != received => {
                Err(wrong_size(size, received))
            }
            Self::Array { .. } => Ok(None),
        }
    }
}

/// Receives a host buffer; `None` if an array has taken it.
async fn receive(
    shared: &Shared,
    session: &Session,
    filling: &Filling,
    size: u64,
    stream: tonic::Streaming<GrpcHostBufferStoreRequest>,
) -> Result<Option<HostBuffer>, Status> {
    let held = session.hold(size, Direction::Store).await?;
    let pieces = if size == 0 { None } else { filling.stream(size) };
    let mut target = match &pieces {
        Some(pieces) => Target::Array { pieces: pieces.clone(), size, received: 0, _held: held },
        None => Target::Store(HostBufferBuilder::new(size, held)),
    };
    let received = tokio::select! {
        received = receive_into(shared, &mut target, stream) => received,
        () = session.ended() => Err(status!(Cancelled, "the session is over")),
    };
    let received = received.and_then(|()| target.finish());
    if let (Err(status), Some(pieces)) = (&received, pieces) {
        let _ = pieces.send(Err(status.clone())).await;
    }
    received
}

async fn receive_into(
    shared: &Shared,
    target: &mut Target,
    mut stream: tonic::Streaming<GrpcHostBufferStoreRequest>,
) -> Result<(), Status> {
    let mut stop = shared.stop.subscribe();
    loop {
        let message = async { stream.message().await.map_err(|error| from_grpc(&error)) };
        let message = within(shared.limits.idle_timeout, "the next part of a host buffer", message);
        let message = tokio::select! {
            message = message => message?,
            _ = stop.wait_for(|stop| *stop) => return Err(status!(Unavailable, "the server is stopping")),
        };
        match message {
            Some(message) => target.push(message.data).await?,
            None => return Ok(()),
        }
    }
}

type Chunks = ReceiverStream<Result<GrpcHostBufferLookupResponse, tonic::Status>>;

pub(super) async fn look_up(
    shared: Arc<Shared>,
    request: Request<GrpcHostBufferLookupRequest>,
) -> Result<Response<Chunks>, tonic::Status> {
    let request = request.into_inner();
    let found = async {
        let session = shared.session(request.session_id)?;
        let limit = shared.limits.host_buffer_timeout;
        within(limit, "a host buffer", session.host_buffers.look_up(request.handle)).await
    };
    let buffer = found.await.map_err(|status| to_grpc(&status))?;
    let (sender, receiver) = mpsc::channel(2);
    let counted = shared.gauges.hold(|gauges| &gauges.tasks, 1);
    let limit = shared.limits.idle_timeout;
    tokio::spawn(async move {
        let _counted = counted;
        let mut reader = HostBufferReader::new(buffer);
        loop {
            let read = shared.blocking(move || reader.read().map(|bytes| (reader, bytes))).await;
            let (next, mut rest) = match read {
                Ok((next, Some(bytes))) => (next, bytes),
                Ok((_, None)) => return,
                Err(status) => {
                    drop(tokio::time::timeout(limit, sender.send(Err(to_grpc(&status)))).await);
                    return;
                }
            };
            reader = next;
            while !rest.is_empty() {
                let data: Bytes = rest.split_to(rest.len().min(service::CHUNK_BYTES));
                let sent = sender.send(Ok(GrpcHostBufferLookupResponse { data }));
                if !matches!(tokio::time::timeout(limit, sent).await, Ok(Ok(()))) {
                    return;
                }
            }
        }
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

pub(super) async fn delete(
    shared: Arc<Shared>,
    request: Request<GrpcHostBufferDeleteRequest>,
) -> Result<Response<GrpcHostBufferDeleteResponse>, tonic::Status> {
    let request = request.into_inner();
    shared
        .session(request.session_id)
        .and_then(|session| session.host_buffers.delete(request.handle))
        .map_err(|status| to_grpc(&status))?;
    Ok(Response::new(GrpcHostBufferDeleteResponse {}))
}

/// A host buffer that the client has written to a directory that both see.
pub(super) async fn read_from_disk(
    shared: Arc<Shared>,
    request: Request<GrpcHostBufferReadFromDiskRequest>,
) -> Result<Response<GrpcHostBufferReadFromDiskResponse>, tonic::Status> {
    let _counted = shared.gauges.hold(|gauges| &gauges.tasks, 1);
    let read = async {
        let metadata = request.into_inner().metadata;
        let metadata = metadata
            .ok_or_else(|| status!(InvalidArgument, "HostBufferReadFromDisk needs its metadata"))?;
        let directory = shared.transfer_directory.clone().ok_or_else(|| {
            status!(FailedPrecondition, "this server has no directory for large transfers; send the host buffer by HostBufferStore")
        })?;
        let (session, filling, size) = announced(&shared, &metadata)?;
        let held = session.hold(size, Direction::Store).await?;
        let path = directory.join(format!("lt_{}", metadata.handle));
        let bytes = shared.blocking(move || read_file(&path, size)).await;
        let buffer = bytes.and_then(|bytes| {
            let mut buffer = HostBufferBuilder::new(size, held);
            buffer.push(bytes.into())?;
            buffer.finish()
        });
        match buffer {
            Ok(buffer) => filling.finish(buffer),
            Err(status) => {
                filling.fail(status.clone());
                return Err(status);
            }
        }
        Ok(())
    };
    match read.await {
        Ok(()) => Ok(Response::new(GrpcHostBufferReadFromDiskResponse {})),
        Err(status) => Err(to_grpc(&status)),
    }
}

/// Reads a file of exactly that size, and removes it.
fn read_file(path: &Path, size: u64) -> Result<Vec<u8>, Status> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            status!(NotFound, "there is no file `{}` for the host buffer", path.display())
        }
        _ => status!(Internal, "reading `{}`: {error}", path.display()),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || found.len() != size {
        return Err(status!(
            DataLoss,
            "`{}` has {} bytes; expected {size}",
            path.display(),
            found.len()
        ));
    }
    let mut bytes = zeroed(size)?;
    (&file).read_exact(&mut bytes).map_err(failed)?;
    std::fs::remove_file(path).map_err(failed)?;
    Ok(bytes)
}
