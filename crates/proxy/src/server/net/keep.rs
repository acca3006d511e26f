//! The call with which our own client stores arrays of its session in the state.

use std::sync::{Arc, atomic::Ordering};

use serdes::{codec::Status, proto::xla::ifrt::proxy::GrpcHostBufferStoreMetadata};

use super::{
    call::{Answered, Call, metadata, one},
    frames::{Messages, Terms},
};
use crate::{
    keeping::{KeepRequest, KeepResponse},
    server::{
        deadline::within,
        peers::Identity,
        registry::Registry,
        sessions::Session,
        state::{Owner, Replacing},
    },
    service,
    status::status,
};

/// Answers the call: the arrays of the request replace those below its name.
pub(crate) async fn keep(registry: Arc<Registry>, call: Call) -> Answered {
    let Call { caller, metadata: given, body } = call;
    let key = service::STORE_METADATA;
    let metadata: GrpcHostBufferStoreMetadata = metadata(
        &given,
        key,
        || status!(InvalidArgument, "keeping arrays needs the metadata `{key}`"),
        |error| status!(InvalidArgument, "the metadata `{key}` cannot be read: {error}"),
    )?;
    let session = registry.session(metadata.session_id, &caller)?;
    let limits = &session.context.limits;
    let mut messages = Messages::new(body, Terms::of(&session.quotas.messages, limits));
    let request = messages.next(|_| ("request-bytes", limits.request_bytes));
    let request = within(limits.handshake_timeout, "the message of a call", request).await?;
    let Some(received) = request else {
        return Err(status!(InvalidArgument, "the call has no message; expected one"));
    };
    let request: KeepRequest = received.message;
    let previous = previous_owner(&registry, &session, &request.previous_token)?;
    let entries =
        session.quotas.messages.take_within(room_of(&request), limits.host_buffer_timeout);
    let entries = entries.await?;
    let turn = session.state.turn_to_replace().await;
    let kept = tokio::task::spawn_blocking(move || {
        // Held until the call is over, even if the client has stopped waiting.
        let (_turn, _room) = (turn, (received.room, entries));
        replace(&session, request, previous)
    });
    kept.await.map_err(|error| status!(Internal, "keeping arrays failed: {error}"))??;
    Ok(one(KeepResponse {}))
}

/// Returns the memory that the entries of a request take while it waits for its turn, beyond its
/// bytes: an entry may be as short as two bytes.
const fn room_of(request: &KeepRequest) -> u64 {
    /// Bytes of an entry, including the allocation for its name.
    const ENTRY: u64 = 64;
    /// Bytes that need no permit, so that small requests do not wait for large ones.
    const FREE: u64 = 64 << 10;
    (request.arrays.len() as u64 * ENTRY).saturating_sub(FREE)
}

/// Returns the owner of arrays that the client stored with another token of this server.
///
/// # Errors
/// UNAUTHENTICATED if the server does not have the token.
fn previous_owner(
    registry: &Registry,
    session: &Session,
    token: &str,
) -> Result<Option<Owner>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let digest = registry.access.digest_of(token.as_bytes()).ok_or_else(|| {
        registry.context.gauges.unauthenticated.fetch_add(1, Ordering::Relaxed);
        status!(
            Unauthenticated,
            "the previous token is none of this server's any more; what was kept by it is its own"
        )
    })?;
    let identity = Identity { token: Some(digest), ..session.identity };
    Ok(identity.owner().map(Owner::Known))
}

/// Stores the arrays of the request in the state.
///
/// # Errors
/// The error of a handle without an array, and of
/// [`State::replace`](crate::server::state::State::replace).
fn replace(session: &Session, request: KeepRequest, previous: Option<Owner>) -> Result<(), Status> {
    // The arrays belong to the session until the state has them.
    let table = session.table();
    let arrays = request.arrays.into_iter();
    let arrays = arrays.map(|one| Ok((one.handle, one.name, table.array(one.handle)?)));
    let arrays = arrays.collect::<Result<_, Status>>()?;
    let reserve = |name: &str, header, bytes| session.quotas.kept_name(name, header, bytes);
    let replacing = Replacing { below: request.name, arrays, previous, reserve: &reserve };
    session.state.replace(&session.names, replacing)?;
    // The arrays have other names now, which do not count for the session.
    session.shrink_names(&table);
    Ok(())
}
