//! How a client connects.

use std::time::Duration;

use super::credentials::Credentials;
use crate::{ifrt::AttributeMap, proxy::Ranges};

/// How to connect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// What to offer.
    pub ranges: Ranges,
    /// What the server is told of this client.
    pub initialization_data: AttributeMap,
    /// How long connecting, the handshake and the first answer may take, each.
    pub timeout: Duration,
    /// The certificates to trust, in PEM. Needed for `https://` addresses: none is trusted by
    /// itself.
    pub certificate_authority: Option<Vec<u8>>,
    /// The name in the server's certificate, if it is not that of the address.
    pub server_name: Option<String>,
    pub(in crate::proxy) credentials: Credentials,
}

impl ClientOptions {
    /// Says with every call who the client is: `authorization: Bearer TOKEN`. On a plain connection
    /// everybody on the way can read it.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.credentials.token = Some(token.into());
        self
    }

    /// Shows this certificate and proves that it has its key (both in PEM) on encrypted
    /// connections.
    #[must_use]
    pub fn with_certificate(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.credentials.certificate = Some((certificate.into(), key.into()));
        self
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            ranges: Ranges::supported(),
            initialization_data: AttributeMap::new(),
            timeout: Duration::from_secs(20),
            certificate_authority: None,
            server_name: None,
            credentials: Credentials::default(),
        }
    }
}
