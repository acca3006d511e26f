//! Limits on the resources that clients may hold, and time limits.

mod entries;

use std::time::Duration;

use serdes_host_memory::available_memory;

/// Stands for no limit: longer than any server runs, and short enough to be added to an instant.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Limits on the resources that a server holds for clients, and time limits.
///
/// Most resources have a limit for a session, for a peer (a client certificate, a token, or else an
/// address, with all its sessions and connections) and for the whole server. A request that exceeds
/// a limit by itself is refused; host buffers and requests that do not fit now wait. Errors name
/// the limit as [`set`](Self::set) does.
///
/// Stores and results have separate budgets: a result never waits for a store, nor the other way
/// round.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections of a peer.
    pub peer_connections: usize,
    /// Maximum number of calls in progress; an open session counts as one.
    pub calls: usize,
    /// Maximum number of calls of a peer.
    pub peer_calls: usize,
    /// Maximum number of sessions.
    pub sessions: usize,
    /// Maximum number of sessions of a peer.
    pub peer_sessions: usize,
    /// Maximum number of sessions of a connection. Real clients use one.
    pub connection_sessions: usize,
    /// Maximum number of health checks, including those that watch for a change.
    pub health_calls: usize,
    /// Maximum number of health checks of a peer.
    pub peer_health_calls: usize,
    /// Maximum number of array handles of all sessions.
    pub handles: usize,
    /// Maximum number of array handles of a peer.
    pub peer_handles: usize,
    /// Maximum number of handles of a session, for each of arrays, futures and host buffers.
    pub handles_per_session: usize,
    /// Maximum number of requests in progress.
    pub requests: usize,
    /// Maximum number of requests of a peer in progress.
    pub peer_requests: usize,
    /// Maximum number of requests of a session in progress; further ones are not read.
    pub requests_per_session: usize,
    /// Maximum size of a request without a program, in bytes.
    pub request_bytes: u64,
    /// Maximum size of a request with a program, in bytes.
    pub program_bytes: u64,
    /// Bytes of host buffers and large requests of all sessions, in each direction. By default an
    /// eighth of the machine's free memory.
    pub total_host_bytes: u64,
    /// Bytes of host buffers and large requests of a peer, in each direction. By default half of
    /// the total.
    pub peer_host_bytes: u64,
    /// Bytes of host buffers and large requests of a session, in each direction.
    pub session_host_bytes: u64,
    /// Bytes of the arrays of all sessions on devices and in pinned memory. By default the devices'
    /// memory, but at most half of the machine's free memory if the devices use that.
    pub total_array_bytes: u64,
    /// Bytes of a peer's arrays on devices and in pinned memory. By default 15/16 of the total if
    /// that is at least 1 GiB, else the total.
    pub peer_array_bytes: u64,
    /// Bytes of a session's arrays on devices and in pinned memory.
    pub session_array_bytes: u64,
    /// Bytes of all arrays in pinned memory, which is host memory. By default an eighth of the
    /// machine's free memory.
    pub total_pinned_bytes: u64,
    /// Bytes of a peer's arrays in pinned memory. By default half of the total.
    pub peer_pinned_bytes: u64,
    /// Maximum number of programs that are loaded or being compiled.
    pub programs: usize,
    /// Maximum number of loaded programs of a peer.
    pub peer_programs: usize,
    /// Maximum number of loaded programs of a session.
    pub programs_per_session: usize,
    /// Maximum number of executions that a plug-in has begun and not ended. Further ones wait.
    pub executions: usize,
    /// Maximum number of executions of a peer.
    pub peer_executions: usize,
    /// Maximum number of executions of a session.
    pub executions_per_session: usize,
    /// Longest compilation that a client waits for. A compiler in a process of its own
    /// ([`ServerBuilder::trial_compiler`](super::ServerBuilder::trial_compiler)) is then stopped;
    /// one in this process counts as running until it ends.
    pub compilation_timeout: Duration,
    /// Longest run of a program that a client waits for. The program itself cannot be stopped: it
    /// counts as running until it ends.
    pub execution_timeout: Duration,
    /// Longest time that a program with loops, or with parts that wait for one another, may block
    /// its devices while programs of other sessions wait for them. It cannot be stopped either: the
    /// others get the devices from another client of the plug-in.
    pub shared_execution_timeout: Duration,
    /// Longest time that a program waits for a function call of its client.
    pub callback_timeout: Duration,
    /// Longest time for a client to identify itself: for each of the handshakes of TLS and HTTP/2,
    /// the first call of a connection, and the first request of a session.
    pub handshake_timeout: Duration,
    /// Time after which a connection without calls is closed; its client reconnects for the next
    /// call.
    pub connection_idle_timeout: Duration,
    /// Time after which a session that holds nothing and sends no request is closed.
    pub session_idle_timeout: Duration,
    /// Longest life of a session.
    pub session_timeout: Duration,
    /// Longest time that an array waits for its data, and a buffer for memory.
    pub host_buffer_timeout: Duration,
    /// Longest pause within a transfer or a message.
    pub idle_timeout: Duration,
    /// Time without traffic after which a connection is pinged, and the longest wait for the
    /// answer.
    pub keepalive: Duration,
    /// Time that open sessions may continue when the server is to stop; no new ones are opened
    /// meanwhile. By default they end at once.
    pub drain_timeout: Duration,
    /// Longest save of the state when the server stops, including all attempts. Together with
    /// `drain_timeout` and `stop_timeout` it should be less than the time that a service manager
    /// waits before it kills the process.
    pub save_timeout: Duration,
    /// Longest time for requests in progress when the server stops.
    pub stop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        let available = available_memory();
        let host = (available / 8).max(MIB);
        let pinned = (available / 8).max(MIB);
        // An object behind a handle takes about a kilobyte.
        let handles =
            usize::try_from(available >> 14).unwrap_or(usize::MAX).clamp(1 << 16, 1 << 21);
        Self {
            connections: 4096,
            peer_connections: 1024,
            calls: 16384,
            peer_calls: 4096,
            sessions: 4096,
            peer_sessions: 1024,
            connection_sessions: 64,
            health_calls: 256,
            peer_health_calls: 32,
            handles,
            peer_handles: handles / 2,
            handles_per_session: handles / 2,
            requests: 1 << 16,
            peer_requests: 1 << 14,
            requests_per_session: 4096,
            request_bytes: 4 * MIB,
            program_bytes: 512 * MIB,
            total_host_bytes: host,
            peer_host_bytes: host / 2,
            session_host_bytes: host / 2,
            total_array_bytes: u64::MAX,
            peer_array_bytes: u64::MAX,
            session_array_bytes: u64::MAX,
            total_pinned_bytes: pinned,
            peer_pinned_bytes: pinned / 2,
            programs: 1 << 16,
            peer_programs: 1 << 15,
            programs_per_session: 1 << 14,
            executions: 1 << 12,
            peer_executions: 1 << 11,
            executions_per_session: 1 << 10,
            compilation_timeout: Duration::from_secs(3600),
            execution_timeout: FOREVER,
            shared_execution_timeout: Duration::from_secs(600),
            callback_timeout: Duration::from_secs(600),
            handshake_timeout: Duration::from_secs(10),
            connection_idle_timeout: Duration::from_secs(300),
            session_idle_timeout: Duration::from_secs(3600),
            session_timeout: FOREVER,
            host_buffer_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            keepalive: Duration::from_secs(30),
            drain_timeout: Duration::ZERO,
            save_timeout: Duration::from_secs(75),
            stop_timeout: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// Returns the execution timeout, if it is finite.
    pub(crate) fn execution_limit(&self) -> Option<Duration> {
        Some(self.execution_timeout).filter(|limit| *limit < FOREVER)
    }

    /// Returns the limit on executions that others wait for, if it is finite.
    pub(crate) fn shared_execution_limit(&self) -> Option<Duration> {
        Some(self.shared_execution_timeout).filter(|limit| *limit < FOREVER)
    }

    /// Returns the limits with defaults computed from devices with `device_bytes` bytes together,
    /// and no share larger than its total.
    pub(crate) fn resolved(mut self, device_bytes: Option<u64>) -> Self {
        const LARGE: u64 = 1 << 30;
        if self.total_array_bytes == u64::MAX {
            self.total_array_bytes = device_bytes.unwrap_or(u64::MAX);
        }
        if self.peer_array_bytes == u64::MAX {
            let total = self.total_array_bytes;
            self.peer_array_bytes =
                if (LARGE..u64::MAX).contains(&total) { total - total / 16 } else { total };
        }
        for (part, whole) in [
            (&mut self.peer_connections, self.connections),
            (&mut self.peer_calls, self.calls),
            (&mut self.peer_sessions, self.sessions),
            (&mut self.peer_health_calls, self.health_calls),
            (&mut self.peer_handles, self.handles),
            (&mut self.peer_requests, self.requests),
            (&mut self.peer_programs, self.programs),
            (&mut self.peer_executions, self.executions),
        ] {
            *part = (*part).min(whole);
        }
        self.connection_sessions = self.connection_sessions.min(self.peer_sessions);
        self.programs_per_session = self.programs_per_session.min(self.peer_programs);
        self.executions_per_session = self.executions_per_session.min(self.peer_executions);
        self.handles_per_session = self.handles_per_session.min(self.peer_handles);
        self.requests_per_session = self.requests_per_session.min(self.peer_requests);
        self.peer_host_bytes = self.peer_host_bytes.min(self.total_host_bytes);
        self.session_host_bytes = self.session_host_bytes.min(self.peer_host_bytes);
        self.peer_array_bytes = self.peer_array_bytes.min(self.total_array_bytes);
        self.session_array_bytes = self.session_array_bytes.min(self.peer_array_bytes);
        self.peer_pinned_bytes = self.peer_pinned_bytes.min(self.total_pinned_bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_to_what_it_says_that_it_is() {
        let mut limits = Limits::default();
        for (name, value, _) in Limits::default().entries() {
            limits.set(name, &value).unwrap();
            limits.set(name, "7").unwrap();
            let shown = limits.entries().into_iter().find(|(known, ..)| *known == name);
            assert_eq!(shown.unwrap().1, "7");
            limits.set(name, "unlimited").unwrap();
        }
        assert!(limits.entries().iter().all(|(_, value, _)| value == "unlimited"));
    }

    #[test]
    fn bytes_have_units_and_seconds_have_fractions() {
        let mut limits = Limits::default();
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("2k", 2048),
            ("3M", 3 << 20),
            ("4G", 4 << 30),
            ("1T", 1 << 40),
        ] {
            limits.set("host-bytes", text).unwrap();
            assert_eq!(limits.total_host_bytes, bytes);
        }
        limits.set("handshake-seconds", "0.25").unwrap();
        assert_eq!(limits.handshake_timeout, Duration::from_millis(250));
    }

    #[test]
    fn invalid_limit_is_refused_with_the_expected_form() {
        let mut limits = Limits::default();
        for (name, value, part) in [
            ("session", "1", "peer-sessions"),
            ("sessions", "0", "above 0"),
            ("sessions", "-1", "above 0"),
            ("host-bytes", "1GB", "512M"),
            ("host-bytes", "99999999T", "512M"),
            ("keepalive-seconds", "nan", "seconds"),
            ("keepalive-seconds", "-1", "seconds"),
        ] {
            let error = limits.set(name, value).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn limits_of_a_peer_fit_the_total_and_defaults_the_machine() {
        let limits = Limits { total_host_bytes: 1000, sessions: 3, ..Limits::default() };
        let limits = limits.resolved(Some(512 << 20));
        assert_eq!((limits.peer_host_bytes, limits.session_host_bytes), (1000, 1000));
        assert_eq!((limits.peer_sessions, limits.connection_sessions), (3, 3));
        assert_eq!(limits.session_array_bytes, 512 << 20);
        assert_eq!(Limits::default().resolved(Some(16 << 30)).peer_array_bytes, 15 << 30);
        let limits = Limits::default();
        let all = 2 * limits.total_host_bytes + limits.total_pinned_bytes;
        assert!(all < available_memory());
    }
}
