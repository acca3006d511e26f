//! `serdes completions`: what shells complete.

use clap::CommandFactory;

use crate::{arguments::Cli, failure::Failure, status::Status, terminal::Terminal};

/// Prints the completions for a shell.
pub(crate) fn run(shell: clap_complete::Shell, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "serdes", &mut script);
    terminal.raw(&script)?;
    Ok(Status::Yes)
}
