//! The command `serdes`: it parses arguments, calls the library, and prints.
//!
//! What a thing means is decided in the library; this crate must never decide it.

mod arguments;
mod commands;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::{arguments::Cli, terminal::Terminal};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut terminal = Terminal::new(&cli.global);
    let status = match commands::run(&cli.command, &mut terminal) {
        Ok(status) => status,
        Err(failure) => terminal.fail(&failure),
    };
    ExitCode::from(status as u8)
}
