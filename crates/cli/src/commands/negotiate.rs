//! `serdes negotiate`: the versions that a proxy server and this build would use.

use std::path::Path;

use serde_json::{Map, json};
use serdes::{
    codec::StatusCode,
    version::{Line, VersionRange},
};
use serdes_proxy::{
    self as proxy, Agreement, Client, ClientOptions, Handshake as _, Health, ProxyError, Ranges,
};

use super::{negotiation_report::ServerOffer, small_file};
use crate::{
    arguments::{NegotiateArguments, RangeArguments},
    failure::Failure,
    numbers::plain_number,
    status::ExitStatus,
    terminal::{NAME, Terminal},
};

/// Performs a handshake and prints the result.
pub(crate) fn run(
    arguments: &NegotiateArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let ranges = ranges(&arguments.ranges)?;
    let address = &arguments.address;
    let mut options = ClientOptions::new().with_ranges(ranges);
    if let Some(name) = &arguments.tls_name {
        options = options.with_server_name(name);
    }
    if let Some(path) = &arguments.tls_ca {
        options = options.with_certificate_authority(read(path)?);
    } else if address.starts_with("https://") {
        return Err(Failure::new(format_args!(
            "{address}: give the certificates to trust with --tls-ca"
        )));
    }
    if let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        options = options.with_certificate(read(certificate)?, read(key)?);
    }
    if let Some(path) = &arguments.token_file {
        options = options.with_token(first_token(path)?);
    }
    let runtime = runtime()?;
    if arguments.health {
        return health(&runtime, address, &options, terminal);
    }
    match runtime.block_on(proxy::negotiate_with(address, &options)) {
        Ok(agreement) => {
            let session = runtime.block_on(Client::connect_with(address, options));
            agreed(agreement, address, session.as_ref().map(ServerOffer::of), terminal)
        }
        Err(error) => {
            let failure = failure(&error);
            if !terminal.json() {
                return Err(failure);
            }
            let range = |minimum: i32, maximum: i32| json!([minimum, maximum]);
            let (protocol, values) = (ranges.protocol(), ranges.serdes());
            terminal.object(&json!({
                "error": error.to_string(),
                "client": {
                    "protocol": range(protocol.minimum(), protocol.maximum()),
                    "serdes": range(values.minimum(), values.maximum()),
                },
                "server": address,
            }))?;
            terminal.note(format_args!("error: {error}"));
            Ok(if error.is_refusal() { ExitStatus::Negative } else { ExitStatus::Error })
        }
    }
}

/// Returns true if the server refuses the token, or requires one.
fn is_unauthenticated(error: &ProxyError) -> bool {
    matches!(error, ProxyError::Status(status) if status.code() == StatusCode::Unauthenticated)
}

/// Prints the agreement, and the server's offer in a session if it accepts one: if it accepts none
/// for now, the agreement still holds. A server that requires another token accepts no sessions,
/// which is a failure.
fn agreed(
    agreement: Agreement,
    address: &str,
    offer: Result<ServerOffer, &ProxyError>,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let (protocol, values) = (agreement.protocol().number(), agreement.serdes().number());
    if terminal.json() {
        let mut object = match &offer {
            Ok(offer) => offer.fields(),
            Err(error) => Map::from_iter([("session".to_owned(), json!(error.to_string()))]),
        };
        object.insert("protocol_version".to_owned(), json!(protocol));
        object.insert("ifrt_serdes_version".to_owned(), json!(values));
        object.insert("server".to_owned(), json!(address));
        terminal.object(&object.into())?;
    }
    terminal
        .line(format_args!("{NAME}{address}{NAME:#}: protocol {protocol}, IFRT SerDes {values}"))?;
    match offer {
        Ok(offer) => offer.print(terminal)?,
        Err(error) if is_unauthenticated(error) && !terminal.json() => {
            return Err(Failure::new(error).about("no session"));
        }
        Err(error) => {
            terminal.note(format_args!("no session: {error}"));
            return Ok(if is_unauthenticated(error) {
                ExitStatus::Error
            } else {
                ExitStatus::Success
            });
        }
    }
    Ok(ExitStatus::Success)
}

/// Prints if the server accepts new sessions.
fn health(
    runtime: &tokio::runtime::Runtime,
    address: &str,
    options: &ClientOptions,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let health =
        runtime.block_on(proxy::check_health(address, options)).map_err(|error| failure(&error))?;
    let (name, status) = match health {
        Health::Serving => ("serving", ExitStatus::Success),
        Health::NotServing => ("not_serving", ExitStatus::Negative),
        Health::UnknownService => ("service_unknown", ExitStatus::Error),
        _ => ("unknown", ExitStatus::Error),
    };
    if terminal.json() {
        terminal.object(&json!({ "health": name, "server": address }))?;
    }
    terminal.line(format_args!("{NAME}{address}{NAME:#}: {}", name.replace('_', " ")))?;
    Ok(status)
}

/// Reads certificates or a key.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    small_file::read(path, "certificates or a key in PEM, at most 16777216 bytes", 1 << 24)
}

/// Reads a list of tokens.
pub(super) fn read_tokens(path: &Path) -> Result<Vec<u8>, Failure> {
    small_file::read(path, "a list of tokens, a line each, at most 1048576 bytes", 1 << 20)
}

/// Returns the first token of a file with one token per line.
fn first_token(path: &Path) -> Result<String, Failure> {
    let bytes = read_tokens(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut tokens = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let token = tokens.find(|token| !token.is_empty());
    token.map(str::to_owned).ok_or_else(|| {
        Failure::new(format_args!("{}: expected a token, a line each", path.display()))
    })
}

/// Converts an error of the proxy to a failure with its exit status.
pub(super) fn failure(error: &ProxyError) -> Failure {
    if error.is_refusal() { Failure::no(error) } else { Failure::new(error) }
}

/// Returns the ranges of the command line.
pub(super) fn ranges(arguments: &RangeArguments) -> Result<Ranges, Failure> {
    let mut ranges = Ranges::supported();
    if let Some(text) = &arguments.protocol {
        ranges = ranges.with_protocol(range("--protocol", text)?);
    }
    if let Some(text) = &arguments.serdes {
        ranges = ranges.with_serdes(range("--serdes", text)?);
    }
    ranges.check_supported().map_err(Failure::of)
}

fn range<L: Line>(option: &str, text: &str) -> Result<VersionRange<L>, Failure> {
    let numbers = text.split_once("..").unwrap_or((text, text));
    let [minimum, maximum] = [numbers.0, numbers.1].map(|text| plain_number(text.trim()));
    let parsed = minimum.zip(maximum);
    parsed.and_then(|(minimum, maximum)| VersionRange::new(minimum, maximum)).ok_or_else(|| {
        Failure::new(format_args!(
            "{option} {text}: expected MIN..MAX, both included, such as {}",
            VersionRange::<L>::supported()
        ))
    })
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format_args!("cannot start the runtime: {error}")))
}
