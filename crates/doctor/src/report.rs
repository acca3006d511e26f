//! The answer as text for people, and as one JSON object.

use std::fmt;

use serde_json::{Value, json};

use crate::{
    diagnosis::{Change, Diagnosis, Problem, Remedy, Target},
    environment::Environment,
    package::minor,
};

impl Diagnosis {
    /// The object for programs.
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
        let warnings: Vec<Value> = self
            .warnings
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
            "platform": platform(environment),
            "glibc": version(&environment.glibc),
            "driver": environment.driver,
            "verdict": self.verdict().name(),
            "packages": environment.count,
            "components": components,
            "problems": self.problems.iter().map(problem).collect::<Vec<Value>>(),
            "warnings": warnings,
            "unknown": unknown,
        })
    }
}

fn python(environment: &Environment) -> Option<String> {
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
        "rule": problem.rule_name,
        "packages": problem.packages,
        "found": problem.found,
        "expected": problem.expected,
        "message": problem.message,
        "symptom": problem.symptom,
        "where": problem.location,
        "remedies": problem.remedies.iter().map(remedy).collect::<Vec<Value>>(),
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

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let environment = &self.environment;
        write!(f, "{}", environment.label)?;
        let mut facts = Vec::new();
        facts.extend(python(environment).map(|python| format!("Python {python}")));
        facts.extend(platform(environment).map(|platform| platform.replacen('_', " ", 1)));
        facts.extend(environment.glibc.map(|(major, minor)| format!("glibc {major}.{minor}")));
        let judged = self.components.len();
        writeln!(f, "   {}; {} packages, {judged} judged\n", facts.join(", "), environment.count)?;
        let broken: Vec<&String> =
            self.problems.iter().flat_map(|problem| &problem.packages).collect();
        let fitting = self.components.iter().filter(|component| !broken.contains(&&component.name));
        let fitting: Vec<String> =
            fitting.map(|component| format!("{} {}", component.name, component.version)).collect();
        for line in fitting.chunks(4) {
            writeln!(f, "  ok       {}", line.join(", "))?;
        }
        for problem in &self.problems {
            writeln!(f, "  problem  {}   [{}]", problem.message, problem.rule_name)?;
            if let Some(symptom) = &problem.symptom {
                writeln!(f, "           seen as: {symptom}")?;
            }
            for (number, remedy) in problem.remedies.iter().enumerate() {
                let or = if number == 0 { "" } else { "or       " };
                writeln!(f, "           {or}{}", remedy.text)?;
            }
        }
        for warning in &self.warnings {
            writeln!(f, "  warning  {}   [{}]", warning.message, warning.rule)?;
        }
        for unknown in &self.unknown {
            writeln!(f, "  unknown  {} {}: {}", unknown.name, unknown.version, unknown.why)?;
        }
        let count = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        let mut summary = Vec::new();
        if !self.problems.is_empty() {
            summary.push(count(self.problems.len(), "problem"));
        }
        if !self.warnings.is_empty() {
            summary.push(count(self.warnings.len(), "warning"));
        }
        match (self.problems.is_empty() && self.unknown.is_empty(), summary.is_empty()) {
            (true, true) => write!(f, "\neverything fits"),
            (true, false) => write!(f, "\neverything fits; {}", summary.join(", ")),
            (false, true) => write!(f, "\nnot everything could be judged"),
            (false, false) => write!(f, "\n{}", summary.join(", ")),
        }
    }
}
