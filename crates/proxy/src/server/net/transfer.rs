//! Calls that transfer host buffers.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        GrpcHostBufferDeleteRequest, GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest,
        GrpcHostBufferReadFromDiskRequest, GrpcHostBufferReadFromDiskResponse,
        GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse,
    },
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::http::HeaderValue;

use super::{
    call::{Answered, Call, data, done, metadata, one},
    directory::take_file,
    frames::{Messages, Received, Terms, only},
    transfer_request,
};
use crate::{
    server::{
        arrays::{Next, Pieces as _},
        budget::Permit,
        deadline::within,
        peers::Caller,
        registry::Registry,
        sessions::{
            Direction, Filling, Held, HostBuffer, HostBufferBuilder, HostBufferReader, Piece,
            Session, wrong_size,
        },
    },
    service,
    status::status,
};

/// Returns the destination and size of a store.
///
/// # Errors
/// NOT_FOUND for an unknown session; INVALID_ARGUMENT for a negative size; ALREADY_EXISTS.
fn announced(
    registry: &Registry,
    caller: &Caller,
    metadata: &GrpcHostBufferStoreMetadata,
) -> Result<(Arc<Session>, Filling, u64), Status> {
    let session = registry.session(metadata.session_id, caller)?;
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

pub(crate) async fn store(registry: Arc<Registry>, call: Call) -> Answered {
    let _counted = registry.context.gauges.hold(|gauges| &gauges.tasks, 1);
    let Call { caller, metadata: given, body } = call;
    let key = service::STORE_METADATA;
    let metadata: GrpcHostBufferStoreMetadata = metadata(
        &given,
        key,
        || status!(Internal, "HostBufferStore needs the metadata `{key}`"),
        |error| {
            status!(
                DataLoss,
                "the metadata of HostBufferStore is no GrpcHostBufferStoreMetadata: {error}"
            )
        },
    )?;
    let request = transfer_request::of_metadata(&given)?;
    let (session, filling, size) = announced(&registry, &caller, &metadata)?;
    let chunks = Messages::new(body, Terms::of(&session.quotas.arrived, &session.context.limits));
    let stored = take_in(&session, filling, size, chunks);
    match request {
        Some(request) if transfer_request::makes(&request, metadata.handle) => {
            let _permit = session.quotas.requests.take(1).await?;
            let (stored, made) =
                tokio::join!(stored, transfer_request::take_up(&session, &request));
            // If the array was not created, its error explains why the buffer was not stored.
            stored.and(made)?;
        }
        Some(_) => return Err(transfer_request::wrong(metadata.handle)),
        None => stored.await?,
    }
    if given.contains_key(service::BRIEF) {
        return Ok(done());
    }
    Ok(one(GrpcHostBufferStoreResponse {}))
}

/// Receives a host buffer, and passes it to the waiting request.
async fn take_in(
    session: &Session,
    filling: Filling,
    size: u64,
    chunks: Messages<GrpcHostBufferStoreRequest>,
) -> Result<(), Status> {
    match receive(session, &filling, size, chunks).await {
        Ok(Some(buffer)) => filling.finish(buffer),
        Ok(None) => filling.streamed(),
        Err(status) => {
            tracing::debug!(code = %status.code(), reason = status.message(), "store failed");
            filling.fail(status.clone());
            return Err(status);
        }
    }
    Ok(())
}

/// Destination of received bytes.
enum Target {
    /// The store of host buffers.
    Store(HostBufferBuilder),
    /// An array that waits for the bytes.
    Array { pieces: mpsc::Sender<Result<Piece, Status>>, size: u64, received: u64, _held: Held },
}

impl Target {
    async fn push(
        &mut self,
        session: &Session,
        part: Vec<Bytes>,
        room: Option<Permit>,
    ) -> Result<(), Status> {
        match self {
            Self::Store(buffer) => {
                // Surplus bytes are refused without waiting for a permit.
                let needs = buffer.needs(length_of(&part));
                if needs > 0 {
                    // Release the permit of the message: the bytes would otherwise wait for their
                    // own permit.
                    drop(room);
                    buffer.cover(needs, session.arriving(needs).await?);
                }
                part.into_iter().try_for_each(|piece| buffer.push(piece))
            }
            Self::Array { pieces, size, received, .. } => {
                *received = received.saturating_add(length_of(&part));
                if received > size {
                    return Err(wrong_size(*size, *received));
                }
                if !part.is_empty() {
                    // An array that failed does not take the rest.
                    let _ = pieces.send(Ok(Piece { bytes: part, _room: room })).await;
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

fn length_of(part: &[Bytes]) -> u64 {
    part.iter().map(|piece| piece.len() as u64).sum()
}

/// Receives a host buffer; `None` if an array has taken it.
async fn receive(
    session: &Session,
    filling: &Filling,
    size: u64,
    chunks: Messages<GrpcHostBufferStoreRequest>,
) -> Result<Option<HostBuffer>, Status> {
    let (pieces, held) = tokio::select! {
        found = target(session, filling, size) => found?,
        () = session.ended() => return Err(status!(Cancelled, "the session is over")),
    };
    let mut target = match &pieces {
        Some(pieces) => Target::Array { pieces: pieces.clone(), size, received: 0, _held: held },
        None => Target::Store(HostBufferBuilder::new(size, held)),
    };
    let received = tokio::select! {
        received = receive_into(session, &mut target, chunks) => received,
        () = session.ended() => Err(status!(Cancelled, "the session is over")),
    };
    let received = received.and_then(|()| target.finish());
    if let (Err(status), Some(pieces)) = (&received, pieces) {
        let _ = pieces.send(Err(status.clone())).await;
    }
    received
}

/// Maximum size in bytes of a store that is received completely first.
const SMALL: u64 = 64 << 10;

type Pieces = mpsc::Sender<Result<Piece, Status>>;

/// Returns the destination of a store's bytes, and their permit: an array that reads them as they
/// arrive needs no permit for all of them, and so may be larger than a session's store limit.
///
/// # Errors
/// RESOURCE_EXHAUSTED.
async fn target(
    session: &Session,
    filling: &Filling,
    size: u64,
) -> Result<(Option<Pieces>, Held), Status> {
    let limits = &session.context.limits;
    // A small buffer is written in one scheduling turn, not in one for each piece.
    if size <= SMALL {
        return Ok((None, session.hold(size, Direction::Store).await?));
    }
    let pieces = if size <= limits.session_host_bytes {
        let held = tokio::select! {
            biased;
            Some(pieces) = filling.streams_to(size) => Ok(pieces),
            held = session.hold(size, Direction::Store) => Err(held?),
        };
        match held {
            Ok(pieces) => Some(pieces),
            Err(held) => return Ok((None, held)),
        }
    } else if size <= limits.session_array_bytes {
        // The request for the array has usually arrived, or is about to.
        let limit = limits.host_buffer_timeout;
        tokio::time::timeout(limit, filling.streams_to(size)).await.ok().flatten()
    } else {
        None
    };
    match pieces {
        Some(pieces) => Ok((Some(pieces), session.pass_through(size).await?)),
        None => Ok((None, session.hold(size, Direction::Store).await?)),
    }
}

async fn receive_into(
    session: &Session,
    target: &mut Target,
    mut chunks: Messages<GrpcHostBufferStoreRequest>,
) -> Result<(), Status> {
    let mut stop = session.context.stop.subscribe();
    loop {
        let chunk = async {
            let idle = session.context.limits.idle_timeout;
            within(idle, "the next part of a host buffer", chunks.begin()).await?;
            chunks.next_data("bytes of a part of a host buffer", service::MESSAGE_BYTES).await
        };
        let chunk = tokio::select! {
            chunk = chunk => chunk?,
            _ = stop.wait_for(|stop| *stop) => return Err(status!(Unavailable, "the server is stopping")),
        };
        match chunk {
            Some(Received { message, room }) => {
                let bytes = length_of(&message);
                session.context.gauges.received_bytes.fetch_add(bytes, Ordering::Relaxed);
                target.push(session, message, room).await?;
            }
            None => return Ok(()),
        }
    }
}

/// A host buffer that is released when it was looked up, or the look-up is dropped.
pub(super) struct Taken<'a> {
    pub(super) session: &'a Session,
    pub(super) handle: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // Another request may have deleted it; the looked-up bytes are still valid.
        let _ = self.session.host_buffers.delete(self.handle);
    }
}

pub(crate) async fn look_up(registry: Arc<Registry>, call: Call) -> Answered {
    let request: GrpcHostBufferLookupRequest =
        only(call.body, registry.context.limits.idle_timeout).await?;
    let session = registry.session(request.session_id, &call.caller)?;
    let limit = registry.context.limits.host_buffer_timeout;
    let takes = call.metadata.contains_key(service::TAKE);
    let taken = takes.then(|| Taken { session: &session, handle: request.handle });
    if let Some(fills) = transfer_request::of_metadata(&call.metadata)? {
        if !transfer_request::fills(&fills, request.handle) {
            return Err(transfer_request::wrong(request.handle));
        }
        let _permit = session.quotas.requests.take(1).await?;
        transfer_request::take_up(&session, &fills).await?;
    }
    let early = session.host_buffers.look_up_early(request.handle);
    let buffer = within(limit, "a host buffer", early).await?;
    drop(taken);
    let mut answer = send(&registry, &session, buffer).await?;
    if takes {
        answer.headers_mut().insert(service::TAKE, HeaderValue::from_static("taken"));
    }
    Ok(answer)
}

/// Returns an answer with the bytes of a host buffer: without copying if they are on the host, or
/// read piece by piece.
async fn send(registry: &Registry, session: &Arc<Session>, buffer: Arc<HostBuffer>) -> Answered {
    if let Some(pieces) = buffer.pieces() {
        let parts: Vec<Bytes> = pieces.iter().flat_map(parts_of).collect();
        let bytes: usize = parts.iter().map(Bytes::len).sum();
        session.context.gauges.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let parts = parts.into_iter().map(move |part| {
            // Counts until its last part was sent.
            let _buffer = &buffer;
            Ok(part)
        });
        return Ok(data(tokio_stream::iter(parts)));
    }
    // Permit for bytes that are read ahead for a slow client.
    let ahead = match HostBufferReader::most_ahead(&buffer) {
        0 => None,
        ahead => Some(session.hold(ahead, Direction::Result).await?),
    };
    let (sender, receiver) = mpsc::channel(2);
    let counted = registry.context.gauges.hold(|gauges| &gauges.tasks, 1);
    let limit = registry.context.limits.idle_timeout;
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let (_counted, _ahead) = (counted, ahead);
        let mut reader = HostBufferReader::new(buffer);
        loop {
            let read = session.blocking(move || reader.next().map(|next| (reader, next))).await;
            let piece = match read {
                Ok((_, Next::End)) => return,
                Ok((next, piece)) => {
                    reader = next;
                    match piece {
                        Next::Bytes(bytes) => bytes,
                        Next::Working | Next::End => Bytes::new(),
                    }
                }
                Err(status) => {
                    drop(tokio::time::timeout(limit, sender.send(Err(status))).await);
                    return;
                }
            };
            for part in parts_of(&piece) {
                let bytes = part.len() as u64;
                let sent = sender.send(Ok(part));
                if !matches!(tokio::time::timeout(limit, sent).await, Ok(Ok(()))) {
                    return;
                }
                session.context.gauges.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
    });
    Ok(data(ReceiverStream::new(receiver)))
}

/// Splits a piece into the parts of messages.
fn parts_of(piece: &Bytes) -> impl Iterator<Item = Bytes> + use<> {
    let piece = piece.clone();
    (0..piece.len())
        .step_by(service::CHUNK_BYTES)
        .map(move |start| piece.slice(start..piece.len().min(start + service::CHUNK_BYTES)))
}

pub(crate) async fn delete(registry: Arc<Registry>, call: Call) -> Answered {
    let request: GrpcHostBufferDeleteRequest =
        only(call.body, registry.context.limits.idle_timeout).await?;
    let session = registry.session(request.session_id, &call.caller)?;
    session.host_buffers.delete(request.handle)?;
    Ok(one(GrpcHostBufferDeleteResponse {}))
}

/// Receives a host buffer that the client has written to a shared directory.
pub(crate) async fn read_from_disk(registry: Arc<Registry>, call: Call) -> Answered {
    let _counted = registry.context.gauges.hold(|gauges| &gauges.tasks, 1);
    let request: GrpcHostBufferReadFromDiskRequest =
        only(call.body, registry.context.limits.idle_timeout).await?;
    let metadata = request
        .metadata
        .ok_or_else(|| status!(InvalidArgument, "HostBufferReadFromDisk needs its metadata"))?;
    let directory = registry.transfer_directory.clone().ok_or_else(|| {
        status!(FailedPrecondition, "this server has no directory for large transfers; send the host buffer by HostBufferStore")
    })?;
    let (session, filling, size) = announced(&registry, &call.caller, &metadata)?;
    let read = async {
        let held = session.hold(size, Direction::Store).await?;
        let room = session.arriving(size).await?;
        let bytes = session.blocking(move || take_file(&directory, metadata.handle, size)).await?;
        let mut buffer = HostBufferBuilder::new(size, held);
        buffer.cover(size, room);
        buffer.push(bytes.into())?;
        buffer.finish()
    };
    match read.await {
        Ok(buffer) => filling.finish(buffer),
        Err(status) => {
            filling.fail(status.clone());
            return Err(status);
        }
    }
    Ok(one(GrpcHostBufferReadFromDiskResponse {}))
}
