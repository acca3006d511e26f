//! `serdes inspect` of a SavedModel: its signatures, assets and fingerprint, as text.

use std::collections::BTreeMap;

use serdes_check::{
    FunctionInterface, Inspection, MetaGraphSummary, ModelSummary, SignatureSummary,
    SignatureTensor,
};

use crate::{
    failure::Failure,
    terminal::{FAINT, NAME, Terminal, count, shown},
};

/// Maximum number of assets that are listed by name.
const LISTED: usize = 10;

/// Prints a line for each signature, and the files beside the model.
pub(super) fn show(model: &ModelSummary, terminal: &mut Terminal) -> Result<(), Failure> {
    let has_many = model.meta_graphs.len() > 1;
    for meta_graph in &model.meta_graphs {
        for (key, signature) in &meta_graph.signatures {
            let of = if has_many {
                format!(" of [{}]", meta_graph.tags.join(","))
            } else {
                String::new()
            };
            let line =
                format!("{key}({}) -> {}{of}", short(&signature.inputs), short(&signature.outputs));
            terminal.fact("signature", shown(&line))?;
        }
    }
    if !model.assets.is_empty() {
        let more = if model.assets.len() > LISTED { ", …" } else { "" };
        let names = model.assets.iter().take(LISTED).map(String::as_str);
        let names = names.collect::<Vec<_>>().join(", ");
        terminal.fact("assets", format_args!("{}: {}{more}", model.assets.len(), shown(&names)))?;
    }
    if let Some(found) = &model.fingerprint {
        terminal.fact("fingerprint", shown(&found.saved_model_checksum))?;
    }
    Ok(())
}

/// Prints the contents of `saved_model_cli show --all`.
pub(super) fn show_signatures(
    inspection: &Inspection,
    model: &ModelSummary,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    terminal.line(format_args!(
        "{NAME}{}{NAME:#} {FAINT}{}{FAINT:#}",
        shown(&inspection.path),
        inspection.kind
    ))?;
    let mut meta_graphs: Vec<&MetaGraphSummary> = model.meta_graphs.iter().collect();
    meta_graphs.sort_by(|a, b| a.tags.cmp(&b.tags));
    for meta_graph in meta_graphs {
        let tags = meta_graph.tags.join(", ");
        let by = match &meta_graph.tensorflow_version {
            Some(version) => format!("  written by TensorFlow {version}"),
            None => String::new(),
        };
        terminal.line(format_args!("  meta graph [{}]{}", shown(&tags), shown(&by)))?;
        for (key, signature) in &meta_graph.signatures {
            show_signature(key, signature, terminal)?;
        }
        if meta_graph.signatures.is_empty() {
            terminal.line("    no signatures")?;
        }
        for function in &meta_graph.functions {
            show_function(function, terminal)?;
        }
    }
    for asset in &model.assets {
        terminal.fact("asset", shown(asset))?;
    }
    if let Some(found) = &model.fingerprint {
        let numbers = [
            ("saved_model_checksum", &found.saved_model_checksum),
            ("graph_def_program_hash", &found.graph_def_program_hash),
            ("signature_def_hash", &found.signature_def_hash),
            ("saved_object_graph_hash", &found.saved_object_graph_hash),
            ("checkpoint_hash", &found.checkpoint_hash),
            ("uuid", &found.uuid),
            ("version", &found.version),
        ];
        terminal.line("  fingerprint")?;
        for (name, value) in numbers {
            terminal.line(format_args!("    {name}: {}", shown(value)))?;
        }
    }
    let operations: Vec<&str> = inspection.operations.keys().map(String::as_str).collect();
    let number = count(operations.len() as u64, "type");
    terminal.fact("operations", format_args!("{number}: {}", shown(&operations.join(" "))))
}

fn show_signature(
    key: &str,
    signature: &SignatureSummary,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    terminal.line(format_args!("    signature {NAME}{}{NAME:#}", shown(key)))?;
    for (label, tensors) in [("input", &signature.inputs), ("output", &signature.outputs)] {
        for (name, tensor) in tensors {
            terminal.line(format_args!("      {label} {NAME}{}{NAME:#}", shown(name)))?;
            terminal.line(format_args!("        dtype: {}", shown(&tensor.tensorflow_dtype)))?;
            terminal.line(format_args!("        shape: {}", tuple(tensor)))?;
            terminal.line(format!("        name: {}", text(&tensor.name)).trim_end())?;
        }
    }
    terminal.line(format!("      method: {}", text(&signature.method_name)).trim_end())
}

/// Formats a text; empty for an empty one.
fn text(text: &str) -> String {
    if text.is_empty() { String::new() } else { shown(text).to_string() }
}

fn show_function(function: &FunctionInterface, terminal: &mut Terminal) -> Result<(), Failure> {
    terminal.line(format_args!("    function {NAME}{}{NAME:#}", shown(&function.name)))?;
    for (number, option) in function.options.iter().enumerate() {
        terminal.line(format_args!("      option {}", number + 1))?;
        for argument in &option.arguments {
            terminal.line(format_args!("        {}", shown(argument)))?;
        }
        for (name, argument) in &option.named_arguments {
            terminal.line(format_args!("        {} = {}", shown(name), shown(argument)))?;
        }
    }
    Ok(())
}

/// Formats a shape like TensorFlow's command.
fn tuple(tensor: &SignatureTensor) -> String {
    let Some(shape) = &tensor.shape else { return "unknown_rank".to_owned() };
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("({})", sizes.join(", "))
}

/// Formats tensors in a line: `x: F32[?,2]`.
fn short(tensors: &BTreeMap<String, SignatureTensor>) -> String {
    let one = |(name, tensor): (&String, &SignatureTensor)| {
        let size = |size: &i64| if *size == -1 { "?".to_owned() } else { size.to_string() };
        let shape = tensor.shape.as_ref().map_or_else(
            || "[…]".to_owned(),
            |shape| format!("[{}]", shape.iter().map(size).collect::<Vec<_>>().join(",")),
        );
        format!("{name}: {}{shape}", tensor.dtype)
    };
    tensors.iter().map(one).collect::<Vec<_>>().join(", ")
}
