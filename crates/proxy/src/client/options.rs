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
    /// Attributes sent when a session is opened.
    pub(crate) initialization_data: AttributeMap,
    /// Time limit for each of connecting, the handshake and the first answer.
    pub(crate) timeout: Duration,
    /// Trusted certificates in PEM. Required for `https://` addresses: none is trusted by default.
    pub(crate) certificate_authority: Option<Vec<u8>>,
    /// Name in the server's certificate, if it differs from the address.
    pub(crate) server_name: Option<String>,
    pub(crate) credentials: Credentials,
}

impl ClientOptions {
    /// Creates options with every version of this build, a time limit of 20 seconds for each step,
    /// and no trusted certificate.
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

    /// Sets the time limit for each of connecting, the handshake and the first answer.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the trusted certificates, in PEM. Required for `https://` addresses: none is trusted by
    /// default.
    #[must_use]
    pub fn with_certificate_authority(mut self, certificates: impl Into<Vec<u8>>) -> Self {
        self.certificate_authority = Some(certificates.into());
        self
    }

    /// Sets the name that the server's certificate must have, instead of the address.
    #[must_use]
    pub fn with_server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets the token to send with every call, as `authorization: Bearer TOKEN`. A plain connection
    /// does not encrypt it.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.credentials.token = Some(token.into());
        self
    }

    /// Sets the client's certificate and key for encrypted connections, both in PEM.
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
