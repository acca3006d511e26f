//! Access control and limits of `serdes serve`.

use std::{net::SocketAddr, path::Path};

use serde_json::json;
use serdes_proxy::{Limits, Server, ServerBuilder, Tokens};

use super::negotiate;
use crate::{arguments::AccessArguments, failure::Failure, terminal::Terminal};

/// Checks that the options permit the address: other machines need explicit permission.
pub(super) fn check(arguments: &AccessArguments, address: SocketAddr) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let AccessArguments { allow_anyone, allow_plain, .. } = *arguments;
    let known = arguments.tls_client_ca.is_some() || arguments.token_file.is_some();
    if !known && !allow_anyone && !allow_plain {
        let encrypted = match arguments.tls_cert {
            Some(_) => "; encryption alone refuses no client",
            None => {
                " (and --tls-cert with --tls-key, so that they cannot be read or changed on the way)"
            }
        };
        return Err(Failure::new(format_args!(
            "--listen {address}: not this machine alone; give --tls-client-ca or --token-file to say whose clients may connect{encrypted}, \
             or --allow-anyone to let everyone who reaches this address read, write and delete all arrays"
        )));
    }
    if known && arguments.tls_cert.is_none() && !allow_plain {
        return Err(Failure::new(format_args!(
            "--listen {address}: not this machine alone, and the tokens would go over the network for everyone on the way to read; give \
             --tls-cert and --tls-key, or --allow-plain if the network is trusted"
        )));
    }
    Ok(())
}

/// Returns the limits of the command line; prints the list of limits and returns `None` if that is
/// requested.
pub(super) fn limits(
    arguments: &AccessArguments,
    terminal: &mut Terminal,
) -> Result<Option<Limits>, Failure> {
    let mut limits = Limits::default();
    if arguments.limit.iter().any(|limit| limit == "help") {
        for (key, value, what) in limits.entries() {
            if terminal.json() {
                terminal.object(&json!({ "limit": key, "value": value, "what": what }))?;
            }
            terminal.line(format_args!("{key:<24} {value:>12}  {what}"))?;
        }
        return Ok(None);
    }
    // Set totals first: shares follow them unless they are given.
    let (shares, wholes): (Vec<_>, Vec<_>) = arguments
        .limit
        .iter()
        .partition(|limit| limit.starts_with("peer-") || limit.starts_with("session-"));
    for limit in wholes.into_iter().chain(shares) {
        let (key, value) = limit.split_once('=').ok_or_else(|| {
            Failure::new(format_args!(
                "--limit {limit}: expected KEY=VALUE; --limit help lists them"
            ))
        })?;
        limits
            .set(key.trim(), value.trim())
            .map_err(|error| Failure::new(format_args!("--limit {limit}: {error}")))?;
    }
    Ok(Some(limits))
}

/// Certificates for the server, in PEM.
struct Certificates {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authorities: Option<Vec<u8>>,
}

/// Returns the certificates of the command line; `None` for plain connections.
fn certificates(arguments: &AccessArguments) -> Result<Option<Certificates>, Failure> {
    let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) else {
        return Ok(None);
    };
    let authorities = arguments.tls_client_ca.as_deref();
    Ok(Some(Certificates {
        certificate: negotiate::read(certificate)?,
        key: negotiate::read(key)?,
        client_authorities: authorities.map(negotiate::read).transpose()?,
    }))
}

/// Sets certificates, tokens and limits of the server.
pub(super) fn apply(
    mut builder: ServerBuilder,
    arguments: &AccessArguments,
    limits: Limits,
) -> Result<ServerBuilder, Failure> {
    builder = builder.limits(limits);
    if let Some(given) = certificates(arguments)? {
        builder = builder.tls(given.certificate, given.key);
        if let Some(authorities) = given.client_authorities {
            builder = builder.client_authorities(authorities);
        }
    }
    if let Some(path) = &arguments.token_file {
        builder = builder.tokens(tokens(path)?);
        if arguments.allow_session_token {
            builder = builder.session_tokens();
        }
    }
    Ok(builder)
}

/// Reads the tokens and the certificates again; on failure the old ones stay, and the error is
/// logged.
pub(super) fn renew(server: &Server, arguments: &AccessArguments) {
    renew_certificates(server, arguments);
    let Some(path) = &arguments.token_file else { return };
    match tokens(path) {
        Ok(tokens) => server.replace_tokens(tokens),
        Err(failure) => tracing::error!(%failure, "the old tokens stay"),
    }
}

fn renew_certificates(server: &Server, arguments: &AccessArguments) {
    let renewed = certificates(arguments).and_then(|given| {
        let Some(Certificates { certificate, key, client_authorities }) = given else {
            return Ok(());
        };
        let replaced = server.replace_certificates(certificate, key, client_authorities.as_deref());
        replaced.map_err(|error| negotiate::failure(&error))
    });
    if let Err(failure) = renewed {
        tracing::error!(%failure, "the old certificates stay");
    }
}

fn tokens(path: &Path) -> Result<Tokens, Failure> {
    let text = String::from_utf8(negotiate::read_tokens(path)?)
        .map_err(|_| Failure::new(format_args!("{}: expected text", path.display())))?;
    if readable_by_others(path) {
        tracing::warn!(path = %path.display(), "others on this machine can read the tokens");
    }
    Tokens::parse(&text).map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
}

#[cfg(unix)]
fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> bool {
    false
}
