//! The page of metrics, in the text format of Prometheus (version 0.0.4).
//!
//! A label is a name known to the program: a kind of request, a code, a limit. Data and identities
//! of clients never appear, so that the page stays small and may be read by every operator.

use std::fmt::{self, Write as _};

use super::{
    gauges::{Gauges, Metrics},
    process::Process,
    series::BOUNDS,
};

/// Content type of the page.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Prefix of the name of each metric.
const PREFIX: &str = "serdes_proxy";

/// Type of a metric.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// A metric with one number: its name, kind, help text and accessor.
type Number = (&'static str, Kind, &'static str, fn(&Metrics) -> u64);

const NUMBERS: &[Number] = &[
    ("sessions", Kind::Gauge, "Sessions that are open.", |m| m.sessions),
    ("sessions_opened_total", Kind::Counter, "Sessions that were opened.", |m| m.sessions_opened),
    ("arrays", Kind::Gauge, "Array handles of all sessions.", |m| m.arrays),
    ("shards", Kind::Gauge, "Shards on devices or in pinned memory of the host.", |m| m.shards),
    ("shard_bytes", Kind::Gauge, "Bytes of these shards.", |m| m.shard_bytes),
    ("host_buffers", Kind::Gauge, "Host buffers that have arrived or are arriving.", |m| {
        m.host_buffers
    }),
    ("host_buffer_bytes", Kind::Gauge, "Bytes of these host buffers, as announced.", |m| {
        m.host_buffer_bytes
    }),
    ("received_bytes_total", Kind::Counter, "Bytes of host buffers that clients sent.", |m| {
        m.received_bytes
    }),
    ("sent_bytes_total", Kind::Counter, "Bytes of host buffers that were sent to clients.", |m| {
        m.sent_bytes
    }),
    ("tasks", Kind::Gauge, "Requests and transfers in progress.", |m| m.tasks),
    ("programs", Kind::Gauge, "Programs that are loaded.", |m| m.programs),
    ("programs_compiled_total", Kind::Counter, "Programs that were compiled.", |m| {
        m.programs_compiled
    }),
    ("executions", Kind::Gauge, "Executions in progress.", |m| m.executions),
    ("executions_begun_total", Kind::Counter, "Executions that were begun.", |m| {
        m.executions_begun
    }),
    ("connections", Kind::Gauge, "Connections whose clients have shown who they are.", |m| {
        m.connections
    }),
    ("connections_accepted_total", Kind::Counter, "Connections that were accepted.", |m| {
        m.connections_accepted
    }),
    (
        "connections_refused_total",
        Kind::Counter,
        "Connections that ended before their clients had shown who they are, or without room.",
        |m| m.connections_refused,
    ),
    ("unauthenticated_calls_total", Kind::Counter, "Calls without the right token.", |m| {
        m.unauthenticated
    }),
    ("state_arrays", Kind::Gauge, "Arrays in the state, as it was last saved.", |m| m.saved_arrays),
    ("state_left_out_arrays", Kind::Gauge, "Arrays that the last save left out.", |m| {
        m.left_out_arrays
    }),
    ("state_saves_total", Kind::Counter, "Saves of the state that were done.", |m| m.saves),
    ("state_failed_saves_total", Kind::Counter, "Saves of the state that failed.", |m| {
        m.failed_saves
    }),
    (
        "state_last_save_timestamp_seconds",
        Kind::Gauge,
        "When the state was last saved; 0 where it was not.",
        |m| m.last_save,
    ),
];

/// Facts about the server that are not metrics.
pub(crate) struct Server<'a> {
    pub(crate) gauges: &'a Gauges,
    pub(crate) limits: &'a [(&'static str, Option<f64>)],
    pub(crate) devices: usize,
    /// True if the server is about to stop.
    pub(crate) draining: bool,
}

