//! The invocation of the command, and how it is started again: where foreign code may end a
//! process, the command does the work in another process of itself.

use std::{ffi::OsString, io, process::Command, sync::OnceLock};

static REMEMBERED: OnceLock<Invocation> = OnceLock::new();

/// The invocation of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program and what comes before the arguments; nothing where it is this program.
    program: Vec<OsString>,
    arguments: Vec<OsString>,
}

impl Invocation {
    /// Returns this program, with the arguments that the system gave it.
    pub fn of_this_program() -> Self {
        Self { program: Vec::new(), arguments: std::env::args_os().skip(1).collect() }
    }

    /// Creates the command with these arguments, its own name not among them, in a process that is
    /// none of the command alone: `program` and the words that come before the arguments start such
    /// a process again.
    pub fn new(program: Vec<OsString>, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Returns the arguments of the command.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}

/// Keeps the invocation for the processes that are started later; the first one counts.
pub(crate) fn remember(invocation: Invocation) -> &'static Invocation {
    REMEMBERED.get_or_init(|| invocation)
}

/// Returns the command in another process, without arguments.
///
/// # Errors
/// If the system does not tell which program this is.
pub(crate) fn again() -> io::Result<Command> {
    match REMEMBERED.get().and_then(|invocation| invocation.program.split_first()) {
        Some((program, words)) => {
            let mut command = Command::new(program);
            command.args(words);
            Ok(command)
        }
        None => Ok(Command::new(std::env::current_exe()?)),
    }
}

/// Returns the arguments that the command was invoked with.
pub(crate) fn arguments() -> &'static [OsString] {
    REMEMBERED.get().map_or(&[], Invocation::arguments)
}
