//! Verdicts as findings, and the reports of them: SARIF, JUnit, GitHub, GitLab, Markdown, HTML, text.
//!
//! ```
//! use std::path::Path;
//!
//! use serdes_check::{Consumer, Options, report, report::Format, walk};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let exported = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/rules");
//! let consumers = Consumer::releases("all")?;
//! let options = Options::default();
//! let mut page = report::report();
//! let mut artifacts = walk(Path::new(exported), &options).for_consumers(consumers);
//! while let Some(verdicts) = artifacts.next_artifact() {
//!     page.add(report::artifact(&verdicts?));
//! }
//! let mut html = Vec::new();
//! page.write(Format::Html, &mut html)?;
//! # assert!(html.starts_with(b"<!DOCTYPE html>"));
//! # Ok(())
//! # }
//! ```
//!
//! [`Levels`] and a [`Baseline`] are applied to a report before it is written. The reports are
//! those of the crate `serdes-report`, which does not depend on verdicts.

pub use serdes_report::*;

use super::{Reason, Remedy, Rule as VerdictRule, Verdict, Verdicts, Warning};

/// The page of the rules, where each rule has a heading.
const RULES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rules.md");

/// The texts with which a program reports verdicts.
#[derive(Clone, Copy)]
pub struct Terms<'t> {
    /// Formats a remedy, with the program's own options.
    pub remedy: &'t dyn Fn(&Remedy) -> String,
    /// Returns the path of an artifact relative to the readers of the report, from its path as it
    /// was given.
    pub location: &'t dyn Fn(&str) -> String,
    /// The loader that decides about SavedModels.
    pub loader: Option<&'t str>,
}

impl Default for Terms<'_> {
    /// Creates the texts of the library, with paths as they were given.
    fn default() -> Self {
        Self { remedy: &Remedy::to_string, location: &str::to_owned, loader: None }
    }
}

impl std::fmt::Debug for Terms<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terms").field("loader", &self.loader).finish_non_exhaustive()
    }
}

/// Creates a report of this library without artifacts, with the rules of verdicts.
#[must_use]
pub fn report() -> Report {
    report_with(&|remedy| remedy.to_string())
}

/// Creates such a report with the texts of a program.
#[must_use]
pub fn report_with(remedy: &dyn Fn(&Remedy) -> String) -> Report {
    let tool = Tool::new("serdes", env!("CARGO_PKG_VERSION")).at(env!("CARGO_PKG_REPOSITORY"));
    Report::new(tool).with_rules(VerdictRule::ALL.iter().map(|rule| explained(*rule, remedy)))
}

fn explained(rule: VerdictRule, remedy: &dyn Fn(&Remedy) -> String) -> Rule {
    let explanation = rule.explain();
    let summary = explanation.meaning.split(['.', ':']).next().unwrap_or_default();
    let explained = Rule::new(rule.id(), format!("{summary}."))
        .with_meaning(explanation.meaning)
        .with_example(explanation.example)
        .with_remedy(remedy(&Remedy::General(rule)))
        .at(format!("{RULES}#{rule}"));
    if rule.is_warning() { explained.warning() } else { explained }
}

/// Returns the verdicts of several consumers on an artifact as a row of a report.
#[must_use]
pub fn artifact(verdicts: &Verdicts) -> Artifact {
    artifact_with(verdicts, &Terms::default())
}

/// Returns such a row with the texts of a program.
#[must_use]
pub fn artifact_with(verdicts: &Verdicts, terms: &Terms<'_>) -> Artifact {
    let first = verdicts.iter().next();
    let path = first.map_or(verdicts.path.as_str(), |verdict| &verdict.path);
    let mut artifact = Artifact::new(path).located_at((terms.location)(path));
    if let Some(kind) = verdicts.iter().find_map(|verdict| verdict.kind) {
        artifact = artifact.of_kind(kind.to_string());
    }
    for verdict in verdicts {
        let findings = findings(verdict, terms);
        match &verdict.release {
            Some(release) => artifact.add_release(release, findings),
            None => artifact.add_findings(findings),
        }
    }
    artifact
}

/// Returns the reasons and warnings of a verdict, in their order.
fn findings(verdict: &Verdict, terms: &Terms<'_>) -> Vec<Finding> {
    let loader = terms.loader.filter(|_| verdict.loaders.is_some());
    let reasons = verdict.reasons().iter().map(|reason| of_reason(reason, terms));
    let warnings = verdict.warnings().iter().map(|warning| of_warning(warning, terms));
    let with_loader = |finding: Finding| match loader {
        Some(loader) => finding.with_loader(loader),
        None => finding,
    };
    reasons.chain(warnings).map(with_loader).collect()
}

fn of_reason(reason: &Reason, terms: &Terms<'_>) -> Finding {
    let Reason { rule, found, expected, message, remedy, place } = reason;
    let finding = Finding::new(rule.id(), message)
        .with_values(found.clone(), expected.clone())
        .with_remedy((terms.remedy)(remedy));
    placed(finding.of_class(Class::Refusal), *rule, place.as_deref())
}

fn of_warning(warning: &Warning, terms: &Terms<'_>) -> Finding {
    let Warning { rule, message, place } = warning;
    let class = match rule {
        VerdictRule::AttributeDropped => Class::Differs,
        _ => Class::Warning,
    };
    let remedy = (terms.remedy)(&Remedy::General(*rule));
    placed(
        Finding::new(rule.id(), message).with_remedy(remedy).of_class(class),
        *rule,
        place.as_deref(),
    )
}

fn placed(finding: Finding, rule: VerdictRule, place: Option<&str>) -> Finding {
    let finding = match rule.outcome() {
        super::Outcome::Unreadable => finding.unreadable(),
        _ => finding,
    };
    match place {
        Some(place) => finding.at(place),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Consumer, bytes};

    fn of(graph: &[u8], releases: &str) -> Artifact {
        let consumers = Consumer::releases(releases).unwrap();
        let options = crate::Options::default();
        artifact(&bytes(graph.to_vec()).check_for(&consumers, &options).unwrap())
    }

    #[test]
    fn report_has_the_cell_of_each_release() {
        // versions { producer: 2474 min_consumer: 1400 }: every release but 2.12 accepts it.
        let artifact = of(&[0x22, 6, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a], "2.12..2.14");
        let cells: Vec<_> = artifact
            .answers()
            .iter()
            .map(|answer| (answer.release.as_deref(), answer.cell))
            .collect();
        assert_eq!(
            cells,
            [(Some("2.12"), Cell::No), (Some("2.13"), Cell::Yes), (Some("2.14"), Cell::Yes)]
        );
        let finding = artifact.findings().next().unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.found.as_deref()),
            ("min_consumer", Some("1400"))
        );
        assert!(finding.remedy.as_deref().is_some_and(|remedy| !remedy.is_empty()));
    }

    #[test]
    fn report_knows_damage_from_refusal_and_warnings() {
        assert_eq!(of(b"\xff\xff", "2.12..2.13").worst(), Cell::Unknown);
        let empty = of(b"", "2.12..2.13");
        assert_eq!(empty.worst(), Cell::Yes);
        assert_eq!(empty.findings().next().unwrap().rule, "empty");
    }

    #[test]
    fn report_explains_every_rule_of_a_verdict() {
        let report = report();
        assert_eq!(report.rules().len(), VerdictRule::ALL.len());
        for rule in report.rules() {
            assert!(rule.address.as_deref().unwrap().ends_with(&format!("rules.md#{}", rule.id)));
        }
    }
}