/// A page under construction.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Appends a line; writing to a text never fails.
    fn line(&mut self, line: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// Writes a metric with one number.
    fn number(&mut self, name: &str, kind: Kind, help: &str, number: impl fmt::Display) {
        self.family(name, kind, help);
        self.line(format_args!("{name} {number}"));
    }

    fn requests(&mut self, gauges: &Gauges) {
        let kinds = gauges.by_kind.read();
        let name = format!("{PREFIX}_requests_total");
        self.family(&name, Kind::Counter, "Requests that were answered, by kind and status.");
        for (kind, series) in &kinds {
            for (code, count) in &series.by_code {
                self.line(format_args!("{name}{{request=\"{kind}\",code=\"{code}\"}} {count}"));
            }
        }
        let name = format!("{PREFIX}_request_duration_seconds");
        self.family(&name, Kind::Histogram, "From a request's arrival to its answer, by kind.");
        for (kind, series) in &kinds {
            let mut within = 0;
            for (bound, count) in BOUNDS.iter().zip(series.by_bound) {
                within += count;
                self.line(format_args!(
                    "{name}_bucket{{request=\"{kind}\",le=\"{bound}\"}} {within}"
                ));
            }
            let count = series.count;
            self.line(format_args!("{name}_bucket{{request=\"{kind}\",le=\"+Inf\"}} {count}"));
            self.line(format_args!("{name}_sum{{request=\"{kind}\"}} {}", series.seconds));
            self.line(format_args!("{name}_count{{request=\"{kind}\"}} {count}"));
        }
    }

    fn limits(&mut self, limits: &[(&'static str, Option<f64>)]) {
        let name = format!("{PREFIX}_limit");
        self.family(&name, Kind::Gauge, "What clients may have, by the name of the limit.");
        for (limit, number) in limits {
            match number {
                Some(number) => self.line(format_args!("{name}{{limit=\"{limit}\"}} {number}")),
                None => self.line(format_args!("{name}{{limit=\"{limit}\"}} +Inf")),
            }
        }
    }

    fn process(&mut self) {
        let Process { resident_bytes, open_descriptors, processor_seconds } = Process::read();
        if let Some(bytes) = resident_bytes {
            let help = "Bytes of the process in memory.";
            self.number("process_resident_memory_bytes", Kind::Gauge, help, bytes);
        }
        if let Some(descriptors) = open_descriptors {
            self.number("process_open_fds", Kind::Gauge, "Open descriptors.", descriptors);
        }
        if let Some(seconds) = processor_seconds {
            let help = "Seconds of processors that the process has used.";
            self.number("process_cpu_seconds_total", Kind::Counter, help, seconds);
        }
    }
}

/// Writes the page of a server.
pub(crate) fn page(server: &Server<'_>) -> String {
    let mut page = Page::default();
    let metrics = server.gauges.read();
    for (name, kind, help, of) in NUMBERS {
        page.number(&format!("{PREFIX}_{name}"), *kind, help, of(&metrics));
    }
    let numbers = [
        ("devices", "Devices that are served.", server.devices as u64),
        (
            "draining",
            "1 while no new session is opened because the server is to stop.",
            u64::from(server.draining),
        ),
    ];
    for (name, help, number) in numbers {
        page.number(&format!("{PREFIX}_{name}"), Kind::Gauge, help, number);
    }
    let name = format!("{PREFIX}_build_info");
    page.family(&name, Kind::Gauge, "1, with the version of the server.");
    page.line(format_args!("{name}{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
    page.requests(server.gauges);
    page.limits(server.limits);
    page.process();
    page.0
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use serdes::codec::StatusCode;

    fn page_of(gauges: &Gauges) -> String {
        let limits = [("sessions", Some(7.0)), ("array-bytes", None)];
        page(&Server { gauges, limits: &limits, devices: 2, draining: true })
    }

    /// Returns the samples of a page, and the type of each family.
    fn samples(page: &str) -> (BTreeMap<&str, f64>, BTreeMap<&str, &str>) {
        let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(types.insert(name, kind).is_none(), "{name} twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(samples.insert(series, value.parse().unwrap()).is_none(), "{line} twice");
            }
        }
        (samples, types)
    }

    #[test]
    fn every_sample_has_a_type_and_stands_once() {
        let gauges = Gauges::default();
        gauges.by_kind.note("InitRequest", StatusCode::Ok, Duration::from_micros(10));
        let page = page_of(&gauges);
        let (samples, types) = samples(&page);
        for series in samples.keys() {
            let name = series.split('{').next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(types.contains_key(name) || types.contains_key(family.unwrap_or(name)));
        }
        for (name, kind) in types {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        }
        assert_eq!(samples["serdes_proxy_devices"], 2.0);
        assert_eq!(samples["serdes_proxy_draining"], 1.0);
        assert_eq!(samples["serdes_proxy_limit{limit=\"sessions\"}"], 7.0);
        assert_eq!(samples["serdes_proxy_limit{limit=\"array-bytes\"}"], f64::INFINITY);
    }

    #[test]
    fn durations_are_counted_in_growing_classes_that_end_with_all() {
        let gauges = Gauges::default();
        for (milliseconds, code) in
            [(0, StatusCode::Ok), (2, StatusCode::Ok), (400_000, StatusCode::NotFound)]
        {
            gauges.by_kind.note("CheckFutureRequest", code, Duration::from_millis(milliseconds));
        }
        let page = page_of(&gauges);
        let (samples, _) = samples(&page);
        let name = "serdes_proxy_request_duration_seconds";
        let bucket = |bound: &str| {
            samples
                [format!("{name}_bucket{{request=\"CheckFutureRequest\",le=\"{bound}\"}}").as_str()]
        };
        assert_eq!(["0.0001", "0.001", "0.0025", "300", "+Inf"].map(bucket), [1., 1., 2., 2., 3.]);
        let sum = samples[format!("{name}_sum{{request=\"CheckFutureRequest\"}}").as_str()];
        assert!((sum - 400.002).abs() < 1e-9);
        let total = "serdes_proxy_requests_total{request=\"CheckFutureRequest\",code=";
        assert_eq!(samples[format!("{total}\"OK\"}}").as_str()], 2.0);
        assert_eq!(samples[format!("{total}\"NOT_FOUND\"}}").as_str()], 1.0);
    }
}
