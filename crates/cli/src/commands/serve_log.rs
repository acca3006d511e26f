//! The log of `serdes serve`, and the exporter of its spans.
//!
//! The levels are for the operator of a server: events that need attention (always), actions of
//! clients and failures (`-v`), each request (`-vv`), and everything, including the frames of
//! HTTP/2 (`-vvv`).

use std::{env, str::FromStr as _};

use tracing::{Level, Metadata, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, Targets, filter_fn},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::{arguments::LogFormat, failure::Failure};

/// Prefix of all targets of this project.
const OWN: &str = "serdes";

/// The log, with the cleanup at its end.
pub(super) struct Log {
    #[cfg(feature = "opentelemetry")]
    spans: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

impl Log {
    /// Sends pending spans.
    pub(super) fn end(self) {
        #[cfg(feature = "opentelemetry")]
        if let Some(Err(error)) = self.spans.map(|spans| spans.shutdown()) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// Starts logging to standard error. Must be called where tasks can be spawned.
///
/// # Errors
/// If `RUST_LOG` is not a valid list of levels, or there is a log already.
pub(super) fn begin(format: LogFormat, verbosity: u8) -> Result<Log, Failure> {
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let filter = filter(levels(verbosity)?);
    let layer = match format {
        LogFormat::Text => layer.with_filter(filter).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let registry = tracing_subscriber::registry().with(layer);
    start(registry)
}

type Layered = tracing_subscriber::layer::Layered<Box<dyn Layer<Registry> + Send + Sync>, Registry>;

#[cfg(not(feature = "opentelemetry"))]
fn start(registry: Layered) -> Result<Log, Failure> {
    registry.try_init().map_err(unusable)?;
    Ok(Log {})
}

/// Starts the log; spans go to the collector in the environment's standard OpenTelemetry variables.
#[cfg(feature = "opentelemetry")]
fn start(registry: Layered) -> Result<Log, Failure> {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
    let named = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    if !named.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty())) {
        registry.try_init().map_err(unusable)?;
        return Ok(Log { spans: None });
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic().build();
    let exporter = exporter.map_err(|error| {
        Failure::new(format_args!("cannot send spans to the collector of OpenTelemetry: {error}"))
    })?;
    let mut resource = Resource::builder();
    if env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(OWN);
    }
    let spans = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build();
    // Exclude the spans of the connection that sends spans.
    let own = Targets::new().with_target(OWN, LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer().with_tracer(spans.tracer(OWN)).with_filter(own);
    registry.with(layer).try_init().map_err(unusable)?;
    Ok(Log { spans: Some(spans) })
}

fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("cannot write a log: {error}"))
}

/// Returns the levels of the command line, or those of `RUST_LOG` if it is set.
fn levels(verbosity: u8) -> Result<Targets, Failure> {
    match env::var("RUST_LOG") {
        Ok(text) if !text.trim().is_empty() => Targets::from_str(&text).map_err(|error| {
            Failure::new(format_args!(
                "RUST_LOG={text}: expected levels such as serdes=debug,h2=warn: {error}"
            ))
        }),
        _ => {
            let (own, others) = match verbosity {
                0 => (LevelFilter::WARN, LevelFilter::ERROR),
                1 => (LevelFilter::INFO, LevelFilter::WARN),
                2 => (LevelFilter::DEBUG, LevelFilter::WARN),
                _ => (LevelFilter::TRACE, LevelFilter::TRACE),
            };
            Ok(Targets::new().with_default(others).with_target(OWN, own))
        }
    }
}

/// Creates a filter by level that always passes the spans of sessions and requests, so that a
/// warning shows its request.
fn filter(levels: Targets) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let named = levels.iter().map(|(_, level)| level).chain(levels.default_level());
    let most = named.max().unwrap_or(LevelFilter::ERROR);
    filter_fn(move |metadata| {
        let is_own_span = metadata.is_span()
            && metadata.target().starts_with(OWN)
            && *metadata.level() <= Level::INFO;
        is_own_span || levels.would_enable(metadata.target(), metadata.level())
    })
    .with_max_level_hint(most.max(LevelFilter::INFO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_http_are_for_the_highest_level_alone() {
        let shown = |verbosity, target: &str, level: Level| {
            levels(verbosity).unwrap().would_enable(target, &level)
        };
        assert!(shown(0, "serdes_proxy", Level::WARN) && !shown(0, "serdes_proxy", Level::INFO));
        assert!(shown(1, "serdes_proxy", Level::INFO) && !shown(1, "serdes_proxy", Level::DEBUG));
        assert!(shown(2, "serdes_proxy", Level::DEBUG));
        for verbosity in 0..=2 {
            assert!(!shown(verbosity, "h2::codec::framed_read", Level::INFO), "{verbosity}");
        }
        assert!(shown(3, "h2::codec::framed_read", Level::TRACE));
    }
}
