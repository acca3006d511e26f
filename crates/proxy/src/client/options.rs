//! Options of a client's connection.

use std::time::Duration;

use serdes::ifrt::AttributeMap;

use super::credentials::Credentials;
use crate::Ranges;

/// Options of a client's connection.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Versions to offer.
    pub(crate) ranges: Ranges,
    /// Attributes of this client for the server.
    pub(crate) initialization_data: AttributeMap,
    /// Time limit for connecting, for the handshake, and for the first answer, each.
    pub(crate) timeout: Duration,
    /// The certificates to trust, in PEM. Needed for `https://` addresses: none is trusted by
    /// itself.
    pub(crate) certificate_authority: Option<Vec<u8>>,
    /// The name in the server's certificate, if it is not that of the address.
    pub(crate) server_name: Option<String>,
    pub(crate) credentials: Credentials,
}

impl ClientOptions {
    /// All that this build speaks, 20 seconds for each step, no certificate that is trusted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Offers these ranges.
    #[must_use]
    pub fn with_ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    /// Tells the server this of the client.
    #[must_use]
    pub fn with_initialization_data(mut self, data: AttributeMap) -> Self {
        self.initialization_data = data;
        self
    }

    /// Gives connecting, the handshake and the first answer that long, each.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Trusts these certificates, in PEM. Needed for `https://` addresses: none is trusted by
    /// itself.
    #[must_use]
    pub fn with_certificate_authority(mut self, certificates: impl Into<Vec<u8>>) -> Self {
        self.certificate_authority = Some(certificates.into());
        self
    }

    /// Expects this name in the server's certificate, if it is not that of the address.
    #[must_use]
    pub fn with_server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

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
