//! `serdes plugin inspect`: what the file of a library says, which is read and not loaded.

use std::path::Path;

use serde_json::json;
use serdes::{pjrt, stream_executor::elf};

use crate::{
    failure::Failure,
    status::Status,
    terminal::{FAINT, GOOD, NAME, Terminal, WARN, json_of_path, shown, shown_path},
};

/// Inspects a library.
pub(crate) fn run(library: &Path, terminal: &mut Terminal) -> Result<Status, Failure> {
    let inspection = pjrt::inspect(library).map_err(Failure::of)?;
    let found = &inspection.elf;
    let version = inspection.version;
    if terminal.json() {
        terminal.object(&json!({
            "path": json_of_path(library),
            "api": found.api().map(elf::Api::as_str),
            "architecture": found.architecture,
            "pjrt_version": version.map(|version| version.minor.to_string()),
            "struct_size": version.map(|version| version.struct_size),
            "oldest_framework": inspection.oldest_framework().map(|minor| minor.to_string()),
            "exports": found.exports,
            "undefined": found.undefined,
            "served": found.served,
            "unserved": found.unserved,
            "needed": found.needed,
        }))?;
    }
    terminal.line(format_args!(
        "{NAME}{}{NAME:#}: {}{}",
        shown_path(library),
        found.architecture,
        if found.shared { ", a shared library" } else { ", no shared library" }
    ))?;
    terminal.line(match found.api() {
        Some(elf::Api::StreamExecutor) => {
            format!("  {GOOD}exports SE_InitPlugin{GOOD:#}: a StreamExecutor plug-in")
        }
        Some(elf::Api::Pjrt) => format!("  {GOOD}exports GetPjrtApi{GOOD:#}: a PJRT plug-in"),
        None => format!(
            "  {WARN}exports neither SE_InitPlugin nor GetPjrtApi{WARN:#}: no device plug-in"
        ),
    })?;
    if inspection.is_plugin() {
        terminal.line(version.map_or_else(
            || format!("  {FAINT}its version of PJRT is not to be seen in the file{FAINT:#}"),
            |version| {
                let (minor, size) = (version.minor, version.struct_size);
                format!("  PJRT {minor}, a table of {size} bytes, as far as the file tells")
            },
        ))?;
    }
    if let Some(oldest) = inspection.oldest_framework() {
        terminal.line(format_args!("  takes the arguments of frameworks from PJRT {oldest} on"))?;
    }
    let shown: Vec<&String> = found.exports.iter().filter(|name| !name.starts_with("_Z")).collect();
    list("exports", &shown, terminal)?;
    list("needed", &found.needed.iter().collect::<Vec<_>>(), terminal)?;
    list("served by this host", &found.served.iter().collect::<Vec<_>>(), terminal)?;
    list("not served by this host", &found.unserved.iter().collect::<Vec<_>>(), terminal)?;
    terminal.line(format_args!("  {} undefined symbols in all", found.undefined.len()))?;
    Ok(Status::Yes)
}

/// At most this many names of a list are printed for people; `--json` has them all.
const SHOWN: usize = 20;

fn list(label: &str, names: &[&String], terminal: &mut Terminal) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    terminal.line(format_args!("  {label}:"))?;
    for name in names.iter().take(SHOWN) {
        terminal.line(format_args!("    {}", shown(name)))?;
    }
    if names.len() > SHOWN {
        terminal.line(format_args!("    and {} more", names.len() - SHOWN))?;
    }
    Ok(())
}
