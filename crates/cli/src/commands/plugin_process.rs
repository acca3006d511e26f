//! Runs a plug-in in a separate process, so that a crash is also an answer.
//!
//! An unknown plug-in may crash, throw through the C interface or call `exit(0)`, which a caller
//! could take for "accepted". The process runs this same command, which marks the end of its
//! results; without the mark, the process is incomplete, with any exit status.

use std::{
    io::{BufRead, BufReader},
    process::{self, Child, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::{
    arguments::PluginArguments,
    failure::Failure,
    invocation,
    status::ExitStatus,
    terminal::{END_OF_RESULTS, UNLOADING},
};

/// Time limit for the process to end after its results: its exit functions may hang.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

/// End of the process.
pub(crate) struct Ended {
    /// True if only the unloading of the plug-in remained.
    pub(crate) complete: bool,
    /// Exit status, or a description of the end before the results were complete.
    pub(crate) end: Result<ExitStatus, String>,
}

/// Runs `serdes plugin KIND` on the plug-in in a separate process; `skip` behaviours were tried
/// before. Calls `line` with each line of its output.
pub(crate) fn run(
    kind: &str,
    arguments: &PluginArguments,
    skip: usize,
    options: &[&str],
    line: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<Ended, Failure> {
    let system = |error: std::io::Error| {
        Failure::new(format_args!("cannot run a process for the plug-in: {error}"))
    };
    let mut command = invocation::again().map_err(system)?;
    command
        .args(["plugin", kind, "--supervised", &skip.to_string()])
        .args(["--time-limit", &arguments.time_limit.to_string()])
        .args(options);
    if let Some(layout) = &arguments.layout {
        command.args(["--layout", layout]);
    }
    command.arg("--").arg(&arguments.plugin).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(system)?;
    let silence = Duration::from_secs(arguments.time_limit) + ENDING_LIMIT;
    let found = read(&mut child, silence, line);
    let is_stuck = !matches!(found, Ok((_, ResultsEnd::Status(_) | ResultsEnd::CutOff)));
    let status = end(&mut child, is_stuck).map_err(system)?;
    let (complete, read) = found?;
    let end = match read {
        ResultsEnd::Status(status) => Ok(status),
        ResultsEnd::CutOff => Err(describe(status)),
        ResultsEnd::Stuck => Err(format!("its process did not come back within {silence:?}")),
    };
    Ok(Ended { complete, end })
}

/// End of the results.
enum ResultsEnd {
    /// The results are complete.
    Status(ExitStatus),
    /// The process ended before.
    CutOff,
    /// The process is running without output.
    Stuck,
}

/// Reads the output of the process until the end of its results, or until it has been silent for
/// too long.
fn read(
    child: &mut Child,
    silence: Duration,
    mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(bool, ResultsEnd), Failure> {
    let Some(results) = child.stdout.take() else { return Ok((false, ResultsEnd::CutOff)) };
    let (sender, lines) = mpsc::sync_channel(1);
    // The thread ends with the process, or with this one.
    std::thread::spawn(move || {
        let mut results = BufReader::new(results);
        loop {
            let mut line = Vec::new();
            let is_whole = results.read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n");
            // An incomplete line was cut off by the end of the process.
            if !is_whole || sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut complete = false;
    loop {
        let line = match lines.recv_timeout(silence) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => return Ok((complete, ResultsEnd::Stuck)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok((complete, ResultsEnd::CutOff)),
        };
        match line[..] {
            [END_OF_RESULTS, UNLOADING, b'\n'] => complete = true,
            [END_OF_RESULTS, digit, b'\n'] => {
                let status = ExitStatus::from_number(digit.wrapping_sub(b'0'));
                return Ok((complete, status.map_or(ResultsEnd::CutOff, ResultsEnd::Status)));
            }
            _ => each(&line)?,
        }
    }
}

/// Waits for the end of the process within its time limit.
fn end(child: &mut Child, at_once: bool) -> std::io::Result<process::ExitStatus> {
    let until = Instant::now() + ENDING_LIMIT;
    while !at_once && Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill()?;
    child.wait()
}

/// Returns the description of the end of a plug-in's process.
pub(crate) fn describe(status: process::ExitStatus) -> String {
    if status.success() {
        "it ended the process that had loaded it, with exit status 0".to_owned()
    } else {
        format!("it ended the process that had loaded it ({status})")
    }
}
