//! Dispatch of commands to the files of this folder.

use super::{
    abi, check, completions, config, convert, diff, doctor, explain, inspect, man, matrix, merge,
    negotiate, ops, plugin, restore, save, serve, versions,
};
use crate::{arguments::Command, failure::Failure, status::ExitStatus, terminal::Terminal};

/// Runs a command; a failure is printed by the caller.
pub(crate) fn run(command: &Command, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    match command {
        Command::Versions(arguments) => versions::run(arguments, terminal),
        Command::Check(arguments) => check::run_configured(arguments, terminal),
        Command::Config(arguments) => config::run(arguments, terminal),
        Command::Doctor(arguments) => doctor::run(arguments, terminal),
        Command::Explain(arguments) => explain::run(arguments, terminal),
        Command::Inspect(arguments) => inspect::run(arguments, terminal),
        Command::Matrix(arguments) => matrix::run(arguments, terminal),
        Command::Ops(arguments) => ops::run(arguments, terminal),
        Command::Save(arguments) => save::run(arguments, terminal),
        Command::Restore(arguments) => restore::run(arguments, terminal),
        Command::Merge(arguments) => merge::run(arguments, terminal),
        Command::Diff(arguments) => diff::run(arguments, terminal),
        Command::Convert(arguments) => convert::run(arguments, terminal),
        Command::Plugin(command) => plugin::run(command, terminal),
        Command::Abi(command) => abi::run(command, terminal),
        Command::Negotiate(arguments) => negotiate::run(arguments, terminal),
        Command::Serve(arguments) => serve::run(arguments, terminal),
        Command::Completions { shell } => completions::run(*shell, terminal),
        Command::Man { directory } => man::run(directory.as_deref(), terminal),
    }
}
