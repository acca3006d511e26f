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
    /// Attributes that the client sends when it opens a session.
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
    /// Options with every version of this build, a time limit of 20 seconds for each step, and no
    /// trusted certificate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the ranges of versions that the client offers.
    #[must_use]
    pub fn with_ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    /// Sets the attributes that the client sends when it opens a session.
    #[must_use]
    pub fn with_initialization_data(mut self, data: AttributeMap) -> Self {
        self.initialization_data = data;
        self
    }

    /// Sets the time limit for connecting, for the handshake, and for the first answer, each.
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

    /// Sets the name that the server's certificate must have, in place of that of the address.
    #[must_use]
    pub fn with_server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sends this token with every call, as `authorization: Bearer TOKEN`. On a plain connection it
    /// is not encrypted.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.credentials.token = Some(token.into());
        self
    }

    /// Authenticates the client on encrypted connections by this certificate and its key, both in
    /// PEM.
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
