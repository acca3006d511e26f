//! Taking connections, whatever the system says meanwhile.

use std::{io, net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpStream};

use crate::ProxyError;

/// A source of connections.
pub(crate) trait Accept {
    /// The next one.
    ///
    /// # Errors
    /// If the system gives no connection.
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Accept for TcpListener {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        Self::accept(self)
    }
}

/// Waits after the system has refused a connection, from and to.
const WAITS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// Takes connections from a listener, and waits where the system has no room for one.
pub(crate) struct Accepting<L> {
    listener: L,
    wait: Duration,
}

impl<L: Accept> Accepting<L> {
    pub(crate) const fn new(listener: L) -> Self {
        Self { listener, wait: WAITS[0] }
    }

    /// The next connection. Where there are no descriptors, or no memory for one, it tells
    /// `exhausted`, waits, longer each time, and tries again.
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
                    self.wait = WAITS[0];
                    return Ok(accepted);
                }
                // The peer was faster than this.
                Err(error) if is_of_peer(&error) => {}
                Err(error) if is_final(&error) => {
                    return Err(ProxyError::System { doing: "waiting for connections", error });
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken now");
                    exhausted();
                    let wait = self.wait;
                    self.wait = (wait * 2).min(WAITS[1]);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }
}

/// True if the error of `accept` concerns only the connection that it was to return: retry at once.
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

/// True if no connection will ever come after the error of `accept`.
pub(crate) fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::InvalidInput | Kind::NotConnected | Kind::Unsupported)
}
