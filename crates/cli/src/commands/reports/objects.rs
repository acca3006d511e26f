//! The JSON objects of `--json`: the library's, adjusted by levels and the baseline.

use serde_json::{Map, Value, json};
use serdes_check::{
    Outcome, Verdict,
    report::{Answer, Artifact, Cell, Class, Finding, Level},
};

use crate::{commands::remedies, failure::Failure, objects};

/// Returns the outcome of a cell: a model that computes something else is acceptable.
pub(crate) const fn outcome(cell: Cell) -> Outcome {
    match cell {
        Cell::Yes | Cell::Differs => Outcome::Acceptable,
        Cell::No => Outcome::Unacceptable,
        Cell::Unknown => Outcome::Unreadable,
    }
}

/// Returns the object of a verdict, with these levels and this baseline applied.
pub(crate) fn judged(verdict: &Verdict, answer: &Answer) -> Result<Value, Failure> {
    let mut object = objects::verdict(verdict).map_err(Failure::of)?;
    let mut list = |name: &str| match object.get_mut(name).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let said = list("reasons").into_iter().chain(list("warnings"));
    let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
    for (mut said, finding) in said.zip(&answer.findings) {
        if let (Some(reason), Some(fields)) = (&finding.known, said.as_object_mut()) {
            fields.insert("known".to_owned(), json!(reason));
        }
        match finding.level {
            Level::Deny if finding.class == Class::Refusal => reasons.push(said),
            Level::Deny => reasons.push(denied(said, finding)),
            Level::Warn => warnings.push(said),
            Level::Allow => {}
        }
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("verdict".to_owned(), outcome(answer.cell).id().into());
        fields.insert("reasons".to_owned(), reasons.into());
        fields.insert("warnings".to_owned(), warnings.into());
    }
    Ok(object)
}

/// Converts a warning to a reason, like `--strict`.
fn denied(warning: Value, finding: &Finding) -> Value {
    let mut reason = Map::new();
    reason.insert("found".to_owned(), Value::Null);
    reason.insert("expected".to_owned(), Value::Null);
    let remedy = finding.rule.parse().map(remedies::general).ok();
    reason.insert("remedy".to_owned(), json!(remedy));
    if let Value::Object(fields) = warning {
        reason.extend(fields);
    }
    reason.into()
}

/// Returns the object after those of an artifact, if several releases are judged.
pub(crate) fn releases(path: &str, artifact: &Artifact) -> Value {
    let answers = || artifact.answers().iter();
    let taking = |answer: &&Answer| outcome(answer.cell) == Outcome::Acceptable;
    let words = answers()
        .filter_map(|answer| Some((answer.release.clone()?, json!(outcome(answer.cell).id()))));
    let differing = answers().filter(|answer| answer.cell == Cell::Differs);
    json!({
        "path": path,
        "releases": words.collect::<Map<String, Value>>(),
        "differs": differing.filter_map(|answer| answer.release.as_deref()).collect::<Vec<_>>(),
        "oldest": answers().find(taking).and_then(|answer| answer.release.as_deref()),
        "newest": answers().rfind(taking).and_then(|answer| answer.release.as_deref()),
    })
}
