//! Credentials of a client, which are never printed.

use std::fmt;

use tonic::metadata::{Ascii, MetadataValue};

use crate::ProxyError;

/// Credentials of a client.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(super) token: Option<String>,
    /// A certificate and its key, in PEM.
    pub(super) certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("token", &self.token.is_some())
            .field("certificate", &self.certificate.is_some())
            .finish()
    }
}

impl Credentials {
    /// Returns the credentials without the token, for a call that needs none.
    pub(super) fn without_token(&self) -> Self {
        Self { token: None, certificate: self.certificate.clone() }
    }

    /// Returns the value of the metadata `authorization`.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`], without the token's text, for a token that cannot be sent.
    pub(super) fn authorization(&self) -> Result<Option<MetadataValue<Ascii>>, ProxyError> {
        let Some(token) = &self.token else { return Ok(None) };
        let sent = token.bytes().all(|byte| byte.is_ascii_graphic()) && !token.is_empty();
        let value = sent.then(|| format!("Bearer {token}").parse::<MetadataValue<Ascii>>().ok());
        let mut value = value.flatten().ok_or_else(|| {
            ProxyError::configuration(
                "the token",
                "given",
                "expected visible characters of ASCII and no spaces",
            )
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClientOptions;

    #[test]
    fn nothing_secret_is_shown() {
        let options = ClientOptions::default()
            .with_token("the-secret-token")
            .with_certificate("a certificate", "the-secret-key");
        let shown = format!("{options:?} {:?}", options.credentials.authorization());
        assert!(!shown.contains("secret"), "{shown}");
        let wrong = ClientOptions::default().with_token("two secret words");
        let error = wrong.credentials.authorization().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}
