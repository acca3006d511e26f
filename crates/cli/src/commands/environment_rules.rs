//! The rules of `serdes doctor`, as explained by `serdes explain`.

use serdes_check::report;
use serdes_doctor::{Rule, Verdict, WarningRule};

use crate::{
    failure::Failure,
    terminal::{NAME, Terminal},
};

/// A rule of environments.
pub(super) struct EnvironmentRule {
    id: &'static str,
    verdict: &'static str,
    meaning: &'static str,
    example: &'static str,
    remedy: &'static str,
}

/// Returns the rule of environments with this id; if a warning and a problem share it, the problem.
pub(super) fn named(id: &str) -> Option<EnvironmentRule> {
    all().find(|rule| rule.id == id)
}

/// Returns every rule of environments: problems, then warnings.
pub(super) fn all() -> impl Iterator<Item = EnvironmentRule> {
    let problems = Rule::ALL.iter().map(|rule| EnvironmentRule {
        id: rule.id(),
        verdict: Verdict::DoesNotFit.name(),
        meaning: rule.meaning(),
        example: rule.example(),
        remedy: rule.remedy(),
    });
    let warnings = WarningRule::ALL.iter().map(|rule| EnvironmentRule {
        id: rule.id(),
        verdict: "warning",
        meaning: rule.meaning(),
        example: rule.example(),
        remedy: rule.remedy(),
    });
    problems.chain(warnings)
}

impl EnvironmentRule {
    /// Returns the id.
    pub(super) fn id(&self) -> &'static str {
        self.id
    }

    /// Returns the rule in the form of reports.
    pub(super) fn for_reports(&self) -> report::Rule {
        let summary = self.meaning.split(['.', ':']).next().unwrap_or_default();
        let rule = report::Rule::new(self.id, format!("{summary}."))
            .with_meaning(self.meaning)
            .with_example(self.example)
            .with_remedy(self.remedy);
        if self.verdict == "warning" { rule.warning() } else { rule }
    }

    /// Prints the meaning of the rule.
    pub(super) fn explain(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let Self { id, verdict, meaning, example, remedy } = self;
        if terminal.json() {
            return terminal.object(&serde_json::json!({
                "rule": id,
                "verdict": verdict,
                "meaning": meaning,
                "example": example,
                "remedy": remedy,
            }));
        }
        terminal.line(format_args!("{NAME}{id}{NAME:#} ({verdict})\n"))?;
        terminal.line(meaning)?;
        terminal.line(format_args!("\n{NAME}Example{NAME:#}  {example}"))?;
        terminal.line(format_args!("{NAME}Remedy{NAME:#}   {remedy}"))
    }
}
