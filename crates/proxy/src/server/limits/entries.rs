//! Names of the limits, and their values as text.

use std::time::Duration;

use super::{FOREVER, Limits};
use crate::ProxyError;

/// A reference to a limit, by its type.
enum Value<'a> {
    Count(&'a mut usize),
    Bytes(&'a mut u64),
    Time(&'a mut Duration),
    /// A time limit that may be zero.
    Wait(&'a mut Duration),
}

/// The name of a limit, its description, and an accessor.
type Entry = (&'static str, &'static str, fn(&mut Limits) -> Value<'_>);

/// All limits, by their names.
const ENTRIES: &[Entry] = &[
    ("connections", "connections at a time", |l| Value::Count(&mut l.connections)),
    ("peer-connections", "connections of a peer", |l| Value::Count(&mut l.peer_connections)),
    ("calls", "calls in progress, open sessions included", |l| Value::Count(&mut l.calls)),
    ("peer-calls", "calls of a peer", |l| Value::Count(&mut l.peer_calls)),
    ("sessions", "sessions at a time", |l| Value::Count(&mut l.sessions)),
    ("peer-sessions", "sessions of a peer", |l| Value::Count(&mut l.peer_sessions)),
    ("connection-sessions", "sessions of a connection", |l| {
        Value::Count(&mut l.connection_sessions)
    }),
    ("health-calls", "calls that ask for the server's health", |l| {
        Value::Count(&mut l.health_calls)
    }),
    ("peer-health-calls", "such calls of a peer", |l| Value::Count(&mut l.peer_health_calls)),
    ("handles", "array handles of all sessions", |l| Value::Count(&mut l.handles)),
    ("peer-handles", "array handles of a peer", |l| Value::Count(&mut l.peer_handles)),
    ("session-handles", "array handles of a session; futures and host buffers too", |l| {
        Value::Count(&mut l.handles_per_session)
    }),
    ("requests", "requests in progress", |l| Value::Count(&mut l.requests)),
    ("peer-requests", "requests of a peer in progress", |l| Value::Count(&mut l.peer_requests)),
    ("session-requests", "requests of a session in progress", |l| {
        Value::Count(&mut l.requests_per_session)
    }),
    ("request-bytes", "a request without a program", |l| Value::Bytes(&mut l.request_bytes)),
    ("program-bytes", "a request with a program", |l| Value::Bytes(&mut l.program_bytes)),
    ("host-bytes", "host buffers of all, each way", |l| Value::Bytes(&mut l.total_host_bytes)),
    ("peer-host-bytes", "host buffers of a peer, each way", |l| {
        Value::Bytes(&mut l.peer_host_bytes)
    }),
    ("session-host-bytes", "host buffers of a session, each way", |l| {
        Value::Bytes(&mut l.session_host_bytes)
    }),
    ("array-bytes", "arrays of all, on devices and in pinned memory", |l| {
        Value::Bytes(&mut l.total_array_bytes)
    }),
    ("peer-array-bytes", "arrays of a peer", |l| Value::Bytes(&mut l.peer_array_bytes)),
    ("session-array-bytes", "arrays of a session", |l| Value::Bytes(&mut l.session_array_bytes)),
    ("pinned-bytes", "arrays of all in pinned memory", |l| Value::Bytes(&mut l.total_pinned_bytes)),
    ("peer-pinned-bytes", "arrays of a peer in pinned memory", |l| {
        Value::Bytes(&mut l.peer_pinned_bytes)
    }),
    ("programs", "programs of all that are loaded", |l| Value::Count(&mut l.programs)),
    ("peer-programs", "programs of a peer", |l| Value::Count(&mut l.peer_programs)),
    ("session-programs", "programs of a session", |l| Value::Count(&mut l.programs_per_session)),
    ("executions", "executions in progress", |l| Value::Count(&mut l.executions)),
    ("peer-executions", "executions of a peer in progress", |l| {
        Value::Count(&mut l.peer_executions)
    }),
    ("session-executions", "executions of a session in progress", |l| {
        Value::Count(&mut l.executions_per_session)
    }),
    ("compilation-seconds", "compilation of a program", |l| {
        Value::Time(&mut l.compilation_timeout)
    }),
    ("execution-seconds", "execution of a program", |l| Value::Time(&mut l.execution_timeout)),
    ("shared-execution-seconds", "execution while programs of other clients wait", |l| {
        Value::Time(&mut l.shared_execution_timeout)
    }),
    ("callback-seconds", "a program waiting for its client", |l| {
        Value::Time(&mut l.callback_timeout)
    }),
    ("handshake-seconds", "each handshake with a client", |l| {
        Value::Time(&mut l.handshake_timeout)
    }),
    ("idle-connection-seconds", "a connection without a call", |l| {
        Value::Time(&mut l.connection_idle_timeout)
    }),
    ("idle-session-seconds", "a session without objects and requests", |l| {
        Value::Time(&mut l.session_idle_timeout)
    }),
    ("session-seconds", "the whole duration of a session", |l| Value::Time(&mut l.session_timeout)),
    ("idle-transfer-seconds", "a transfer or message without progress", |l| {
        Value::Time(&mut l.idle_timeout)
    }),
    ("host-buffer-seconds", "waiting for the data of an array or for memory", |l| {
        Value::Time(&mut l.host_buffer_timeout)
    }),
    ("keepalive-seconds", "between keep-alive messages to a silent client", |l| {
        Value::Time(&mut l.keepalive)
    }),
    ("drain-seconds", "waiting for open sessions at a stop", |l| Value::Wait(&mut l.drain_timeout)),
    ("save-seconds", "saving the state at a stop", |l| Value::Time(&mut l.save_timeout)),
    ("stop-seconds", "finishing requests in progress at a stop", |l| {
        Value::Time(&mut l.stop_timeout)
    }),
];

impl Limits {
    /// Sets the limit of this name: a number; bytes also with the suffix K, M, G or T (powers of
    /// 1024); seconds also with a fraction; or `unlimited`. Setting a total reduces a peer's share
    /// of host buffers or pinned memory to at most half of it; a share set afterwards is kept as it
    /// is.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for an unknown name or an invalid value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ProxyError> {
        let entry = ENTRIES.iter().find(|(known, ..)| *known == name);
        let Some((_, _, of)) = entry else {
            let names: Vec<_> = ENTRIES.iter().map(|(name, ..)| *name).collect();
            let reason = format!("there is no such limit; expected one of {}", names.join(", "));
            return Err(ProxyError::configuration("the limit", name, reason));
        };
        let wrong = |expected: &str| {
            ProxyError::configuration(
                "the limit",
                format!("{name}={value}"),
                format!("expected {expected}"),
            )
        };
        let unlimited = value == "unlimited";
        match of(self) {
            Value::Count(count) if unlimited => *count = usize::MAX,
            Value::Bytes(bytes) if unlimited => *bytes = u64::MAX,
            Value::Time(time) | Value::Wait(time) if unlimited => *time = FOREVER,
            Value::Count(count) => {
                let number = value.parse().ok().filter(|number| *number > 0);
                *count = number.ok_or_else(|| wrong("a number above 0, or `unlimited`"))?;
            }
            Value::Bytes(bytes) => {
                *bytes = parse_bytes(value).ok_or_else(|| {
                    wrong("a number of bytes such as 512M or 16G, or `unlimited`")
                })?;
            }
            Value::Time(time) => {
                let parsed = parse_seconds(value).filter(|seconds| !seconds.is_zero());
                *time =
                    parsed.ok_or_else(|| wrong("a number of seconds above 0, or `unlimited`"))?;
            }
            Value::Wait(time) => {
                *time = parse_seconds(value)
                    .ok_or_else(|| wrong("a number of seconds from 0 on, or `unlimited`"))?;
            }
        }
        // Adjust a peer's share to the new total.
        match name {
            "host-bytes" => {
                self.peer_host_bytes = self.peer_host_bytes.min(self.total_host_bytes / 2);
            }
            "pinned-bytes" => {
                self.peer_pinned_bytes = self.peer_pinned_bytes.min(self.total_pinned_bytes / 2);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns all limits: their names, their values in the form of [`set`](Self::set), and their
    /// descriptions.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut limits = self.clone();
        let entries = ENTRIES.iter().map(|(name, what, of)| {
            let value = match of(&mut limits) {
                Value::Count(&mut usize::MAX) | Value::Bytes(&mut u64::MAX) => {
                    "unlimited".to_owned()
                }
                Value::Count(count) => count.to_string(),
                Value::Bytes(bytes) => show_bytes(*bytes),
                Value::Time(time) | Value::Wait(time) if *time >= FOREVER => "unlimited".to_owned(),
                Value::Time(time) | Value::Wait(time) => time.as_secs_f64().to_string(),
            };
            (*name, value, *what)
        });
        entries.collect()
    }

    /// Returns the name and the value of each limit in items, bytes or seconds; `None` for no
    /// limit.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, Option<f64>)> {
        let mut limits = self.clone();
        let numbers = ENTRIES.iter().map(|(name, _, of)| {
            let number = match of(&mut limits) {
                Value::Count(&mut usize::MAX) | Value::Bytes(&mut u64::MAX) => None,
                Value::Count(count) => Some(*count as f64),
                Value::Bytes(bytes) => Some(*bytes as f64),
                Value::Time(time) | Value::Wait(time) if *time >= FOREVER => None,
                Value::Time(time) | Value::Wait(time) => Some(time.as_secs_f64()),
            };
            (*name, number)
        });
        numbers.collect()
    }
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    Some(seconds.min(FOREVER))
}

/// Powers of 1024 and their suffixes.
const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

fn parse_bytes(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let unit = UNITS.iter().find_map(|(letter, unit)| Some((upper.strip_suffix(*letter)?, *unit)));
    let (number, unit) = unit.unwrap_or((&upper, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn show_bytes(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(letter, unit)| format!("{}{letter}", bytes / unit))
}
