//! The command `serdes`: parses arguments, calls the library, and prints results.
//!
//! This is a library, so that programs with another entry point, such as the Python package, can
//! run the same command by [`run`], and show results as the same [`objects`]. All verdicts and
//! meanings come from the libraries; this crate adds none.

#![cfg_attr(docsrs, feature(doc_cfg))]
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
mod bridge;
mod commands;
mod configuration;
mod environments;
mod failure;
mod invocation;
mod numbers;
pub mod object_reports;
pub mod objects;
mod plugin_argument;
#[cfg(target_os = "linux")]
mod process_settings;
mod requests;
mod signals;
mod startup;
mod status;
#[cfg(target_os = "linux")]
mod supervision;
mod terminal;
mod unfinished;

use std::{
    ffi::OsString,
    io::{self, Write},
};

use clap::Parser;

pub use serdes_doctor::ReadError;

use crate::{arguments::Cli, failure::Failure, terminal::Terminal};
pub use crate::{environments::EnvironmentQuestion, invocation::Invocation};

/// Runs the command to its end, and returns its exit status.
///
/// The command changes settings of the process: it handles signals, and stores the first invocation
/// for starting itself again. So a process runs one command, on its main thread.
pub fn run(invocation: Invocation) -> u8 {
    let invocation = invocation::remember(invocation);
    let words = std::iter::once(OsString::from("serdes")).chain(invocation.arguments().to_vec());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, invocation.arguments()),
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
    supervision::report_status(status);
    status as u8
}

/// Reports that there is no place for results.
fn give_up(message: &str) -> u8 {
    // Standard error is the last resort.
    let _ = writeln!(io::stderr(), "error: {message}");
    2
}

/// Prints output of the parser: an error, the help, the version. With `--json` an error is also
/// printed as an object.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let object = serde_json::json!({ "error": message });
        // The status already reports the failure.
        let _ = writeln!(io::stdout(), "{object}");
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if let Err(failure) = print(error)
        && !failure.is_of_closed_output()
    {
        return give_up(&failure.to_string());
    }
    code
}

/// Prints the help or the version as results, or an error.
fn print(error: &clap::Error) -> Result<(), Failure> {
    if error.use_stderr() {
        // If standard error is gone, there is no way to report it.
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
