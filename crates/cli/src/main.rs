//! The command `serdes`: it parses arguments, calls the library, and prints.
//!
//! What a thing means is decided in the library; this crate must never decide it.

mod arguments;
mod commands;
mod terminal;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use crate::{arguments::Cli, terminal::Terminal};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let mut terminal = match Terminal::new(&cli.global) {
        Ok(terminal) => terminal,
        Err(error) => {
            // Nobody else can be told.
            let _ = writeln!(std::io::stderr(), "error: cannot use standard output: {error}");
            return ExitCode::from(2);
        }
    };
    let status = match commands::run(&cli.command, &mut terminal) {
        Ok(status) => status,
        Err(failure) => terminal.fail(&failure),
    };
    terminal.end(status);
    ExitCode::from(status as u8)
}

/// Prints what the parser says (a mistake, the help, the version). A program that asked for JSON gets
/// a mistake as an object too.
fn refuse(error: &clap::Error) -> ExitCode {
    let json =
        std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let object = serde_json::json!({ "error": message });
        // Nobody can be told that the output is gone.
        let _ = writeln!(std::io::stdout(), "{object}");
    }
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
