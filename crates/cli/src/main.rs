//! The command `serdes`: it parses arguments, calls the library, and prints.
//!
//! What a thing means is decided in the library; this crate must never decide it.

#![deny(
    clippy::expect_used,
    clippy::get_unwrap,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used
)]

mod arguments;
mod commands;
mod failure;
mod plugin_argument;
#[cfg(target_os = "linux")]
mod process_settings;
mod signals;
mod startup;
#[cfg(target_os = "linux")]
mod supervision;
mod terminal;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{arguments::Cli, failure::Failure, terminal::Terminal};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    #[cfg(unix)]
    signals::outlive_limits();
    #[cfg(target_os = "linux")]
    match commands::supervise(&cli) {
        Ok(None) => {}
        Ok(Some(code)) => return code,
        Err(error) => return give_up(&format!("cannot run a process for the plug-in: {error}")),
    }
    let mut terminal = match Terminal::new(&cli.global) {
        Ok(terminal) => terminal,
        Err(error) => return give_up(&format!("cannot use standard output: {error}")),
    };
    let status = match commands::run(&cli.command, &mut terminal) {
        Ok(status) => status,
        Err(failure) => terminal.fail(&failure),
    };
    terminal.end(status);
    #[cfg(target_os = "linux")]
    supervision::say(status);
    ExitCode::from(status as u8)
}

/// Says why there is not even a place for results.
fn give_up(message: &str) -> ExitCode {
    // Nobody else can be told.
    let _ = writeln!(io::stderr(), "error: {message}");
    ExitCode::from(2)
}

/// Prints what the parser says: a mistake, the help, the version. A program that asked for JSON
/// gets a mistake as an object too.
fn refuse(error: &clap::Error) -> ExitCode {
    let json =
        std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let object = serde_json::json!({ "error": message });
        // The status says already that it did not work.
        let _ = writeln!(io::stdout(), "{object}");
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if let Err(failure) = print(error)
        && !failure.is_of_closed_output()
    {
        return give_up(&failure.to_string());
    }
    ExitCode::from(code)
}

/// Prints the help or the version, which are results, or a mistake.
fn print(error: &clap::Error) -> Result<(), Failure> {
    if error.use_stderr() {
        // Nobody can be told that standard error is gone.
        let _ = error.print();
        return Ok(());
    }
    if startup::standard_output_was_closed() {
        return Err(Failure::new("cannot write to standard output: it is closed"));
    }
    error.print()?;
    io::stdout().flush()?;
    Ok(())
}
