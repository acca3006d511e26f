//! The compiling processes: started on demand, used for one program at a time, and replaced when
//! they end.

use std::{
    io::{self, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serdes_proxy::{TrialCompiler, TrialFailure};

use super::frames::{self, Answer};
use crate::commands::plugin_process::describe;

/// Time limit for a plug-in to create a client.
const STARTING_LIMIT: Duration = Duration::from_secs(120);
/// Time limit for a process to end after it has closed its pipes.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

/// Function that starts a process.
type Start = dyn Fn() -> io::Result<Command> + Send + Sync;

/// Pool of compiling processes, at most one per processor.
pub(crate) struct CompileWorkers {
    start: Box<Start>,
    most: usize,
    places: Mutex<Places>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Places {
    idle: Vec<Worker>,
    /// Number of existing processes, including busy ones.
    taken: usize,
}

impl std::fmt::Debug for CompileWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileWorkers").field("most", &self.most).finish_non_exhaustive()
    }
}

impl CompileWorkers {
    /// Creates a pool of processes that `start` describes; starts one at once, to check that it
    /// works.
    ///
    /// # Errors
    /// The reason why a process cannot start.
    pub(crate) fn new(
        start: impl Fn() -> io::Result<Command> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TrialFailure> {
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let workers = Self {
            start: Box::new(start),
            most: processors.clamp(2, 8),
            places: Mutex::default(),
            changed: Condvar::new(),
        };
        let first = Worker::start(&workers.start)?;
        {
            let mut places = workers.places();
            places.taken = 1;
            places.idle.push(first);
        }
        Ok(Arc::new(workers))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a process for exclusive use: an idle one, or else a new one.
    fn take(&self, until: Option<Instant>) -> Result<Taken<'_>, TrialFailure> {
        let mut places = self.places();
        loop {
            if let Some(worker) = places.idle.pop() {
                return Ok(Taken { worker: Some(worker), of: self });
            }
            if places.taken < self.most {
                places.taken += 1;
                drop(places);
                let mut taken = Taken { worker: None, of: self };
                taken.worker = Some(Worker::start(&self.start)?);
                return Ok(taken);
            }
            let left = left(until);
            if left.is_zero() {
                return Err(TrialFailure::Overdue);
            }
            let waited = self.changed.wait_timeout(places, left.min(Duration::from_secs(3600)));
            places = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn left(until: Option<Instant>) -> Duration {
    until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
}

/// A process in exclusive use, returned on drop.
struct Taken<'a> {
    worker: Option<Worker>,
    of: &'a CompileWorkers,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let worker = self.worker.take();
        let mut places = self.of.places();
        match worker {
            Some(worker) => places.idle.push(worker),
            None => places.taken -= 1,
        }
        self.of.changed.notify_one();
    }
}

impl TrialCompiler for CompileWorkers {
    fn compile(&self, program: &[u8], options: &[u8], limit: Duration) -> Result<(), TrialFailure> {
        let until = Instant::now().checked_add(limit);
        let mut taken = self.take(until)?;
        let Some(worker) = taken.worker.as_mut() else { return Err(TrialFailure::Overdue) };
        let answer = match worker.ask(program, options, left(until)) {
            Ok(answer) => answer,
            Err(failure) => {
                // The drop kills the process; the next program starts another.
                drop(taken.worker.take());
                return Err(failure);
            }
        };
        answer.map_err(|(code, message)| TrialFailure::Refused { code, message })
    }
}

/// A running process, which is killed on drop.
#[derive(Debug)]
struct Worker {
    child: Child,
    requests: Sender<(Vec<u8>, Vec<u8>)>,
    answers: Receiver<io::Result<Answer>>,
}

impl Worker {
    fn start(start: &Start) -> Result<Self, TrialFailure> {
        let failed = |error: io::Error| TrialFailure::NotStarted { reason: error.to_string() };
        let mut command = start().map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C in the terminal stops the server, which may still need the process.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let (requests, from_server) = mpsc::channel();
        let (to_server, answers) = mpsc::channel();
        let (started, child) = mpsc::sync_channel(1);
        // Pipes block: a thread reads and writes them, and ends with the process. It also starts
        // the process, which ends with its starting thread.
        thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return;
                }
            };
            let pipes = child.stdin.take().zip(child.stdout.take());
            // The receiver waits for it.
            let _ = started.send(Ok(child));
            if let Some((stdin, stdout)) = pipes {
                talk(stdin, stdout, &from_server, &to_server);
            }
        });
        let child =
            child.recv().map_err(|error| failed(io::Error::other(error)))?.map_err(failed)?;
        let mut worker = Self { child, requests, answers };
        match worker.answer(STARTING_LIMIT) {
            Ok(_) => Ok(worker),
            Err(failure) => Err(TrialFailure::NotStarted { reason: failure.to_string() }),
        }
    }

    fn ask(
        &mut self,
        program: &[u8],
        options: &[u8],
        limit: Duration,
    ) -> Result<Answer, TrialFailure> {
        // A thread that has ended left its error among the answers.
        let _ = self.requests.send((program.to_vec(), options.to_vec()));
        self.answer(limit)
    }

    fn answer(&mut self, limit: Duration) -> Result<Answer, TrialFailure> {
        match self.answers.recv_timeout(limit) {
            Ok(Ok(answer)) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => Err(TrialFailure::Overdue),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                Err(TrialFailure::Ended { how: self.how_it_ended() })
            }
        }
    }

    fn how_it_ended(&mut self) -> String {
        let until = Instant::now() + ENDING_LIMIT;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(Some(status)) => return describe(status),
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(error) => return error.to_string(),
            }
        }
        "it closed its pipes".to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the hello, then writes each program and reads its result.
