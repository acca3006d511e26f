//! `serdes man`: manual pages, generated from the help.

use std::{fs, path::Path};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::{
    arguments::Cli,
    failure::Failure,
    status::ExitStatus,
    terminal::{Terminal, count, shown_path},
};

/// Prints the page of the command itself, or writes a page for each command into a directory.
pub(crate) fn run(
    directory: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let mut command = Cli::command();
    // Propagates global options and the version to subcommands.
    command.build();
    let Some(directory) = directory else {
        terminal.raw(&page(command)?)?;
        return Ok(ExitStatus::Success);
    };
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::new(format_args!("cannot write {}: {error}", shown_path(path)))
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let mut pages = Vec::new();
    collect(&command, "", &mut pages);
    for (name, command) in &pages {
        let path = directory.join(format!("{name}.1"));
        let page = page((*command).clone().display_name(name.clone()))?;
        fs::write(&path, page).map_err(|error| failed(&path, &error))?;
    }
    let pages = count(pages.len() as u64, "page");
    terminal.note(format_args!("{pages} in {}", shown_path(directory)));
    Ok(ExitStatus::Success)
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    Man::new(command).render(&mut bytes)?;
    Ok(bytes)
}

/// Collects the visible commands, by the names of their pages: `serdes-plugin-verify`.
fn collect<'c>(command: &'c Command, before: &str, pages: &mut Vec<(String, &'c Command)>) {
    let name = format!("{before}{}", command.get_name());
    let shown = command.get_subcommands();
    for inner in shown.filter(|one| !one.is_hide_set() && one.get_name() != "help") {
        collect(inner, &format!("{name}-"), pages);
    }
    pages.push((name, command));
}
