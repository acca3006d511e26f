//! `serdes plugin inspect`: reads the file of a library without loading it.

use std::path::Path;

use serde_json::{Value, json};
use serdes_stream_executor::{TensorFlowFit, TensorFlowRelease, elf};

use crate::{
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, count, json_of_path, shown, shown_path},
};

/// Inspects a library, and checks it as a plug-in of a TensorFlow release if one is named.
pub(crate) fn run(
    library: &Path,
    tensorflow: Option<&str>,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let release = tensorflow
        .map(TensorFlowRelease::named)
        .transpose()
        .map_err(|error| Failure::new(format_args!("--tensorflow: {error}")))?;
    let inspection = serdes_pjrt::inspect(library).map_err(Failure::of)?;
    let found = &inspection.elf;
    let version = inspection.version;
    let fit = release.map(|release| (release, release.fit(found)));
    if terminal.json() {
        let mut object = json!({
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
        });
        if let (Some((release, fit)), Some(fields)) = (&fit, object.as_object_mut()) {
            fields.insert("tensorflow".to_owned(), fit_object(*release, fit));
        }
        terminal.object(&object)?;
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
    let Some((release, fit)) = fit else { return Ok(ExitStatus::Success) };
    show_fit(release, &fit, terminal)?;
    Ok(if fit.not_exported.is_empty() { ExitStatus::Success } else { ExitStatus::Negative })
}

fn fit_object(release: TensorFlowRelease, fit: &TensorFlowFit) -> Value {
    json!({
        "release": release.name(),
        "layout": fit.layout,
        "not_exported": fit.not_exported,
        "undecided": fit.undecided,
    })
}

/// Prints how a TensorFlow release would treat the library.
fn show_fit(
    release: TensorFlowRelease,
    fit: &TensorFlowFit,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let name = release.name();
    terminal.line(match fit.layout {
        Some(layout) => {
            format!("  {NAME}TensorFlow {name}{NAME:#} would register it under the layout {layout}")
        }
        None => format!("  {NAME}TensorFlow {name}{NAME:#} would not register it as a device"),
    })?;
    for symbol in &fit.not_exported {
        let known = match TensorFlowRelease::exporters_of(symbol) {
            Some((first, last)) => format!("; {first} to {last} do"),
            None => "; no known release does".to_owned(),
        };
        let symbol = shown(symbol);
        terminal.line(format_args!(
            "  {BAD}missing{BAD:#}: it needs {symbol}, which TensorFlow {name} does not export{known}"
        ))?;
    }
    if !fit.undecided.is_empty() {
        let needed = count(fit.undecided.len() as u64, "symbol");
        terminal.line(format_args!(
            "  {WARN}warning{WARN:#}: it needs {needed} of TensorFlow's C++, which no release promises: it goes with the release that \
             it was built for (--json lists them)"
        ))?;
    }
    Ok(())
}

/// Maximum number of names of a list in the text output; `--json` has them all.
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
