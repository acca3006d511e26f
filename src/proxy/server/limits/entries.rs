//! The limits by their names, and their values as texts.

use std::time::Duration;

use super::Limits;

/// Longer than any server runs, and short enough to be added to a moment.
pub(super) const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A limit, as it is set.
pub(super) enum Value<'a> {
    Count(&'a mut usize),
    Bytes(&'a mut u64),
    Time(&'a mut Duration),
    /// A time that may be none at all.
    Wait(&'a mut Duration),
}

/// The name of a limit, what it limits, and where it is.
pub(super) type Entry = (&'static str, &'static str, fn(&mut Limits) -> Value<'_>);

/// All limits, by their names.
pub(super) const ENTRIES: &[Entry] = &[
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
    ("compilation-seconds", "until a client gets no program any more", |l| {
        Value::Time(&mut l.compilation_timeout)
    }),
    ("execution-seconds", "until a client gets no results of a program any more", |l| {
        Value::Time(&mut l.execution_timeout)
    }),
    ("callback-seconds", "a program that waits for its client", |l| {
        Value::Time(&mut l.callback_timeout)
    }),
    ("handshake-seconds", "until a client has said who it is and what it wants", |l| {
        Value::Time(&mut l.handshake_timeout)
    }),
    ("idle-connection-seconds", "a connection without a call", |l| {
        Value::Time(&mut l.connection_idle_timeout)
    }),
    ("idle-session-seconds", "a session that holds nothing and asks nothing", |l| {
        Value::Time(&mut l.session_idle_timeout)
    }),
    ("session-seconds", "a session in all", |l| Value::Time(&mut l.session_timeout)),
    ("idle-transfer-seconds", "a transfer or message that stands still", |l| {
        Value::Time(&mut l.idle_timeout)
    }),
    ("host-buffer-seconds", "an array without its data, a buffer without room", |l| {
        Value::Time(&mut l.host_buffer_timeout)
    }),
    ("keepalive-seconds", "between questions whether a silent client is there", |l| {
        Value::Time(&mut l.keepalive)
    }),
    ("drain-seconds", "for open sessions before a stop", |l| Value::Wait(&mut l.drain_timeout)),
    ("save-seconds", "for saving the state at a stop", |l| Value::Time(&mut l.save_timeout)),
    ("stop-seconds", "for requests in progress at a stop", |l| Value::Time(&mut l.stop_timeout)),
];

pub(super) fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    Some(seconds.min(FOREVER))
}

/// The powers of 1024 and their letters.
const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let unit = UNITS.iter().find_map(|(letter, unit)| Some((upper.strip_suffix(*letter)?, *unit)));
    let (number, unit) = unit.unwrap_or((&upper, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

pub(super) fn show_bytes(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(letter, unit)| format!("{}{letter}", bytes / unit))
}
