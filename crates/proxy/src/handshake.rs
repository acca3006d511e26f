//! Negotiation of versions from the ranges of both sides.

use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{GrpcGetVersionRequest, IfrtProxyVersion},
    version::{AnyVersionAccessor, Line, Side, Version, VersionRange},
};

use super::{Agreement, ProxyError, Ranges, status::status};

/// Checks and answers for the versions of both protocols that [`Ranges`] offers in a handshake.
pub trait Handshake: Sized {
    /// Checks that this build supports both ranges completely.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`], which names the range and the supported versions.
    fn check_supported(self) -> Result<Self, ProxyError>;

    /// Returns the answer of a server with these ranges to a client's ranges: the highest common
    /// version of each line.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with both ranges and the side to upgrade; the protocol's range is checked
    /// first. The client shows the text to its user.
    fn answer(self, client: Self) -> Result<Agreement, Status>;
}

impl Handshake for Ranges {
    fn check_supported(self) -> Result<Self, ProxyError> {
        check_supported(self.protocol())?;
        check_supported(self.serdes())?;
        Ok(self)
    }

    fn answer(self, client: Self) -> Result<Agreement, Status> {
        let protocol = choose(self.protocol(), client.protocol())?;
        Ok(Agreement::new(protocol, choose(self.serdes(), client.serdes())?))
    }
}

/// Checks the versions that a client claims to have been given against these ranges.
///
/// # Errors
/// FAILED_PRECONDITION with the number and the range.
pub(crate) fn confirmed(ranges: Ranges, version: IfrtProxyVersion) -> Result<Agreement, Status> {
    let protocol = confirm(ranges.protocol(), version.protocol_version)?;
    let serdes = confirm(ranges.serdes(), version.ifrt_serdes_version_number)?;
    Ok(Agreement::new(protocol, serdes))
}

pub(crate) fn to_request(ranges: Ranges) -> GrpcGetVersionRequest {
    let version = |protocol_version, ifrt_serdes_version_number| {
        Some(IfrtProxyVersion { protocol_version, ifrt_serdes_version_number })
    };
    GrpcGetVersionRequest {
        min_version: version(ranges.protocol().minimum(), ranges.serdes().minimum()),
        max_version: version(ranges.protocol().maximum(), ranges.serdes().maximum()),
    }
}

/// Returns the ranges of a request. Builds without the second line send 0 for it.
///
/// # Errors
/// INVALID_ARGUMENT if a range is empty.
pub(crate) fn from_request(request: &GrpcGetVersionRequest) -> Result<Ranges, Status> {
    let low = request.min_version.unwrap_or_default();
    let high = request.max_version.unwrap_or_default();
    let protocol = range(low.protocol_version, high.protocol_version)?;
    let serdes = range(low.ifrt_serdes_version_number, high.ifrt_serdes_version_number)?;
    Ok(Ranges::new(protocol, serdes))
}

pub(crate) fn to_proto(agreement: Agreement) -> IfrtProxyVersion {
    IfrtProxyVersion {
        protocol_version: agreement.protocol().number(),
        ifrt_serdes_version_number: agreement.serdes().number(),
    }
}

fn check_supported<L: Line>(range: VersionRange<L>) -> Result<(), ProxyError> {
    let supported = VersionRange::<L>::supported();
    if supported.contains(range.minimum()) && supported.contains(range.maximum()) {
        return Ok(());
    }
    Err(ProxyError::configuration(
        "the range",
        format!("{} {range}", L::NAME),
        format!("this build speaks {supported}; choose a part of it"),
    ))
}

fn range<L: Line>(minimum: i32, maximum: i32) -> Result<VersionRange<L>, Status> {
    VersionRange::new(minimum, maximum).ok_or_else(|| {
        status!(
            InvalidArgument,
            "the client's range of {} versions is {minimum}..{maximum}; expected a minimum that is not above the maximum",
            L::TITLE
        )
    })
}

fn choose<L: Line>(server: VersionRange<L>, client: VersionRange<L>) -> Result<Version<L>, Status> {
    AnyVersionAccessor::negotiate(server, client).map_err(|error| {
        let side = match error.upgrade() {
            Side::Ours => "server",
            Side::Theirs => "client",
        };
        status!(
            InvalidArgument,
            "no common {} version: the server speaks {server}, the client {client}; upgrade the {side}",
            L::TITLE
        )
    })
}

