//! Work with a plug-in in a process of its own, watched by this one.
//!
//! A plug-in is foreign code: it may call `exit(0)`, abort, or raise a signal in the middle of the
//! work, and a caller would take that exit status for an answer. So the work is done by a second
//! process, the worker, which writes the files and prints the results itself and writes its status
//! into a pipe at the end. This process loads nothing, waits, passes on requests by signals, and
//! makes an error of an end without a status. A worker that is asked to stop and does not come to
//! its end is killed, and the partial files of one that did not end by itself are removed. No byte
//! of any file passes through this process.
//!
//! The worker is in the same process group, so that stopping and continuing work as always; the
//! signals that ask to stop do nothing to it where they come to it directly, as from a terminal,
//! since this process hears them too and passes each on once.

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

/// Time limit for the worker to end after it wrote its status: a plug-in's code at the end of a
/// process may hang.
const ENDING_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for the worker to come to its end once it is asked to stop, where it has no limits of
/// its own for that: a call into the plug-in may hang.
pub(crate) const STOPPING_LIMIT: Duration = Duration::from_secs(3);
/// Longest delay of the end by partial files of a worker that was killed at once.
const CLEARING_LIMIT: Duration = Duration::from_secs(1);
/// Interval at which the worker is looked for, where its pipe does not tell because another process
/// holds it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Bytes for requests in the pipe of orders.
const STOP: u8 = b's';
const HANGUP: u8 = b'h';

/// The worker's first byte, once it has opened its ends of the pipes.
const READY: u8 = b'r';

/// Pipe for the worker's status.
static STATUS: OnceLock<File> = OnceLock::new();

/// Whom the worker tells what people ask.
type Listener = Box<dyn FnMut(Request) + Send>;
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// Returns true if this system supports supervision.
pub(crate) fn is_possible() -> bool {
    Path::new("/proc/self/fd").is_dir()
}

/// Makes this process the worker of the one that started it with this description of the pipes: the
/// process that holds them, and the numbers that they have there.
///
/// # Errors
/// If there are no such pipes.
pub(crate) fn become_worker(pipes: &str) -> io::Result<()> {
    let numbers: Result<Vec<u32>, _> = pipes.split(',').map(str::parse).collect();
    let Ok(&[holder, status, orders]) = numbers.as_deref() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let pipe = |number: u32| format!("/proc/{holder}/fd/{number}");
    // Killed outright: a kill of the watching process is meant for both.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    signals::hear_and_forget(&[
        signal_hook::consts::signal::SIGHUP,
        signal_hook::consts::signal::SIGINT,
        signal_hook::consts::signal::SIGTERM,
    ]);
    // Opened here and not inherited, so that no process that this one starts has them.
    let mut said = File::options().write(true).open(pipe(status))?;
    let mut orders = File::open(pipe(orders))?;
    said.write_all(&[READY])?;
    // Set here alone.
    let _ = STATUS.set(said);
    thread::spawn(move || {
        let mut order = [0];
        while orders.read_exact(&mut order).is_ok() {
            let request = if order == [HANGUP] { Request::Hangup } else { Request::Stop(0) };
            match LISTENER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                Some(each) => each(request),
                // Nothing was begun yet that could be taken back.
                None if request == Request::Hangup => {}
                None => signals::end_by(signal_hook::consts::signal::SIGTERM),
            }
        }
    });
    Ok(())
}

/// Returns true if another process watches this one.
pub(crate) fn is_worker() -> bool {
    STATUS.get().is_some()
}

/// Sends the status of the work to the process that watches this one, if one does; the first one
/// counts.
pub(crate) fn report_status(status: ExitStatus) {
    if let Some(mut pipe) = STATUS.get() {
        // A failure to write it cannot be reported.
        let _ = pipe.write_all(&[b'0' + status as u8]);
    }
}

/// From now on tells `each` what the watching process passes on.
pub(crate) fn obey(each: impl FnMut(Request) + Send + 'static) {
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(each));
}

/// A work that a worker does.
pub(crate) struct Work {
    /// Meaning of SIGHUP for it; where it is a request of its own, the worker has limits of its own
    /// for a stop.
    pub(crate) hangup: Hangup,
    /// The file that it writes, if it writes one into the file system.
    pub(crate) target: Option<PathBuf>,
    /// A variable of its environment, in place of this process's.
    pub(crate) environment: Option<(&'static str, OsString)>,
}

/// End of the worker.
pub(crate) struct Ended {
    /// The status that it said.
    pub(crate) status: Option<ExitStatus>,
    /// Exit status of its process; `None` if it had to be killed because it did not end.
    pub(crate) exit: Option<process::ExitStatus>,
}

/// Requests so far.
#[derive(Default)]
struct Asked {
    /// The signal by which they asked to stop first, and when.
    stop: Mutex<Option<(i32, Instant)>>,
    /// The signal by which they asked to stop at once; 0 before.
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

/// Runs this command, with these arguments, in a worker, to its end.
///
/// # Errors
/// The error that the system reports if there can be none.
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
        // Nothing can be written to what is open for reading.
        command.stdout(Stdio::from(File::open("/dev/null")?));
    }
    let worker = Arc::new(Mutex::new(command.spawn()?));
    let asked = pass_on(work.hangup, order, Arc::clone(&worker))?;
    let limit = (work.hangup == Hangup::Stops).then_some(STOPPING_LIMIT);
    let ended = wait(&worker, File::from(status), (said, orders), &asked, limit)?;
    // A worker that said its status has left nothing.
    if let Some(target) = work.target.as_ref().filter(|_| ended.status.is_none()) {
        serdes_device_state::files::remove_leftovers_of(target);
    }
    let now = asked.now.load(Ordering::Acquire);
    if now != 0 {
        signals::end_by(now);
    }
    // By that very signal: a plug-in may well fault while the work is stopped, which is to be said.
    if let Some((signal, _)) = asked.stop()
        && ended.status.is_none()
        && ended.exit.is_some_and(|exit| exit.signal() == Some(signal))
    {
        // It was asked to stop before it had begun anything.
        signals::end_by(signal);
    }
    Ok(ended)
}

fn locked(worker: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on what people ask; answers where it is noted.
fn pass_on(hangup: Hangup, order: OwnedFd, worker: Arc<Mutex<Child>>) -> io::Result<Arc<Asked>> {
    let asked = Arc::new(Asked::default());
    let noted = Arc::clone(&asked);
    let mut order = File::from(order);
    signals::listen(hangup, move |request| {
        // Without a receiver, the worker is at its end.
        let _ = match request {
            Request::Stop(signal) => {
                noted.note_stop(signal);
                order.write_all(&[STOP])
            }
            Request::Hangup => order.write_all(&[HANGUP]),
            Request::StopNow(signal) => {
                noted.now.store(signal, Ordering::Release);
                let _ = locked(&worker).kill();
                // The thread that waits for the worker ends this process, unless the system keeps
                // it.
                thread::sleep(CLEARING_LIMIT);
                signals::end_by(signal)
            }
        };
    })?;
    Ok(asked)
}

/// Waits until the worker has said its status and ended; once it is asked to stop, no longer than
/// `limit`. Its own ends of the pipes are held until it has opened them.
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
            // First whether it has ended, then what it has said: it says its status before it ends.
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
