//! Requests by signals: to stop, to stop at once, to save.
//!
//! The first request to stop cleans up partial output before the process exits; the second ends it
//! at once, as the signal would without a handler. Requests to stop by signals that were ignored
//! when the process began stay ignored: `nohup` and `trap ''` mean it. Where SIGHUP is a request of
//! its own it is handled all the same: starting a server with `nohup` means that it goes on when
//! the terminal is gone, not that it never saves.

use std::io;
#[cfg(unix)]
use std::time::{Duration, Instant};

/// A request by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// To stop, and to leave nothing unfinished; the number of the signal, 0 where it is not known.
    Stop(i32),
    /// To end without delay; the number of the signal.
    StopNow(i32),
    /// To do what the process does on SIGHUP.
    Hangup,
}

/// Meaning of SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// The terminal is gone: stop.
    Stops,
    /// A request of its own.
    Asks,
}

/// Requests to stop that come closer together are one: some programs that stop others signal the
/// process and then its group.
#[cfg(unix)]
const ONE_REQUEST: Duration = Duration::from_millis(50);

/// Tells `each` of every request from now on, on a thread of its own.
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

/// Tells `each` of every request from now on, on a thread of its own.
///
/// # Errors
/// The system's error if it cannot listen.
#[cfg(not(unix))]
pub(crate) fn listen(_: Hangup, mut each: impl FnMut(Request) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || each(Request::Stop(0))).map_err(io::Error::other)
}

/// Ends the process as the signal does without a handler, so that the waiting process learns the
/// reason.
pub(crate) fn end_by(signal: i32) -> ! {
    #[cfg(unix)]
    {
        // It comes back only where the signal is none that ends a process.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    std::process::exit(128 + signal)
}

/// Has writes beyond the limit of a file's size fail, as on a full disk, instead of ending the
/// process.
#[cfg(unix)]
pub(crate) fn outlive_limits() {
    hear_and_forget(&[signal_hook::consts::signal::SIGXFSZ]);
}

/// Lets these signals do nothing, without that programs which this one starts ignore them too.
#[cfg(unix)]
pub(crate) fn hear_and_forget(signals: &[i32]) {
    for signal in not_ignored(signals) {
        // Where it fails, the signal does what it always did.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}

/// Signals that were not ignored when the process began; all, where the system does not tell.
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
