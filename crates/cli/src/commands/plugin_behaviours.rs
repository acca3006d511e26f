//! The behaviours of both conformance suites: their demands, sources and remedies.

use serde_json::json;
use serdes_stream_executor::conformance::{self, Class, Guidance};

use crate::{
    failure::Failure,
    terminal::{NAME, Terminal},
};

/// Returns the behaviours of both suites, with their demands.
pub(crate) fn demands() -> impl Iterator<Item = (&'static str, &'static str)> {
    conformance::demands().chain(serdes_pjrt::conformance::demands())
}

/// Returns the guidance on a behaviour of either suite.
pub(crate) fn guidance(behaviour: &str) -> Option<Guidance> {
    conformance::guidance(behaviour).or_else(|| serdes_pjrt::conformance::guidance(behaviour))
}

/// Prints a behaviour as an entry of a list.
pub(super) fn list(behaviour: &str, demand: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let class = guidance(behaviour).map_or("required", |guidance| guidance.class.as_str());
    if terminal.json() {
        let object = json!({ "behaviour": behaviour, "class": class, "demand": demand });
        return terminal.object(&object);
    }
    terminal.line(format_args!("{NAME}{behaviour:<31}{NAME:#} {class:<9} {demand}"))
}

/// Explains a behaviour: its demand, its source, and how to fix a plug-in.
pub(crate) fn explain(
    (behaviour, demand): (&str, &str),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let Some(guidance) = guidance(behaviour) else { return list(behaviour, demand, terminal) };
    let class = guidance.class.as_str();
    if terminal.json() {
        return terminal.object(&json!({
            "behaviour": behaviour,
            "class": class,
            "demand": demand,
            "written": guidance.written,
            "remedy": guidance.remedy,
        }));
    }
    terminal.line(format_args!("{NAME}{behaviour}{NAME:#} ({class})\n"))?;
    terminal.line(demand)?;
    terminal.line(format_args!("\n{NAME}Result{NAME:#}   {}", result(guidance.class)))?;
    terminal.line(format_args!("{NAME}Written{NAME:#}  {}", guidance.written))?;
    terminal.line(format_args!("{NAME}Remedy{NAME:#}   {}", guidance.remedy))
}

/// Returns the results that `plugin verify` counts as failures for a behaviour of this class.
fn result(class: Class) -> &'static str {
    match class {
        Class::Required => {
            "`fail` counts; `unsupported`, of a plug-in that does not have or does not implement the function, is no failure"
        }
        Class::Robust => {
            "`fail` counts with --level robust alone; `unsupported`, of a plug-in that does not have or does not implement the function, is no failure"
        }
    }
}
