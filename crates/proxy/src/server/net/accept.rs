//! Accepts connections, and retries while the system cannot provide one.

use std::{io, net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpStream};

use crate::ProxyError;

/// A source of connections.
pub(crate) trait Accept {
    /// Waits for the next connection.
    ///
    /// # Errors
    /// The error of the system's `accept`.
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Accept for TcpListener {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        Self::accept(self)
    }
}

/// First wait after the system could not accept a connection; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(5);
/// Longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// Accepts connections from a listener, and backs off while the system is out of descriptors or
/// memory.
pub(crate) struct Accepting<L> {
    listener: L,
    wait: Duration,
}

impl<L: Accept> Accepting<L> {
    pub(crate) const fn new(listener: L) -> Self {
        Self { listener, wait: FIRST_WAIT }
    }

    /// Accepts the next connection. While the system is out of descriptors or memory, it calls
    /// `exhausted` and tries again after a wait, which doubles each time.
    ///
    /// # Errors
    /// [`ProxyError::System`] if no connection will ever come.
    pub(crate) async fn next(
        &mut self,
        exhausted: impl Fn(),
    ) -> Result<(TcpStream, SocketAddr), ProxyError> {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => {
                    self.wait = FIRST_WAIT;
                    return Ok(accepted);
                }
                // The peer closed the connection before it was accepted.
                Err(error) if is_of_peer(&error) => {}
                Err(error) if is_final(&error) => {
                    return Err(ProxyError::System { doing: "waiting for connections", error });
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken now");
                    exhausted();
                    let wait = self.wait;
                    self.wait = (wait * 2).min(LONGEST_WAIT);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }
}

/// Returns true if the error of `accept` concerns only the connection that it was to return: retry
/// at once.
pub(crate) fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::ConnectionRefused
            | Kind::Interrupted
            | Kind::NetworkDown
            | Kind::NetworkUnreachable
            | Kind::HostUnreachable
            | Kind::TimedOut
    )
}

/// Returns true if no connection will ever come after the error of `accept`.
pub(crate) fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::InvalidInput | Kind::NotConnected | Kind::Unsupported)
}