fn confirm<L: Line>(range: VersionRange<L>, number: i32) -> Result<Version<L>, Status> {
    let version = AnyVersionAccessor::get(number).ok().filter(|_| range.contains(number));
    version.ok_or_else(|| {
        status!(
            FailedPrecondition,
            "the session asks for {} version {number}; this server speaks {range}: ask GetVersion first",
            L::TITLE
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::codec::StatusCode;

    fn ranges(protocol: (i32, i32), serdes: (i32, i32)) -> Ranges {
        Ranges::new(
            VersionRange::new(protocol.0, protocol.1).unwrap(),
            VersionRange::new(serdes.0, serdes.1).unwrap(),
        )
    }

    /// A build, and its ranges of protocol and SerDes numbers, both ends included.
    type Build = (&'static str, (i32, i32), (i32, i32));

    /// The builds of the last year and a half.
    const BUILDS: [Build; 13] = [
        ("0.7.0", (3, 15), (0, 0)),
        ("0.8.0", (15, 19), (0, 0)),
        ("0.9.0", (16, 22), (0, 0)),
        ("0.9.1", (16, 23), (0, 1)),
        ("0.9.2", (16, 25), (0, 1)),
        ("0.10.0", (16, 25), (0, 2)),
        ("0.10.1", (16, 25), (0, 3)),
        ("0.10.2", (16, 25), (0, 3)),
        ("0.11.0", (16, 25), (0, 4)),
        ("0.11.1", (16, 25), (0, 5)),
        ("0.11.2", (16, 25), (0, 6)),
        ("0.12.0", (16, 25), (2, 6)),
        ("0.12.0.1", (16, 25), (2, 6)),
    ];

    #[test]
    fn every_client_and_every_server_range_agree_as_the_rule_says() {
        let servers: Vec<_> = (16..=25)
            .flat_map(|low| (low..=25).map(move |high| (low, high)))
            .flat_map(|protocol| {
                (0..=6).flat_map(move |low| (low..=6).map(move |high| (protocol, (low, high))))
            })
            .collect();
        for (name, protocol, serdes) in BUILDS {
            for (server_protocol, server_serdes) in &servers {
                let answer =
                    ranges(*server_protocol, *server_serdes).answer(ranges(protocol, serdes));
                let rule = |server: (i32, i32), client: (i32, i32)| {
                    let chosen = server.1.min(client.1);
                    (chosen >= server.0 && chosen >= client.0).then_some(chosen)
                };
                let expected = (rule(*server_protocol, protocol), rule(*server_serdes, serdes));
                match (answer, expected) {
                    (Ok(answer), (Some(protocol), Some(serdes))) => {
                        assert_eq!(answer.protocol().number(), protocol, "{name}");
                        assert_eq!(answer.serdes().number(), serdes, "{name}");
                    }
                    (Err(status), (None, _) | (_, None)) => {
                        assert_eq!(status.code(), StatusCode::InvalidArgument);
                        let (ours, theirs) = match expected.0 {
                            None => (server_protocol, protocol),
                            Some(_) => (server_serdes, serdes),
                        };
                        for range in [*ours, theirs] {
                            let text = format!("{}..{}", range.0, range.1);
                            assert!(status.message().contains(&text), "{name}: {status:?}");
                        }
                        let side = if ours.1 <= theirs.1 { "server" } else { "client" };
                        let text = format!("upgrade the {side}");
                        assert!(status.message().ends_with(&text), "{name}: {status:?}");
                    }
                    (answer, expected) => panic!("{name}: {answer:?} instead of {expected:?}"),
                }
            }
        }
    }

    #[test]
    fn the_protocol_is_reported_before_the_values() {
        let status = ranges((16, 25), (0, 6)).answer(ranges((3, 15), (9, 9))).unwrap_err();
        assert!(status.message().contains("proxy protocol"), "{status:?}");
    }

    #[test]
    fn a_client_that_leaves_the_second_line_out_offers_zero() {
        let request = GrpcGetVersionRequest {
            min_version: Some(IfrtProxyVersion { protocol_version: 16, ..Default::default() }),
            max_version: Some(IfrtProxyVersion { protocol_version: 30, ..Default::default() }),
        };
        let client = from_request(&request).unwrap();
        let answer = Ranges::supported().answer(client).unwrap();
        assert_eq!((answer.protocol().number(), answer.serdes().number()), (25, 0));
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused() {
        let request = GrpcGetVersionRequest {
            min_version: Some(IfrtProxyVersion { protocol_version: 25, ..Default::default() }),
            max_version: Some(IfrtProxyVersion { protocol_version: 16, ..Default::default() }),
        };
        let status = from_request(&request).unwrap_err();
        assert_eq!(status.code(), StatusCode::InvalidArgument);
        assert!(status.message().contains("25..16"), "{status:?}");
    }

    #[test]
    fn a_session_may_ask_for_nothing_that_was_not_offered() {
        let server = ranges((16, 20), (2, 4));
        for (protocol, serdes, named) in [(21, 3, "21"), (15, 3, "15"), (16, 1, "1"), (16, 5, "5")]
        {
            let version =
                IfrtProxyVersion { protocol_version: protocol, ifrt_serdes_version_number: serdes };
            let status = confirmed(server, version).unwrap_err();
            assert_eq!(status.code(), StatusCode::FailedPrecondition);
            assert!(status.message().contains(&format!("version {named};")), "{status:?}");
        }
    }

    #[test]
    fn an_operator_can_narrow_the_ranges_but_not_widen_them() {
        assert!(ranges((16, 16), (0, 2)).check_supported().is_ok());
        let error = ranges((16, 25), (0, 900)).check_supported().unwrap_err();
        assert!(error.to_string().contains("0..900"), "{error}");
        assert!(error.to_string().contains("0..6"), "{error}");
    }
}
