//! Access control: tokens and client certificates.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use ring::{
    hmac::{self, HMAC_SHA256},
    rand::SystemRandom,
};
use serdes::{
    codec::Status,
    ifrt::{AttributeMap, AttributeValue},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    },
};
use tonic::codegen::http::{HeaderMap, header::AUTHORIZATION};

use super::digest::{Digest, hash};
use crate::{ProxyError, error::with_causes, status::status};

/// Key of the initialization data for the token of a client that cannot send metadata.
pub(crate) const SESSION_TOKEN: &str = "serdes.token";

/// Accepted bearer tokens. Their text is not kept.
#[derive(Clone)]
pub struct Tokens {
    key: hmac::Key,
    /// A tag of each token, and the hash that identifies it.
    tags: Vec<(hmac::Tag, Digest)>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.tags.len())
    }
}

impl Tokens {
    /// Minimum length of a token in characters: shorter ones can be guessed.
    pub const SHORTEST: usize = 16;

    /// Parses one token per line, of letters, digits and `-._~+/=`, with at least
    /// [`SHORTEST`](Self::SHORTEST) characters. Empty lines and text after a `#` are ignored.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if a line is not a token, or one that is too short, with its
    /// number and without its text; if there is no token.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let wrong = |found: String, reason: &str| {
            ProxyError::configuration("the list of tokens", found, reason)
        };
        let key = hmac::Key::generate(HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| wrong("given".to_owned(), "the system gives no random numbers"))?;
        let mut tags = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let token = line.split('#').next().unwrap_or_default().trim();
            if token.is_empty() {
                continue;
            }
            if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))
            {
                let reason = "expected a token of letters, digits and -._~+/= and nothing else";
                return Err(wrong(format!("line {}", number + 1), reason));
            }
            if token.len() < Self::SHORTEST {
                let found = format!("too short in line {}", number + 1);
                let reason = format!(
                    "expected tokens of at least {} characters, too long to be guessed; `openssl rand -hex 32` makes one",
                    Self::SHORTEST
                );
                return Err(wrong(found, &reason));
            }
            tags.push((hmac::sign(&key, token.as_bytes()), hash(token.as_bytes())));
        }
        if tags.is_empty() {
            return Err(wrong("empty".to_owned(), "expected at least one token, a line each"));
        }
        Ok(Self { key, tags })
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// Returns false: there is no list without a token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Returns the hash of a token if it is one of these. The time reveals only their number: tags
    /// of a secret key are compared, each to its end.
    fn find(&self, token: &[u8]) -> Option<Digest> {
        let given = hmac::sign(&self.key, token);
        let mut found = None;
        for (tag, digest) in &self.tags {
            let pairs = tag.as_ref().iter().zip(given.as_ref());
            if pairs.fold(0, |different, (known, given)| different | (known ^ given)) == 0 {
                found = Some(*digest);
            }
        }
        found
    }

    fn has(&self, digest: &Digest) -> bool {
        self.tags.iter().any(|(_, known)| known == digest)
    }
}

/// Requirements for access in addition to a certificate.
#[derive(Debug, Default)]
pub(crate) struct Access {
    tokens: RwLock<Option<Arc<Tokens>>>,
    /// True if sessions may present their token later; versions are then available without one.
    late: bool,
}

/// Credential that a client has presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// No token is required.
    Nothing,
    Token(Digest),
    /// No token yet; the session must present one.
    Later,
}

impl Access {
    pub(crate) fn new(tokens: Option<Tokens>, late: bool) -> Self {
        Self { tokens: RwLock::new(tokens.map(Arc::new)), late }
    }

    fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the tokens.
    pub(crate) fn replace(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tokens));
    }

    /// Returns the hash of a token if it is one of the server's.
    pub(crate) fn digest_of(&self, token: &[u8]) -> Option<Digest> {
        self.tokens()?.find(token)
    }

    /// Returns true if a client with this token would still be admitted.
    pub(crate) fn holds(&self, token: Option<&Digest>) -> bool {
        match (self.tokens(), token) {
            (None, _) => true,
            (Some(tokens), Some(token)) => tokens.has(token),
            (Some(_), None) => false,
        }
    }

    /// Checks the metadata of a call.
    ///
    /// # Errors
    /// UNAUTHENTICATED.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Shown, Status> {
        let Some(tokens) = self.tokens() else { return Ok(Shown::Nothing) };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                let token = bearer(value.as_bytes()).and_then(|token| tokens.find(token));
                token.map(Shown::Token).ok_or_else(|| {
                    status!(
                        Unauthenticated,
                        "the token is none of this server's; expected `authorization: Bearer TOKEN` with one of the lines of its file of tokens"
                    )
                })
            }
            (None, _) if self.late => Ok(Shown::Later),
            _ => Err(status!(
                Unauthenticated,
                "this server wants a token; send one in the metadata `authorization: Bearer TOKEN`, which clients of JAX cannot: for those, ask the server's operator to take tokens of sessions as well (serdes_ml.jax.connect sends such a one)"
            )),
        }
    }

    /// Checks the initialization data of a session that has presented no token yet.
    ///
    /// # Errors
    /// UNAUTHENTICATED.
    pub(crate) fn check_session(&self, data: &AttributeMap) -> Result<Digest, Status> {
        let given = match data.get(SESSION_TOKEN) {
            Ok(AttributeValue::String(bytes)) => Some(bytes),
            _ => None,
        };
        let Some(given) = given else {
            return Err(status!(
                Unauthenticated,
                "this server wants a token; send one in the metadata `authorization: Bearer TOKEN`, or in the initialization data `{SESSION_TOKEN}`: with JAX, serdes_ml.jax.connect(ADDRESS, token=TOKEN)"
            ));
        };
        let found = self.tokens().and_then(|tokens| tokens.find(given));
        found.ok_or_else(|| {
            status!(
                Unauthenticated,
                "the token is none of this server's; expected in the initialization data `{SESSION_TOKEN}` one of the lines of its file of tokens"
            )
        })
    }
}

/// Extracts the token of `Bearer TOKEN`; the scheme's name is case-insensitive.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"bearer") || token.first() != Some(&b' ') {
        return None;
    }
    Some(token.trim_ascii())
}

/// TLS settings: the server's certificate, and the authorities that must have signed the clients'
/// certificates.
#[derive(Clone, Default)]
pub(crate) struct Encryption {
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) client_authorities: Option<Vec<u8>>,
}

impl Encryption {
    /// Creates the TLS acceptor; `None` for plain connections.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for an invalid certificate, an invalid or wrong key, and
    /// client certificates without encryption.
    pub(crate) fn acceptor(&self) -> Result<Option<TlsAcceptor>, ProxyError> {
        let wrong = |what, reason: String| ProxyError::configuration(what, "given", reason);
        let Some((chain, key)) = &self.identity else {
            return match &self.client_authorities {
                None => Ok(None),
                Some(_) => Err(wrong(
                    "the authority of client certificates",
                    "only encrypted connections have certificates; give the server one too"
                        .to_owned(),
                )),
            };
        };
        let chain = certificates("the certificate", chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            wrong("the key of the certificate", format!("no key in PEM: {error}"))
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("the certificate", with_causes(&error)))?;
        let builder = match &self.client_authorities {
            Some(authorities) => builder.with_client_cert_verifier(verifier(authorities)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| wrong("the certificate", with_causes(&error)))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
}

/// The current TLS acceptor, which can be exchanged while the server runs.
#[derive(Clone)]
pub(crate) struct Acceptor(Arc<RwLock<Option<TlsAcceptor>>>);

impl Acceptor {
    /// # Errors
    /// The errors of [`Encryption::acceptor`].
    pub(crate) fn new(encryption: &Encryption) -> Result<Self, ProxyError> {
        encryption.acceptor().map(|acceptor| Self(Arc::new(RwLock::new(acceptor))))
    }

    /// Returns the acceptor for the next connection; `None` for a plain one.
    pub(crate) fn now(&self) -> Option<TlsAcceptor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the certificates.
    ///
    /// # Errors
    /// The errors of [`Encryption::acceptor`]; [`ProxyError::Configuration`] if connections are
    /// plain, which clients rely on. On error nothing changes.
    pub(crate) fn replace(&self, encryption: &Encryption) -> Result<(), ProxyError> {
        let acceptor = encryption.acceptor()?;
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if now.is_none() {
            return Err(ProxyError::configuration(
                "the certificate",
                "given",
                "the server takes plain connections; it can be told to encrypt when it starts",
            ));
        }
        *now = acceptor;
        Ok(())
    }
}

fn verifier(authorities: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, ProxyError> {
    const WHAT: &str = "the authority of client certificates";
    let wrong = |reason: String| ProxyError::configuration(WHAT, "given", reason);
    let mut roots = RootCertStore::empty();
    for certificate in certificates(WHAT, authorities)? {
        roots.add(certificate).map_err(|error| wrong(with_causes(&error)))?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    builder.build().map_err(|error| wrong(with_causes(&error)))
}

fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ProxyError> {
    let wrong = |reason: String| ProxyError::configuration(what, "given", reason);
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| wrong(format!("no certificates in PEM: {error}")))?;
    if found.is_empty() {
        return Err(wrong("there is no certificate in it; expected PEM".to_owned()));
    }
    Ok(found)
}
