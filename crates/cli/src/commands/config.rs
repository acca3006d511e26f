//! `serdes config`: the effective configuration, and the source of each value.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    arguments::ConfigArguments,
    configuration::Effective,
    failure::Failure,
    status::ExitStatus,
    terminal::{FAINT, NAME, Terminal, shown, shown_path},
};

/// The schema of `serdes.toml`.
const SCHEMA: &str = include_str!("../../serdes.schema.json");

/// Prints every value with its source.
pub(crate) fn run(
    arguments: &ConfigArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    if arguments.schema {
        terminal.raw(SCHEMA.as_bytes())?;
        return Ok(ExitStatus::Success);
    }
    let effective = Effective::of(&arguments.check)?;
    let file = effective.file.as_deref().map(shown_path);
    if terminal.json() {
        let settings = effective.settings.iter().map(|setting| {
            let from = effective.place(&setting.origin);
            (setting.key.clone(), json!({ "value": setting.value, "from": from }))
        });
        let check: BTreeMap<String, _> = settings.collect();
        terminal.object(&json!({ "file": file, "check": check }))?;
        return Ok(ExitStatus::Success);
    }
    match file {
        Some(file) => terminal.line(format_args!("{NAME}{file}{NAME:#}"))?,
        None => terminal.line("no serdes.toml is read")?,
    }
    for setting in &effective.settings {
        let from = effective.place(&setting.origin);
        let value = setting.value.to_string();
        terminal.line(format_args!(
            "  {:<28} {:<28} {FAINT}{from}{FAINT:#}",
            shown(&setting.key).to_string(),
            shown(&value).to_string()
        ))?;
    }
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serdes_check::Rule;

    use super::*;
    use crate::configuration::accepts;

    fn keys_of(value: &serde_json::Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn the_schema_has_the_keys_and_forms_that_are_read() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let check = &schema["properties"]["check"]["properties"];
        for (key, described) in check.as_object().unwrap() {
            if key == "levels" {
                continue;
            }
            let alternatives = described["oneOf"].as_array().cloned();
            let forms = alternatives.unwrap_or_else(|| vec![described.clone()]);
            let kinds: BTreeSet<&str> =
                forms.iter().map(|form| form["type"].as_str().unwrap()).collect();
            for (kind, sample) in [("string", "'2.16'"), ("array", "['a']"), ("boolean", "true")] {
                let text = format!("[check]\n{key} = {sample}\n");
                assert_eq!(accepts(&text), kinds.contains(kind), "{text}");
            }
        }
        // Keys that are read, but missing in the schema.
        let known = keys_of(check);
        for key in crate::configuration::keys().chain(["levels"]) {
            assert!(known.contains(key), "{key}");
        }
    }

    #[test]
    fn the_schema_has_every_rule_that_warns_and_every_level() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let levels = &schema["properties"]["check"]["properties"]["levels"];
        let rules = Rule::ALL.iter().filter(|rule| rule.is_warning()).map(|rule| rule.id());
        let rules: BTreeSet<&str> = rules.collect();
        assert_eq!(levels["propertyNames"]["enum"], serde_json::json!(rules));
        for word in levels["additionalProperties"]["enum"].as_array().unwrap() {
            assert!(accepts(&format!("[check.levels]\nempty = {word}\n")), "{word}");
        }
    }
}
