//! The health service of gRPC (`grpc.health.v1.Health`), on the listener of the proxy.
//!
//! All clients that reach the listener may ask, with or without a token: load balancers cannot send
//! one, and the answer says only if new sessions are accepted. Client certificates are required as
//! for every connection. So that untrusted clients cannot abuse them, these calls have separate
//! limits, and do not keep a connection from being idle.

use std::sync::Arc;

use serdes::codec::Status;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;

use super::{
    call::{Answered, many, one},
    frames::only,
};
use crate::{
    health::{CheckRequest, CheckResponse, Health},
    server::{
        budget::{Peer, Permit, Quota},
        registry::Registry,
    },
    service,
    status::status,
};

/// Returns true if a call is one of the health service.
pub(crate) fn is_health(path: &str) -> bool {
    matches!(path, service::HEALTH_CHECK | service::HEALTH_WATCH)
}

/// Reserves such a call.
///
/// # Errors
/// RESOURCE_EXHAUSTED.
pub(crate) fn room(registry: &Registry, peer: &Arc<Peer>) -> Result<Permit, Status> {
    let levels = vec![peer.budgets.health.clone(), registry.context.budgets.health.clone()];
    Quota::new(levels, Some(Arc::clone(peer))).take_now(1)
}

/// Answers one of these calls.
pub(crate) async fn answer(registry: Arc<Registry>, path: &str, body: Body) -> Answered {
    let limit = registry.context.limits.handshake_timeout;
    let request: CheckRequest = only(body, limit).await?;
    let known = matches!(request.service.as_str(), "" | service::NAME);
    if path == service::HEALTH_WATCH {
        return Ok(watch(&registry, known));
    }
    if !known {
        return Err(status!(
            NotFound,
            "this server has no service `{}`; it has {}",
            request.service.chars().take(100).collect::<String>().escape_debug(),
            service::NAME
        ));
    }
    Ok(one(CheckResponse::of(health(&registry))))
}

fn health(registry: &Registry) -> Health {
    let context = &registry.context;
    let is_over = *context.draining.borrow() || *context.stop.borrow();
    if is_over { Health::NotServing } else { Health::Serving }
}

/// Sends the server's health, and again on each change, until it stops.
fn watch(registry: &Arc<Registry>, known: bool) -> tonic::codegen::http::Response<Body> {
    let (sender, receiver) = mpsc::channel(1);
    let registry = Arc::clone(registry);
    tokio::spawn(async move {
        let mut draining = registry.context.draining.subscribe();
        let mut stop = registry.context.stop.subscribe();
        let mut said = None;
        loop {
            let health = if known { health(&registry) } else { Health::UnknownService };
            if said != Some(health) {
                said = Some(health);
                let answer = Ok(CheckResponse::of(health));
                tokio::select! {
                    sent = sender.send(answer) => if sent.is_err() { return },
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
            tokio::select! {
                changed = draining.changed() => if changed.is_err() { return },
                _ = stop.wait_for(|stop| *stop) => break,
                () = sender.closed() => return,
            }
        }
        let over = Err(status!(Unavailable, "the server is stopping"));
        // Do not wait for a client that does not read it.
        let _ = sender.try_send(over);
    });
    many(ReceiverStream::new(receiver))
}
