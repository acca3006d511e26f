//! GitLab Code Quality: one issue per finding.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use serde::Serialize;

use crate::{
    Artifact, Class, Finding, Fingerprint, Level, Report,
    fingerprint::clean,
    grouped::{Group, groups},
    names::shown,
};

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
}

/// Writes the issues. GitLab identifies an issue by its fingerprint, so findings of the same rule
/// at the same place are merged.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut issues: Vec<Issue> = Vec::new();
    let mut numbers: BTreeMap<Fingerprint, usize> = BTreeMap::new();
    for artifact in report.artifacts() {
        for group in groups(artifact) {
            let next = issues.len();
            let number = *numbers.entry(group.finding.fingerprint()).or_insert(next);
            match issues.get_mut(number) {
                Some(issue) => {
                    issue.description =
                        shown(&format!("{}; {}", issue.description, description(artifact, &group)))
                            .into_owned();
                }
                None => issues.push(issue(artifact, &group)),
            }
        }
    }
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    out.write_all(b"\n")
}

fn issue(artifact: &Artifact, group: &Group<'_>) -> Issue {
    Issue {
        description: description(artifact, group),
        check_name: group.finding.rule.clone(),
        fingerprint: group.finding.fingerprint().to_string(),
        severity: severity(group.finding),
        location: Location {
            path: shown(&clean(artifact.location())).into_owned(),
            lines: Lines { begin: 1 },
        },
    }
}

fn description(artifact: &Artifact, group: &Group<'_>) -> String {
    let finding = group.finding;
    let mut text = String::new();
    if let Some(reason) = &finding.known {
        text.push_str("known");
        if !reason.is_empty() {
            text = format!("{text} ({})", shown(reason));
        }
        text.push_str(": ");
    }
    let releases = group.releases_of(artifact);
    if !releases.is_empty() {
        text = format!("{text}{releases}: ");
    }
    text.push_str(&shown(&finding.message));
    if let Some(place) = &finding.place {
        text = format!("{text} (at {})", shown(place));
    }
    if let Some(remedy) = &finding.remedy {
        text = format!("{text}; {}", shown(remedy));
    }
    text
}

/// Returns GitLab's severity: info, minor, major, critical, blocker.
fn severity(finding: &Finding) -> &'static str {
    match (&finding.known, finding.level, finding.class) {
        (Some(_), ..) => "info",
        (None, Level::Deny, Class::Refusal) => "critical",
        (None, Level::Deny, _) | (None, _, Class::Differs) => "major",
        _ => "minor",
    }
}
