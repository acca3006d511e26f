//! The invocation of the command, for starting it again: if foreign code may end a process, the
//! command does the work in another process of itself.

use std::{ffi::OsString, io, process::Command, sync::OnceLock};

static REMEMBERED: OnceLock<Invocation> = OnceLock::new();

/// The program and arguments of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program and the words before the arguments; empty for this program.
    program: Vec<OsString>,
    arguments: Vec<OsString>,
}

impl Invocation {
    /// Returns this program with its arguments.
    pub fn of_this_program() -> Self {
        Self { program: Vec::new(), arguments: std::env::args_os().skip(1).collect() }
    }

    /// Creates an invocation with these arguments, without the command's own name, in a process
    /// that does more than the command: `program` and the words before the arguments start such a
    /// process again.
    pub fn new(program: Vec<OsString>, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Returns the arguments of the command.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}

/// Stores the invocation for processes that are started later; only the first call has an effect.
pub(crate) fn remember(invocation: Invocation) -> &'static Invocation {
    REMEMBERED.get_or_init(|| invocation)
}

/// Creates a command that starts this program again, without arguments.
///
/// # Errors
/// If the system does not report the program's path.
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
