//! Results as the JSON objects of `--json`, for other programs.

use serde_json::{Value, json};
use serdes::version::{Date, registry};
use serdes_check::{Inspection, Rule, Verdict};
use serdes_tensors::{
    Difference,
    transfers::{Fit, Memory},
};

use crate::commands::{remedies, versions::entries};

/// Converts a verdict, with the command's remedies.
///
/// # Errors
/// If a value cannot be represented in JSON, which does not occur for verdicts.
pub fn verdict(verdict: &Verdict) -> Result<Value, serde_json::Error> {
    let mut object = serde_json::to_value(verdict)?;
    if let Some(reasons) = object.get_mut("reasons").and_then(Value::as_array_mut) {
        for (reason, shown) in verdict.reasons().iter().zip(reasons) {
            if let Some(remedy) = shown.get_mut("remedy") {
                *remedy = remedies::words(&reason.remedy).into();
            }
        }
    }
    Ok(object)
}

/// Converts the contents of an artifact.
///
/// # Errors
/// If a value cannot be represented in JSON, which does not occur for inspections.
pub fn inspection(inspection: &Inspection) -> Result<Value, serde_json::Error> {
    serde_json::to_value(inspection)
}

/// Converts the difference of a tensor in two files.
pub fn difference(difference: &Difference) -> Value {
    json!({
        "name": difference.name,
        "result": difference.comparison.as_str(),
        "max_abs": difference.max_abs,
        "elements": difference.elements,
        "differing": difference.differing,
        "detail": difference.detail,
    })
}

/// Converts the comparison of a state with devices.
pub fn fit(fit: &Fit) -> Value {
    let device = |one: &Memory| {
        json!({
            "device": one.device,
            "saved_from": one.saved_from,
            "needed": one.needed,
            "offered": one.offered,
            "fits": one.fits(),
        })
    };
    let devices: Vec<_> = fit.memory.iter().map(device).collect();
    json!({
        "fits": fit.is_yes(),
        "tensors": fit.needs.tensors,
        "bytes": fit.needs.bytes,
        "host_bytes": fit.needs.host_bytes,
        "types": {
            "fits": fit.has_types(),
            "needed": fit.needs.types,
            "offered": fit.offer.types,
            "missing": fit.missing_types(),
        },
        "mesh": {
            "fits": fit.has_mesh(),
            "needed": fit.needs.devices.len(),
            "offered": fit.offer.devices,
        },
        "memory": { "fits": fit.has_memory(), "devices": devices },
        "one_device": {
            "fits": fit.one.fits(),
            "device": fit.one.device,
            "needed": fit.one.needed,
            "offered": fit.one.offered,
        },
    })
}

/// Returns every entry of this build's version lines, as of a day, or of the day of its registry.
pub fn versions(as_of: Option<Date>) -> Vec<Value> {
    entries(as_of.unwrap_or(registry().as_of))
}

/// Returns the explanation of a rule as text: its name, its meaning, an example and the remedy, in
/// paragraphs.
pub fn explanation(rule: Rule) -> String {
    let (meaning, example) = (rule.explain().meaning, remedies::example(rule));
    let (name, outcome, remedy) = (rule.id(), remedies::verdict(rule), remedies::general(rule));
    format!("{name} ({outcome})\n\n{meaning}\n\nExample  {example}\nRemedy   {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_its_remedies_in_words() {
        let found = serdes_check::bytes(b"\xff\xff".to_vec()).for_consumer(&Default::default());
        let object = verdict(&found).unwrap();
        assert_eq!(object["reasons"][0]["rule"], "corrupt");
        assert_eq!(object["reasons"][0]["remedy"], *remedies::words(&found.reasons()[0].remedy));
    }

    #[test]
    fn an_explanation_has_the_words_of_the_rule() {
        let text = explanation(Rule::MinConsumer);
        assert!(text.starts_with("min_consumer (unacceptable)\n\n"), "{text}");
        assert!(text.contains(Rule::MinConsumer.explain().meaning));
    }

    #[test]
    fn every_line_is_among_the_versions_with_one_current_entry() {
        let entries = versions(None);
        for line in registry().lines {
            let current = |entry: &&Value| entry["line"] == line.name && entry["current"] == true;
            assert_eq!(entries.iter().filter(current).count(), 1, "{}", line.name);
        }
    }
}
