//! The diagnosis as one JSON object.

use serde_json::{Value, json};

use crate::{
    diagnosis::{Change, Diagnosis, Problem, Remedy, Target},
    environment::Environment,
    package::minor,
    warning::Warning,
};

impl Diagnosis {
    /// Converts the diagnosis to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let environment = &self.environment;
        let version =
            |version: &Option<(u64, u64)>| version.map(|(major, minor)| format!("{major}.{minor}"));
        let components: Vec<Value> = self
            .components
            .iter()
            .map(|component| {
                json!({
                    "name": component.name,
                    "version": component.version.to_string(),
                    "metadata_version": component.metadata_version.as_ref().map(ToString::to_string),
                    "path": component.path,
                    "found_by": component.found_by,
                    "pjrt_version": component.pjrt_minor.map(|minor| format!("0.{minor}")),
                    "library": component.library,
                })
            })
            .collect();
        let mut problems: Vec<Value> = self.problems.iter().map(problem).collect();
        let (all, none) = (self.warnings.as_slice(), [].as_slice());
        let (strict, warnings) = if self.strict { (all, none) } else { (none, all) };
        problems.extend(strict.iter().map(of_warning));
        let warnings: Vec<Value> = warnings
            .iter()
            .map(|warning| json!({"rule": warning.rule.id(), "message": warning.message, "packages": warning.packages}))
            .collect();
        let unknown: Vec<Value> = self
            .unknown
            .iter()
            .map(|unknown| json!({"name": unknown.name, "version": unknown.version, "why": unknown.why}))
            .collect();
        json!({
            "environment": environment.label,
            "kind": environment.kind.name(),
            "python": python(environment),
            "free_threaded": environment.free_threaded,
            "platform": platform(environment),
            "glibc": version(&environment.glibc),
            "driver": environment.driver,
            "verdict": self.verdict().name(),
            "packages": environment.count,
            "components": components,
            "problems": problems,
            "warnings": warnings,
            "unknown": unknown,
        })
    }
}

pub(crate) fn python(environment: &Environment) -> Option<String> {
    environment.python.as_ref().map(|python| {
        let (major, minor) = minor(python);
        format!("{major}.{minor}")
    })
}

fn platform(environment: &Environment) -> Option<String> {
    environment.machine.as_ref().map(|machine| format!("{}_{machine}", environment.system))
}

fn problem(problem: &Problem) -> Value {
    json!({
        "rule": problem.rule.id(),
        "packages": problem.packages,
        "found": problem.found,
        "expected": problem.expected,
        "message": problem.message,
        "symptom": problem.symptom,
        "where": problem.location,
        "remedies": problem.remedies.iter().map(remedy).collect::<Vec<Value>>(),
    })
}

/// Converts a warning that counts as a problem.
fn of_warning(warning: &Warning) -> Value {
    json!({
        "rule": warning.rule.id(),
        "packages": warning.packages,
        "found": Value::Null,
        "expected": Value::Null,
        "message": warning.message,
        "symptom": Value::Null,
        "where": Value::Null,
        "remedies": [],
    })
}

fn remedy(remedy: &Remedy) -> Value {
    json!({
        "changes": remedy.changes.iter().map(change).collect::<Vec<Value>>(),
        "command": remedy.command,
        "text": remedy.text,
    })
}

fn change(change: &Change) -> Value {
    json!({
        "package": change.package,
        "from": change.from.as_ref().map(ToString::to_string),
        "to": match &change.to {
            Target::Removed => Value::Null,
            to => Value::String(to.to_string()),
        },
    })
}