fn talk(
    mut stdin: ChildStdin,
    stdout: ChildStdout,
    requests: &Receiver<(Vec<u8>, Vec<u8>)>,
    answers: &Sender<io::Result<Answer>>,
) {
    let mut stdout = BufReader::new(stdout);
    let hello = frames::read_answer(&mut stdout);
    let mut goes_on = hello.is_ok();
    goes_on &= answers.send(hello).is_ok();
    while goes_on {
        let Ok((program, options)) = requests.recv() else { return };
        let answer = frames::write_request(&mut stdin, &program, &options)
            .and_then(|()| frames::read_answer(&mut stdout));
        goes_on = answer.is_ok();
        goes_on &= answers.send(answer).is_ok();
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use serdes::codec::StatusCode;

    use super::*;

    /// Answer of a process that has a client, and of one that has compiled a program.
    const DONE: &str = r#"echo '[0,""]'"#;
    /// A request of the tests: twice eight bytes for lengths, `program` and `x`.
    const READ: &str = "head -c 24 >/dev/null";

    fn workers(script: &str) -> Result<Arc<CompileWorkers>, TrialFailure> {
        let script = script.to_owned();
        CompileWorkers::new(move || {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script]);
            Ok(command)
        })
    }

    fn compile(workers: &CompileWorkers, seconds: u64) -> Result<(), TrialFailure> {
        workers.compile(b"program", b"x", Duration::from_secs(seconds))
    }

    #[test]
    fn workers_that_end_are_replaced() {
        let workers = workers(&format!("{DONE}; {READ}; {DONE}; {READ}; kill -SEGV $$")).unwrap();
        for _ in 0..3 {
            assert_eq!(compile(&workers, 20), Ok(()));
            let Err(TrialFailure::Ended { how }) = compile(&workers, 20) else { panic!() };
            assert!(how.contains("SIGSEGV"), "{how}");
        }
        assert_eq!(workers.places().taken, 0);
    }

    #[test]
    fn workers_that_take_too_long_are_ended() {
        let workers = workers(&format!("{DONE}; {READ}; exec sleep 1000")).unwrap();
        let begun = Instant::now();
        assert_eq!(compile(&workers, 1), Err(TrialFailure::Overdue));
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(workers.places().taken, 0);
    }

    #[test]
    fn workers_hand_on_the_words_of_the_compiler() {
        let answer = r#"echo '[3,"no"]'"#;
        let workers = workers(&format!("{DONE}; {READ}; {answer}; {READ}; {DONE}; cat")).unwrap();
        let code = StatusCode::InvalidArgument;
        let refused = TrialFailure::Refused { code, message: "no".to_owned() };
        assert_eq!(compile(&workers, 20), Err(refused));
        // The same process continues.
        assert_eq!(compile(&workers, 20), Ok(()));
        assert_eq!(workers.places().taken, 1);
    }

    #[test]
    fn workers_that_cannot_start_are_told_at_once() {
        let failure = workers("exit 3").unwrap_err();
        assert!(failure.to_string().contains("exit status: 3"), "{failure}");
    }

    #[test]
    fn workers_are_bounded_in_number() {
        let script = format!("{DONE}; while :; do {READ}; sleep 0.2; {DONE}; done");
        let workers = workers(&script).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 * workers.most {
                scope.spawn(|| compile(&workers, 60).unwrap());
            }
            for _ in 0..20 {
                assert!(workers.places().taken <= workers.most);
                thread::sleep(Duration::from_millis(10));
            }
        });
    }
}
