//! One file a command; each turns its arguments into calls of the library and prints what comes back.

mod abi;
mod check;
mod diff;
mod failures;
mod inspect;
mod negotiate;
mod ops;
mod plugin;
mod plugin_process;
mod restore;
mod save;
mod selection;
mod serve;
mod serve_access;
mod versions;
mod watch;

use clap::CommandFactory;

use crate::{
    arguments::{Cli, Command},
    terminal::{Failure, Status, Terminal},
};

/// Runs a command; a failure is printed by the caller.
pub(crate) fn run(command: &Command, terminal: &mut Terminal) -> Result<Status, Failure> {
    match command {
        Command::Versions(arguments) => versions::run(arguments, terminal),
        Command::Check(arguments) => check::run(arguments, terminal),
        Command::Explain(arguments) => check::explain(arguments, terminal),
        Command::Inspect(arguments) => inspect::run(arguments, terminal),
        Command::Ops(arguments) => ops::run(arguments, terminal),
        Command::Save(arguments) => save::run(arguments, terminal),
        Command::Restore(arguments) => restore::run(arguments, terminal),
        Command::Diff(arguments) => diff::run(arguments, terminal),
        Command::Plugin(command) => plugin::run(command, terminal),
        Command::Abi(command) => abi::run(command, terminal),
        Command::Negotiate(arguments) => negotiate::run(arguments, terminal),
        Command::Serve(arguments) => serve::run(arguments, terminal),
        Command::Completions { shell } => completions(*shell, terminal),
    }
}

fn completions(shell: clap_complete::Shell, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "serdes", &mut script);
    terminal.raw(&script)?;
    Ok(Status::Yes)
}
