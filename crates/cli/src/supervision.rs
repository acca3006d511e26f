//! Supervises work with a plug-in in another process.
//!
//! A plug-in is foreign code: it may call `exit(0)`, abort, or raise a signal during the work, and
//! a caller would take that exit status for an answer. So a second process, the worker, does the
//! work, writes the files and prints the results itself, and writes its status to a pipe at the
//! end. This process loads nothing, waits, forwards requests from signals, and reports an end
//! without a status as an error. A worker that does not stop on request is killed, and the partial
//! files of one that crashed are removed. File contents never pass through this process.
//!
//! The worker is in the same process group, so that stopping and continuing work as usual; signals
//! that request a stop have no effect on it if they reach it directly, as from a terminal, since
//! this process also gets them and forwards each once.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{self, Child, Stdio},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::{PipeFlags, pipe_with},
    process::{Signal, set_parent_process_death_signal},
};

use crate::{
    invocation,
    signals::{self, Hangup, Request},
    startup,
    status::ExitStatus,
};

/// Time limit for the worker to end after it wrote its status: exit functions of a plug-in may
/// hang.
const ENDING_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for the worker to end after a request to stop, if it has no limits of its own for
/// that: a call into the plug-in may hang.
pub(crate) const STOPPING_LIMIT: Duration = Duration::from_secs(3);
/// Longest delay for removing partial files of a killed worker.
const CLEARING_LIMIT: Duration = Duration::from_secs(1);
/// Interval at which the worker's state is checked, in case another process holds its pipe open.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Bytes for requests in the request pipe.
const STOP: u8 = b's';
const HANGUP: u8 = b'h';

/// The worker's first byte, once it has opened its ends of the pipes.
const READY: u8 = b'r';

/// Pipe for the worker's status.
static STATUS: OnceLock<File> = OnceLock::new();

/// Listener for the requests that the worker forwards.
type Listener = Box<dyn FnMut(Request) + Send>;
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// Returns true if this system supports supervision.
pub(crate) fn is_possible() -> bool {
    Path::new("/proc/self/fd").is_dir()
}

/// Makes this process the worker of the process that started it; the text gives the pipes: the
/// process that holds them, and their numbers there.
///
/// # Errors
/// If the pipes do not exist.
pub(crate) fn become_worker(pipes: &str) -> io::Result<()> {
    let numbers: Result<Vec<u32>, _> = pipes.split(',').map(str::parse).collect();
    let Ok(&[holder, status, orders]) = numbers.as_deref() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let pipe = |number: u32| format!("/proc/{holder}/fd/{number}");
    // A kill of the supervising process is meant for both.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    signals::hear_and_forget(&[
        signal_hook::consts::signal::SIGHUP,
        signal_hook::consts::signal::SIGINT,
        signal_hook::consts::signal::SIGTERM,
    ]);
    // Opened here instead of inherited, so that child processes do not get it.
    let mut said = File::options().write(true).open(pipe(status))?;
    let mut orders = File::open(pipe(orders))?;
    said.write_all(&[READY])?;
    // Set only here.
    let _ = STATUS.set(said);
    thread::spawn(move || {
        let mut order = [0];
        while orders.read_exact(&mut order).is_ok() {
            let request = if order == [HANGUP] { Request::Hangup } else { Request::Stop(0) };
            match LISTENER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                Some(each) => each(request),
                // Nothing was started that could be undone.
                None if request == Request::Hangup => {}
                None => signals::end_by(signal_hook::consts::signal::SIGTERM),
            }
        }
    });
    Ok(())
}

/// Returns true if another process supervises this one.
pub(crate) fn is_worker() -> bool {
    STATUS.get().is_some()
}

/// Sends the status of the work to the supervising process, if there is one; only the first call
/// counts.
pub(crate) fn report_status(status: ExitStatus) {
    if let Some(mut pipe) = STATUS.get() {
        // A failed write cannot be reported.
        let _ = pipe.write_all(&[b'0' + status as u8]);
    }
}

/// Calls `each` for requests that the supervising process forwards.
pub(crate) fn obey(each: impl FnMut(Request) + Send + 'static) {
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(each));
}

/// Work for a worker.
pub(crate) struct Work {
    /// Meaning of SIGHUP for it; if it is a separate request, the worker has its own limits for a
    /// stop.
    pub(crate) hangup: Hangup,
    /// The output file, if there is one in the file system.
    pub(crate) target: Option<PathBuf>,
    /// An environment variable to set for the worker.
    pub(crate) environment: Option<(&'static str, OsString)>,
}

/// End of the worker.
pub(crate) struct Ended {
    /// Status that the worker reported.
    pub(crate) status: Option<ExitStatus>,
    /// Exit status of its process; `None` if it had to be killed.
    pub(crate) exit: Option<process::ExitStatus>,
}

/// Requests so far.
#[derive(Default)]
struct Asked {
    /// The signal of the first request to stop, and its time.
    stop: Mutex<Option<(i32, Instant)>>,
    /// The signal of the request to stop at once; 0 if there was none.
    now: AtomicI32,
}

impl Asked {
    fn stop(&self) -> Option<(i32, Instant)> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_stop(&self, signal: i32) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        *stop = Some((signal, Instant::now()));
    }
}

