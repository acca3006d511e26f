//! The program `serdes`, which only runs the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    serdes_cli::run(serdes_cli::Invocation::of_this_program()).into()
}
