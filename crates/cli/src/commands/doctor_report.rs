//! Diagnoses of environments as a report: environments are artifacts, problems are findings.

use serdes_check::report::{Artifact, Class, Finding, Level, Levels, Report, Rule, Tool};
use serdes_doctor::Diagnosis;

use crate::commands::environment_rules;

/// URL of the rules' page, in which each rule is a heading.
const PAGE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/doctor.md");

/// Creates a report without environments.
pub(super) fn report() -> Report {
    let tool = Tool::new("serdes", env!("CARGO_PKG_VERSION")).at(env!("CARGO_PKG_REPOSITORY"));
    let mut rules: Vec<Rule> = Vec::new();
    for rule in environment_rules::all() {
        // A warning with the same name as a problem has its explanation.
        if !rules.iter().any(|known| known.id == rule.id()) {
            rules.push(rule.for_reports().at(PAGE));
        }
    }
    Report::new(tool).with_rules(rules)
}

/// Returns an environment with its problems, warnings and undecided parts.
pub(super) fn artifact(diagnosis: &Diagnosis) -> Artifact {
    let problems = diagnosis.problems.iter().map(|problem| {
        let mut message = problem.message.clone();
        if let Some(symptom) = &problem.symptom {
            message = format!("{message}; {symptom}");
        }
        let finding = Finding::new(problem.rule.id(), message)
            .of_class(Class::Refusal)
            .at(problem.packages.join(", "))
            .with_values(Some(problem.found.clone()), Some(problem.expected.clone()));
        match problem.remedies.first() {
            Some(remedy) => finding.with_remedy(remedy.command.as_ref().unwrap_or(&remedy.text)),
            None => finding,
        }
    });
    let warnings = diagnosis.warnings.iter().map(|warning| {
        Finding::new(warning.rule.id(), &warning.message).at(warning.packages.join(", "))
    });
    let unknown = diagnosis.unknown.iter().map(|unknown| {
        let message =
            format!("{} {} is not judged: {}", unknown.name, unknown.version, unknown.why);
        Finding::new("unknown", message).of_class(Class::Refusal).unreadable().at(&unknown.name)
    });
    let mut artifact = Artifact::new(&diagnosis.environment.label).of_kind("environment");
    artifact.add_findings(problems.chain(warnings).chain(unknown));
    if diagnosis.strict {
        let rules = diagnosis.warnings.iter().map(|warning| warning.rule.id());
        let deny = |levels: Levels, rule| levels.with(rule, Level::Deny);
        artifact.apply(&rules.fold(Levels::default(), deny));
    }
    artifact
}