/// Runs this command, with its arguments, in a worker until it ends.
///
/// # Errors
/// The system's error if the worker cannot be started.
pub(crate) fn run(work: &Work) -> io::Result<Ended> {
    let (status, said) = pipe_with(PipeFlags::CLOEXEC)?;
    let (orders, order) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut command = invocation::again()?;
    let holder = std::process::id();
    command.arg(format!("--worker={holder},{},{}", said.as_raw_fd(), orders.as_raw_fd()));
    command.args(invocation::arguments());
    if let Some((name, value)) = &work.environment {
        command.env(name, value);
    }
    if startup::standard_output_was_closed() {
        // A file opened for reading cannot be written.
        command.stdout(Stdio::from(File::open("/dev/null")?));
    }
    let worker = Arc::new(Mutex::new(command.spawn()?));
    let asked = pass_on(work.hangup, order, Arc::clone(&worker))?;
    let limit = (work.hangup == Hangup::Stops).then_some(STOPPING_LIMIT);
    let ended = wait(&worker, File::from(status), (said, orders), &asked, limit)?;
    // A worker that reported its status left no partial files.
    if let Some(target) = work.target.as_ref().filter(|_| ended.status.is_none()) {
        serdes_device_state::files::remove_leftovers_of(target);
    }
    let now = asked.now.load(Ordering::Acquire);
    if now != 0 {
        signals::end_by(now);
    }
    // Only for that very signal: a crash of the plug-in during a stop should be reported.
    if let Some((signal, _)) = asked.stop()
        && ended.status.is_none()
        && ended.exit.is_some_and(|exit| exit.signal() == Some(signal))
    {
        // The stop was requested before the work began.
        signals::end_by(signal);
    }
    Ok(ended)
}

fn locked(worker: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forwards requests; returns a record of them.
fn pass_on(hangup: Hangup, order: OwnedFd, worker: Arc<Mutex<Child>>) -> io::Result<Arc<Asked>> {
    let asked = Arc::new(Asked::default());
    let noted = Arc::clone(&asked);
    let mut order = File::from(order);
    signals::listen(hangup, move |request| {
        // Without a receiver, the worker is about to end.
        let _ = match request {
            Request::Stop(signal) => {
                noted.note_stop(signal);
                order.write_all(&[STOP])
            }
            Request::Hangup => order.write_all(&[HANGUP]),
            Request::StopNow(signal) => {
                noted.now.store(signal, Ordering::Release);
                let _ = locked(&worker).kill();
                // The thread that waits for the worker ends this process, unless the system delays
                // it.
                thread::sleep(CLEARING_LIMIT);
                signals::end_by(signal)
            }
        };
    })?;
    Ok(asked)
}

/// Waits until the worker has reported its status and ended; after a request to stop, at most
/// `limit`. Its ends of the pipes are held open until it has opened them.
fn wait(
    worker: &Mutex<Child>,
    mut pipe: File,
    ends: (OwnedFd, OwnedFd),
    asked: &Asked,
    limit: Option<Duration>,
) -> io::Result<Ended> {
    let mut said = None;
    let mut ends = Some(ends);
    let mut is_open = true;
    while said.is_none() {
        if let (Some(limit), Some((_, since))) = (limit, asked.stop())
            && since.elapsed() > limit
        {
            return kill(worker, None);
        }
        let exit = if is_open {
            // Check the end before the status: the worker reports its status before it ends.
            let exit = locked(worker).try_wait()?;
            let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
            let limit = if exit.is_some() { Duration::ZERO } else { LOOK_EVERY };
            let found = match poll(&mut fds, Timespec::try_from(limit).ok().as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                found => found?,
            };
            let mut digit = [0];
            if found > 0 {
                match (pipe.read(&mut digit)?, digit) {
                    (0, _) => is_open = false,
                    (_, [READY]) => drop(ends.take()),
                    (_, [digit]) => said = ExitStatus::from_number(digit.wrapping_sub(b'0')),
                }
                continue;
            }
            exit
        } else {
            thread::sleep(Duration::from_millis(5));
            locked(worker).try_wait()?
        };
        if exit.is_some() {
            return Ok(Ended { status: None, exit });
        }
    }
    let until = Instant::now() + ENDING_LIMIT;
    while Instant::now() < until {
        if let Some(exit) = locked(worker).try_wait()? {
            return Ok(Ended { status: said, exit: Some(exit) });
        }
        thread::sleep(Duration::from_millis(1));
    }
    kill(worker, said)
}

/// Kills a worker that does not end.
fn kill(worker: &Mutex<Child>, status: Option<ExitStatus>) -> io::Result<Ended> {
    let mut worker = locked(worker);
    worker.kill()?;
    worker.wait()?;
    Ok(Ended { status, exit: None })
}
