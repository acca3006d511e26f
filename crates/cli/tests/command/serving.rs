//! A `serdes serve` process for the duration of a test.
//!
//! Does not depend on what a test asks of the server.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::testkit::command;

/// Returns `serdes serve` with these arguments.
pub(crate) fn serve(arguments: &[&str]) -> Command {
    let mut command = command();
    command.arg("serve").args(arguments);
    command
}

/// A listening server, which is stopped when the test ends.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Serving {
    /// Starts a server with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::run(serve(arguments))
    }

    /// Starts the server that `command` describes.
    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line:?} {said}");
        };
        Self { address: address.to_owned(), child }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits at most `limit` for the server to end by itself; returns its exit status and its
    /// output.
    pub(crate) fn ends_within(mut self, limit: Duration) -> (ExitStatus, String) {
        let since = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(since.elapsed() < limit, "the server is still there"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status, said)
    }

    /// Asks the server to stop; returns its exit status and its output.
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        self.signal("-TERM");
        let (status, said) = self.ends_within(Duration::from_secs(60));
        (status.code(), said)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
