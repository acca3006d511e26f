//! `serdes explain`: what a rule of a verdict means.

use serdes::check::Rule;

use crate::{
    arguments::ExplainArguments,
    commands::{plugin_suite, remedies},
    failure::Failure,
    status::Status,
    terminal::{NAME, Terminal},
};

/// Explains a rule, or lists the rules.
pub(crate) fn run(
    arguments: &ExplainArguments,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    if let Some(name) = &arguments.rule
        && let Some(behaviour) = plugin_suite::demands().find(|(behaviour, _)| behaviour == name)
    {
        plugin_suite::demand(behaviour, terminal)?;
        return Ok(Status::Yes);
    }
    let rules = match &arguments.rule {
        Some(id) => vec![id.parse::<Rule>().map_err(Failure::of)?],
        None => Rule::ALL.to_vec(),
    };
    for rule in rules {
        let meaning = rule.explain().meaning;
        let (example, remedy) = (remedies::example(rule), remedies::general(rule));
        if terminal.json() {
            terminal.object(&serde_json::json!({
                "rule": rule.id(),
                "verdict": rule.outcome().id(),
                "meaning": meaning,
                "example": example,
                "remedy": remedy,
            }))?;
        } else if arguments.rule.is_none() {
            terminal.line(format_args!("{NAME}{:<22}{NAME:#}{meaning}", rule.id()))?;
        } else {
            terminal.line(format_args!("{NAME}{}{NAME:#} ({})\n", rule.id(), rule.outcome()))?;
            terminal.line(meaning)?;
            terminal.line(format_args!("\n{NAME}Example{NAME:#}  {example}"))?;
            terminal.line(format_args!("{NAME}Remedy{NAME:#}   {remedy}"))?;
        }
    }
    Ok(Status::Yes)
}
