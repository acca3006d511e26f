//! Queries of a server without a session: its versions and its health.

use super::{ClientOptions, transport};
use crate::{
    Agreement, ProxyError, Ranges,
    boxed::BoxFuture,
    health::{CheckRequest, CheckResponse, Health},
    service,
};

/// Negotiates versions with the server at `address`, without opening a session.
///
/// # Errors
/// [`ProxyError::Refused`] if there is no common version; [`ProxyError::Status`] if the server does
/// not admit the client, or has no capacity for it (UNAUTHENTICATED, PERMISSION_DENIED,
/// RESOURCE_EXHAUSTED); [`ProxyError::Connection`] if there is no server; [`ProxyError::Protocol`]
/// if the server answers with a version that was not offered; [`ProxyError::Configuration`] for the
/// address.
pub async fn negotiate(address: &str, ranges: Ranges) -> Result<Agreement, ProxyError> {
    negotiate_with(address, &ClientOptions { ranges, ..ClientOptions::default() }).await
}

/// Like [`negotiate`], with options such as encryption or another time limit.
///
/// # Errors
/// As for [`negotiate`].
pub async fn negotiate_with(
    address: &str,
    options: &ClientOptions,
) -> Result<Agreement, ProxyError> {
    agree(address, options).await
}

fn agree<'a>(
    address: &'a str,
    options: &'a ClientOptions,
) -> BoxFuture<'a, Result<Agreement, ProxyError>> {
    Box::pin(async move {
        let channel = transport::open(address, options).await?;
        let (agreement, _) = transport::handshake(&channel, address, options).await?;
        Ok(agreement)
    })
}

/// Asks the server at `address` if it accepts new sessions. A token is neither needed nor sent; a
/// certificate is, if the server requires one.
///
/// # Errors
/// [`ProxyError::Status`] with UNIMPLEMENTED if the server has no health service, with
/// RESOURCE_EXHAUSTED if it has too many such calls; [`ProxyError::Connection`] if there is no
/// answer in time; [`ProxyError::Configuration`] for the address.
pub async fn check_health(address: &str, options: &ClientOptions) -> Result<Health, ProxyError> {
    let unnamed =
        ClientOptions { credentials: options.credentials.without_token(), ..options.clone() };
    ask_health(address, &unnamed).await
}

fn ask_health<'a>(
    address: &'a str,
    options: &'a ClientOptions,
) -> BoxFuture<'a, Result<Health, ProxyError>> {
    Box::pin(async move {
        let transport = transport::open(address, options).await?;
        let request = CheckRequest { service: service::NAME.to_owned() };
        let asked = transport::unary(&transport, service::HEALTH_CHECK, request);
        let answer: CheckResponse = match tokio::time::timeout(options.timeout, asked).await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(ProxyError::Connection {
                    address: address.to_owned(),
                    reason: format!("no answer in {} seconds", options.timeout.as_secs_f64()),
                });
            }
        };
        Ok(answer.health())
    })
}
