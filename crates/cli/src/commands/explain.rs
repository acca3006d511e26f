//! `serdes explain`: explains the rules of verdicts.

use serdes_check::{Rule, UnknownRule};

use crate::{
    arguments::ExplainArguments,
    commands::{environment_rules, nearest::nearest, plugin_behaviours, remedies},
    failure::Failure,
    status::ExitStatus,
    terminal::{NAME, Terminal},
};

/// Explains a rule, or lists the rules.
pub(crate) fn run(
    arguments: &ExplainArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    if let Some(name) = &arguments.rule
        && let Some(behaviour) =
            plugin_behaviours::demands().find(|(behaviour, _)| behaviour == name)
    {
        plugin_behaviours::explain(behaviour, terminal)?;
        return Ok(ExitStatus::Success);
    }
    if let Some(found) = arguments.rule.as_deref().and_then(environment_rules::named) {
        found.explain(terminal)?;
        return Ok(ExitStatus::Success);
    }
    let rules = match &arguments.rule {
        Some(id) => vec![id.parse::<Rule>().map_err(unknown)?],
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
            terminal.line(format_args!(
                "{NAME}{}{NAME:#} ({})\n",
                rule.id(),
                remedies::verdict(rule)
            ))?;
            terminal.line(meaning)?;
            terminal.line(format_args!("\n{NAME}Example{NAME:#}  {example}"))?;
            terminal.line(format_args!("{NAME}Remedy{NAME:#}   {remedy}"))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Returns the error for an unknown name, with the behaviour that was probably meant if no rule
/// was.
fn unknown(error: UnknownRule) -> Failure {
    let of_environments: Vec<&str> = environment_rules::all().map(|rule| rule.id()).collect();
    let named = plugin_behaviours::demands().map(|(behaviour, _)| behaviour).chain(of_environments);
    match nearest(&error.found, named).filter(|_| error.meant.is_none()) {
        Some(behaviour) => Failure::new(format_args!(
            "there is no rule and no behaviour {:?}; did you mean {behaviour}? `serdes plugin verify --list` lists the behaviours, \
             `serdes explain` the rules",
            error.found
        )),
        None => Failure::of(error)
            .with_hint("`serdes plugin verify --list` lists the behaviours of plug-ins"),
    }
}
