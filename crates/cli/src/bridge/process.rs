//! The Python process, with its time limits and restarts.

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

/// The script that the interpreter runs.
const SCRIPT: &str = include_str!("bridge.py");

/// Time limits of the process.
#[derive(Clone, Copy, Debug)]
struct TimeLimits {
    start: Duration,
    program: Duration,
    /// Pause after a failed start, before the next attempt.
    pause: Duration,
}

impl TimeLimits {
    /// The first import of jaxlib takes seconds; the largest programs take less than one.
    const USUAL: Self = Self {
        start: Duration::from_secs(60),
        program: Duration::from_secs(30),
        pause: Duration::from_secs(5),
    };
}

/// Limit on the length of an answer: `GROWTH` times the program plus `ROOM` bytes.
const ROOM: u64 = 1 << 20;
const GROWTH: u64 = 16;

/// A Python with jaxlib that converts programs.
///
/// There is one process, which is started when first needed. Callers wait while it is busy.
#[derive(Debug)]
pub(crate) struct PythonBridge {
    interpreter: OsString,
    limits: TimeLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Off,
    Running(Worker),
    /// The start failed: the message, and the time.
    Failed(String, Instant),
}

impl PythonBridge {
    /// Creates a bridge for this interpreter, without starting it.
    pub(crate) fn new(interpreter: impl Into<OsString>) -> Self {
        let limits = TimeLimits::USUAL;
        Self { interpreter: interpreter.into(), limits, state: Mutex::default() }
    }

    /// Starts the process, so that an invalid name is reported at once; returns the newest
    /// StableHLO that it reads.
    ///
    /// # Errors
    /// The error message of the system or of Python.
    pub(crate) fn start(&self) -> Result<StableHloVersion, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.worker(&mut state)?.newest)
    }

    fn worker<'s>(&self, state: &'s mut State) -> Result<&'s mut Worker, String> {
        if let State::Failed(words, at) = state
            && at.elapsed() < self.limits.pause
        {
            return Err(words.clone());
        }
        if !matches!(state, State::Running(_)) {
            *state = match Worker::start(&self.interpreter, self.limits) {
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
                // The drop kills the process; the next program starts another.
                *state = State::Off;
                tracing::warn!("the bridge for programs was ended: {words}");
                Err(format!("the bridge was ended: {words}"))
            }
        }
    }
}

/// Message for a process that ended by itself.
const ENDED: &str = "it ended without an answer";

type Answer = io::Result<Result<Vec<u8>, String>>;

/// A running process, which is killed on drop.
#[derive(Debug)]
struct Worker {
    child: Child,
    requests: Sender<(String, Vec<u8>)>,
    answers: Receiver<Answer>,
    newest: StableHloVersion,
    limits: TimeLimits,
}

impl Worker {
    fn start(interpreter: &OsString, limits: TimeLimits) -> Result<Self, String> {
        let name = interpreter.to_string_lossy();
        let mut command = Command::new(interpreter);
        command.args(["-u", "-c", SCRIPT]).env("JAX_PLATFORMS", "cpu");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C in the terminal stops the server, which may still need the process.
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
        let mut worker = Self { child, requests, answers, newest, limits };
        let hello = worker.answer(limits.start);
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
        // A thread that has ended left its error among the answers.
        let _ = self.requests.send((target.to_string(), program.to_vec()));
        self.answer(self.limits.program)
    }

