//! The process, and what happens when it does not answer.

use std::{
    ffi::OsString,
    io,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serdes::stablehlo::{ProgramBridge, StableHloVersion};

use super::frames;

/// What the interpreter runs.
const SCRIPT: &str = include_str!("bridge.py");

/// An import of jaxlib takes seconds where nothing of it is in memory yet.
const LONGEST_START: Duration = Duration::from_secs(60);
/// The largest programs take less than a second.
const LONGEST_PROGRAM: Duration = Duration::from_secs(30);
/// After a start that failed the next one is not tried at once.
const PAUSE: Duration = Duration::from_secs(5);

/// So much more than the program may an answer have, and so many times its bytes.
const ROOM: u64 = 1 << 20;
const GROWTH: u64 = 16;

/// A Python with jaxlib that writes programs.
///
/// There is one process, which is started when it is first needed. Whoever comes while it works
/// waits.
#[derive(Debug)]
pub(crate) struct PythonBridge {
    interpreter: OsString,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Off,
    Running(Worker),
    /// It did not start: its words, and when.
    Failed(String, Instant),
}

impl PythonBridge {
    /// With this interpreter; nothing is started yet.
    pub(crate) fn new(interpreter: impl Into<OsString>) -> Self {
        Self { interpreter: interpreter.into(), state: Mutex::default() }
    }

    /// Starts the process, so that a mistake in its name is told at once: the newest StableHLO that
    /// it reads.
    ///
    /// # Errors
    /// The words of the system, or of Python.
    pub(crate) fn start(&self) -> Result<StableHloVersion, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.worker(&mut state)?.newest)
    }

    fn worker<'s>(&self, state: &'s mut State) -> Result<&'s mut Worker, String> {
        if let State::Failed(words, at) = state
            && at.elapsed() < PAUSE
        {
            return Err(words.clone());
        }
        if !matches!(state, State::Running(_)) {
            *state = match Worker::start(&self.interpreter) {
                Ok(worker) => State::Running(worker),
                Err(words) => State::Failed(words, Instant::now()),
            };
        }
        match state {
            State::Running(worker) => Ok(worker),
            State::Failed(words, _) => Err(words.clone()),
            State::Off => Err("the bridge does not run".to_owned()),
        }
    }
}

impl ProgramBridge for PythonBridge {
    fn write_for(
        &self,
        program: &[u8],
        version: StableHloVersion,
        target: StableHloVersion,
    ) -> Result<Vec<u8>, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = self.worker(&mut state)?;
        let newest = worker.newest;
        match worker.ask(target, program) {
            Ok(Ok(written)) => Ok(written),
            Ok(Err(words)) if version > newest => Err(format!(
                "the bridge reads StableHLO up to {newest}, and the program is of {version}: give it a newer jaxlib ({words})"
            )),
            Ok(Err(words)) => Err(format!("the bridge answers: {words}")),
            Err(words) => {
                // Ended as it is dropped; the next program starts another.
                *state = State::Off;
                tracing::warn!("the bridge for programs was ended: {words}");
                Err(format!("the bridge was ended: {words}"))
            }
        }
    }
}

/// Of a process that ended by itself.
const ENDED: &str = "it ended without an answer";

type Answer = io::Result<Result<Vec<u8>, String>>;

/// A running process; it ends with this value.
#[derive(Debug)]
struct Worker {
    child: Child,
    requests: Sender<(String, Vec<u8>)>,
    answers: Receiver<Answer>,
    newest: StableHloVersion,
}

impl Worker {
    fn start(interpreter: &OsString) -> Result<Self, String> {
        let name = interpreter.to_string_lossy();
        let mut command = Command::new(interpreter);
        command.args(["-u", "-c", SCRIPT]).env("JAX_PLATFORMS", "cpu");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A signal to the terminal's group asks the server to stop, which may still need it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child =
            command.spawn().map_err(|error| format!("cannot start the bridge {name}: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, from_server) = mpsc::channel();
        let (to_server, answers) = mpsc::channel();
        // Pipes block: a thread reads and writes them, and ends with the process.
        if let Some((stdin, stdout)) = pipes {
            thread::spawn(move || talk(stdin, stdout, &from_server, &to_server));
        }
        let newest = StableHloVersion::new(0, 0, 0);
        let mut worker = Self { child, requests, answers, newest };
        let hello = worker.answer(LONGEST_START);
        let hello = hello.map_err(|words| format!("the bridge {name} does not start: {words}"))?;
        let hello = hello.map_err(|words| {
            format!("the bridge {name} has no jaxlib that can be used ({words}); expected a Python with jaxlib 0.8 or later")
        })?;
        worker.newest = String::from_utf8_lossy(&hello).parse().map_err(|error| {
            format!("the bridge {name} says no version of StableHLO at its start: {error}")
        })?;
        Ok(worker)
    }

    fn ask(
        &mut self,
        target: StableHloVersion,
        program: &[u8],
    ) -> Result<Result<Vec<u8>, String>, String> {
        // A thread that is gone has left its reason among the answers.
        let _ = self.requests.send((target.to_string(), program.to_vec()));
        self.answer(LONGEST_PROGRAM)
    }

    fn answer(&mut self, limit: Duration) -> Result<Result<Vec<u8>, String>, String> {
        match self.answers.recv_timeout(limit) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => Err(ENDED.to_owned()),
                _ => Err(error.to_string()),
            },
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it did not answer within {} seconds", limit.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(ENDED.to_owned()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the hello, then writes each program and reads its answer.
fn talk(
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    requests: &Receiver<(String, Vec<u8>)>,
    answers: &Sender<Answer>,
) {
    let hello = frames::read_answer(&mut stdout, ROOM);
    let mut goes_on = hello.is_ok();
    goes_on &= answers.send(hello).is_ok();
    while goes_on {
        let Ok((target, program)) = requests.recv() else { return };
        let most = (program.len() as u64).saturating_mul(GROWTH).saturating_add(ROOM);
        let answer = frames::write_request(&mut stdin, &target, &program)
            .and_then(|()| frames::read_answer(&mut stdout, most));
        goes_on = answer.is_ok();
        goes_on &= answers.send(answer).is_ok();
    }
}
