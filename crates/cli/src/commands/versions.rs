//! `serdes versions`: lists version lines and their entries, and changes them.

mod golden;
mod init;
mod list;
mod lock;
mod options;
mod steps;

pub(crate) use self::list::entries;
use crate::{
    arguments::{VersionsArguments, VersionsCommand},
    failure::Failure,
    status::ExitStatus,
    terminal::Terminal,
};

/// Lists the lines, changes them, or rewrites or checks the lock.
pub(crate) fn run(
    arguments: &VersionsArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    match &arguments.command {
        Some(VersionsCommand::Lock { check, directory }) => lock::run(*check, directory, terminal),
        Some(VersionsCommand::Init(arguments)) => init::run(arguments, terminal),
        Some(VersionsCommand::Golden(arguments)) => golden::run(arguments, terminal),
        Some(VersionsCommand::Add(arguments)) => steps::add(arguments, terminal),
        Some(VersionsCommand::Release(arguments)) => steps::release(arguments, terminal),
        None => list::run(arguments, terminal),
    }
}