    fn answer(&mut self, limit: Duration) -> Result<Result<Vec<u8>, String>, String> {
        match self.answers.recv_timeout(limit) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => Err(ENDED.to_owned()),
                _ => Err(error.to_string()),
            },
            Err(RecvTimeoutError::Timeout) => Err(format!("it did not answer within {limit:?}")),
            Err(RecvTimeoutError::Disconnected) => Err(ENDED.to_owned()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process may have ended by itself.
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    const OLD: StableHloVersion = StableHloVersion::new(1, 13, 3);
    const NEW: StableHloVersion = StableHloVersion::new(1, 16, 3);

    /// The hello of an interpreter that reads StableHLO up to 1.22.0, as a shell command.
    const HELLO: &str = r"printf '\0\6\0\0\0\0\0\0\0001.22.0'";

    /// Returns a bridge whose interpreter is a shell script.
    fn bridge(folder: &tempfile::TempDir, script: &str) -> PythonBridge {
        let path = folder.path().join("interpreter");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let limits = TimeLimits {
            start: Duration::from_secs(20),
            program: Duration::from_secs(20),
            pause: Duration::from_secs(3600),
        };
        PythonBridge { limits, ..PythonBridge::new(path) }
    }

    #[test]
    fn answers_are_taken_and_refusals_are_words() {
        let folder = tempfile::tempdir().unwrap();
        // A request of this test: 8 + 6 bytes of the version, 8 + 3 of the program.
        let once = r"head -c 25 >/dev/null; printf '\0\3\0\0\0\0\0\0\0new'";
        let again = r"head -c 25 >/dev/null; printf '\1\2\0\0\0\0\0\0\0no'";
        let script = format!(
            "echo run >> {}/starts\n{HELLO}\n{once}\n{again}\n{again}",
            folder.path().display()
        );
        let bridge = bridge(&folder, &script);
        assert_eq!(bridge.start(), Ok(StableHloVersion::new(1, 22, 0)));
        assert_eq!(bridge.write_for(b"old", NEW, OLD), Ok(b"new".to_vec()));
        let words = bridge.write_for(b"old", NEW, OLD).unwrap_err();
        assert_eq!(words, "the bridge answers: no");
        let newer = StableHloVersion::new(1, 23, 0);
        let words = bridge.write_for(b"old", newer, OLD).unwrap_err();
        assert!(words.contains("reads StableHLO up to 1.22.0, and the program is of 1.23.0"));
        // Until here one process served all programs; it has ended, and the next program starts
        // another.
        let starts = || fs::read_to_string(folder.path().join("starts")).unwrap().lines().count();
        assert_eq!(starts(), 1);
        assert!(bridge.write_for(b"old", NEW, OLD).unwrap_err().contains("it ended without"));
        assert_eq!(bridge.write_for(b"old", NEW, OLD), Ok(b"new".to_vec()));
        assert_eq!(starts(), 2);
    }

    #[test]
    fn a_process_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo $$ > {}/pid\n{HELLO}\nexec sleep 600", folder.path().display());
        let mut bridge = bridge(&folder, &script);
        bridge.limits.program = Duration::from_millis(200);
        let words = bridge.write_for(b"old", NEW, OLD).unwrap_err();
        assert_eq!(words, "the bridge was ended: it did not answer within 200ms");
        let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
        assert!(!fs::exists(format!("/proc/{}/stat", pid.trim())).unwrap());
    }

    #[test]
    fn invalid_answer_ends_the_bridge_process() {
        let folder = tempfile::tempdir().unwrap();
        for (script, part) in [
            (r"printf '\0\377\377\377\377\377\377\377\377'; sleep 600", "expected at most"),
            (r"printf '\7\0\0\0\0\0\0\0\0'; sleep 600", "of the kind 7"),
        ] {
            let bridge = bridge(&folder, &format!("{HELLO}\n{script}"));
            let words = bridge.write_for(b"old", NEW, OLD).unwrap_err();
            assert!(words.contains(part), "{words}");
        }
    }

    #[test]
    fn an_interpreter_that_cannot_be_used_is_told_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let words = |bridge: &PythonBridge| bridge.start().unwrap_err();
        let missing = PythonBridge::new(folder.path().join("nothing"));
        assert!(words(&missing).contains("cannot start the bridge"), "{}", words(&missing));
        let ends = bridge(&folder, "exit 3");
        assert!(words(&ends).contains("does not start: it ended without an answer"));
        let refuses = bridge(&folder, r"printf '\1\2\0\0\0\0\0\0\0no'");
        assert!(words(&refuses).contains("has no jaxlib that can be used (no)"));
        // The start is not tried again at once: the message is kept.
        fs::remove_file(folder.path().join("interpreter")).unwrap();
        assert!(words(&refuses).contains("has no jaxlib that can be used (no)"));
        let silent = bridge(&folder, r"printf '\0\4\0\0\0\0\0\0\0word'; sleep 600");
        assert!(words(&silent).contains("no version of StableHLO"), "{}", words(&silent));
    }
}
