//! Notifies the service manager that `serdes serve` is ready or stops.
//!
//! This is the protocol of systemd, which others also support: a datagram to the socket in
//! `NOTIFY_SOCKET`. Without the variable nothing is sent.

use std::{net::SocketAddr, time::Duration};

#[cfg(target_os = "linux")]
use sd_notify::NotifyState;

/// Reports that clients are served.
#[cfg(target_os = "linux")]
pub(super) fn ready(address: SocketAddr) {
    let status = format!("serving on {address}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Reports that the server is about to stop within the limit, before which the manager should not
/// kill it.
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
