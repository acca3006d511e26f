//! Requests by signals: to stop, to stop at once, to save.
//!
//! The first request to stop removes partial output before the process exits; the second ends it at
//! once, like the signal without a handler. Signals that were ignored at the start of the process
//! stay ignored: `nohup` and `trap ''` intend that. If SIGHUP is a separate request it is handled
//! all the same: a server under `nohup` should continue without the terminal, but still save.

use std::io;
#[cfg(unix)]
use std::time::{Duration, Instant};

/// A request by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Stop, and leave no incomplete output; with the number of the signal, 0 if unknown.
    Stop(i32),
    /// End at once; with the number of the signal.
    StopNow(i32),
    /// The action of the process for SIGHUP.
    Hangup,
}

/// Meaning of SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// The terminal was closed: stop.
    Stops,
    /// A separate request.
    Asks,
}

/// Requests to stop within this time count as one: some programs signal the process and then its
/// group.
#[cfg(unix)]
const ONE_REQUEST: Duration = Duration::from_millis(50);

/// Calls `each` for every request from now on, on a thread of its own.
///
/// # Errors
/// The system's error if it cannot listen.
#[cfg(unix)]
pub(crate) fn listen(
    hangup: Hangup,
    mut each: impl FnMut(Request) + Send + 'static,
) -> io::Result<()> {
    use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
    let mut heard = match hangup {
        Hangup::Stops => not_ignored(&[SIGHUP]),
        Hangup::Asks => vec![SIGHUP],
    };
    heard.extend(not_ignored(&[SIGINT, SIGTERM]));
    let mut signals = signal_hook::iterator::Signals::new(heard)?;
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            if signal == SIGHUP && hangup == Hangup::Asks {
                each(Request::Hangup);
                continue;
            }
            match first {
                None => {
                    first = Some(Instant::now());
                    each(Request::Stop(signal));
                }
                Some(first) if first.elapsed() < ONE_REQUEST => {}
                Some(_) => each(Request::StopNow(signal)),
            }
        }
    });
    Ok(())
}

/// Calls `each` for every request from now on, on a thread of its own.
///
/// # Errors
/// The system's error if it cannot listen.
#[cfg(not(unix))]
pub(crate) fn listen(_: Hangup, mut each: impl FnMut(Request) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || each(Request::Stop(0))).map_err(io::Error::other)
}

/// Ends the process like the signal without a handler, so that the waiting process learns the
/// reason.
pub(crate) fn end_by(signal: i32) -> ! {
    #[cfg(unix)]
    {
        // Returns only if the signal does not end a process.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    std::process::exit(128 + signal)
}

/// Makes writes beyond the file size limit fail, as on a full disk, instead of ending the process.
#[cfg(unix)]
pub(crate) fn outlive_limits() {
    hear_and_forget(&[signal_hook::consts::signal::SIGXFSZ]);
}

/// Makes these signals have no effect, without making child processes ignore them.
#[cfg(unix)]
pub(crate) fn hear_and_forget(signals: &[i32]) {
    for signal in not_ignored(signals) {
        // On failure, the signal keeps its effect.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}

/// Returns the signals that were not ignored at the start of the process; all, if the system does
/// not report it.
#[cfg(unix)]
fn not_ignored(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}
