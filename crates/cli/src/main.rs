//! The program `serdes`, which is the command and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    serdes_cli::run(serdes_cli::Invocation::of_this_program()).into()
}
