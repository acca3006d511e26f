//! `serdes inspect` of files written by JAX, as text.

use serdes_check::{ExportSummary, JaxSummary, ValueSummary};

use crate::{
    failure::Failure,
    terminal::{Terminal, bytes, shown},
};

/// Maximum number of values and functions that are shown.
const LISTED: usize = 100;

/// Prints the contents of a `jax.export` file, and its module.
pub(super) fn show(found: &JaxSummary, terminal: &mut Terminal) -> Result<(), Failure> {
    if let Some(export) = &found.export {
        show_export(export, terminal)?;
    }
    let version = found.stablehlo_version.as_deref().unwrap_or("of no known version");
    terminal.fact(
        "module",
        format_args!(
            "StableHLO {version} ({}), {} of constants",
            bytes(found.module_bytes as u64),
            bytes(found.constant_bytes)
        ),
    )?;
    terminal.fact("dialects", shown(&found.dialects.join(" ")))?;
    if found.export.is_none() {
        for function in found.module_functions.iter().take(LISTED) {
            let (inputs, outputs) = (function.inputs.join(", "), function.outputs.join(", "));
            terminal
                .fact("function", shown(&format!("{}({inputs}) -> {outputs}", function.name)))?;
        }
    }
    for (target, count) in found.custom_calls.iter().take(LISTED) {
        terminal.fact("custom call", shown(&format!("{target} ({count})")))?;
    }
    if let Some(damage) = &found.damage {
        terminal.fact("damage", shown(damage))?;
    }
    match (found.read_by.first(), found.read_by.last()) {
        (Some(first), Some(last)) if first != last => terminal
            .fact("read by", format_args!("{} jaxlibs, {first} to {last}", found.read_by.len())),
        (Some(only), _) => terminal.fact("read by", format_args!("jaxlib {only}")),
        _ => terminal.fact("read by", "no known jaxlib"),
    }
}

fn show_export(export: &ExportSummary, terminal: &mut Terminal) -> Result<(), Failure> {
    let made_by = match (&export.jax_version, &export.made_by) {
        (Some(version), _) => format!("jax {version}"),
        (None, Some((oldest, newest))) if oldest == newest => format!("jax {oldest}"),
        (None, Some((oldest, newest))) => format!("jax {oldest} to {newest}"),
        (None, None) => "an unknown jax".to_owned(),
    };
    terminal.fact("function", shown(&format!("{} by {made_by}", export.function)))?;
    terminal.fact(
        "versions",
        format_args!(
            "serialization {}, calling convention {}",
            export.serialization_version, export.calling_convention_version
        ),
    )?;
    if let Some(day) = &export.promised_until {
        terminal.fact("promised until", day)?;
    }
    terminal.fact("platforms", shown(&export.platforms.join(" ")))?;
    terminal.fact("devices", export.devices)?;
    for (label, values) in [("argument", &export.inputs), ("result", &export.outputs)] {
        for value in values.iter().take(LISTED) {
            terminal.fact(label, shown(&text(value)))?;
        }
        if let Some(more @ 1..) = values.len().checked_sub(LISTED) {
            terminal.fact(label, format_args!("{more} more"))?;
        }
    }
    let lists = [
        ("ordered effects", &export.ordered_effects),
        ("unordered effects", &export.unordered_effects),
        ("disabled checks", &export.disabled_checks),
        ("custom nodes", &export.custom_nodes),
    ];
    for (label, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        terminal.fact(label, shown(&list.join(" ")))?;
    }
    terminal.fact("derivatives", export.derivatives)
}

/// Formats a value: `float32[4,b] on host, sharded …`.
fn text(value: &ValueSummary) -> String {
    let mut text = format!("{}[{}]", value.dtype, value.shape.join(","));
    if let Some(space) = &value.memory_space {
        text.push_str(" on ");
        text.push_str(space);
    }
    if let Some(sharding) = &value.sharding {
        text.push_str(", ");
        text.push_str(sharding);
    }
    text
}
