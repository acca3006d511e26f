//! Notifications of `serdes serve` to the manager of services: that it is ready, and that it stops.
//!
//! This is the protocol of systemd, which others speak, too: a datagram to the socket that
//! `NOTIFY_SOCKET` names. Without one nothing happens.

use std::{net::SocketAddr, time::Duration};

#[cfg(target_os = "linux")]
use sd_notify::NotifyState;

/// Clients are served.
#[cfg(target_os = "linux")]
pub(super) fn ready(address: SocketAddr) {
    let status = format!("serving on {address}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The server is about to stop, which takes no longer than that: the manager is not to kill it
/// before.
#[cfg(target_os = "linux")]
pub(super) fn stopping(limit: Duration) {
    let limit = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
    let status = "open sessions end, then the state is saved";
    notify(&[
        NotifyState::Stopping,
        NotifyState::Status(status),
        NotifyState::ExtendTimeoutUsec(limit),
    ]);
}

#[cfg(target_os = "linux")]
fn notify(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        tracing::warn!(%error, "the manager of services could not be told");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn ready(_: SocketAddr) {}

#[cfg(not(target_os = "linux"))]
pub(super) fn stopping(_: Duration) {}
