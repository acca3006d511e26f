//! GitHub workflow commands: one line per finding, which becomes an annotation.
//!
//! In a message `%`, carriage returns and line feeds are escaped, in a property colons and commas
//! as well. GitHub shows ten annotations of each kind per step, so errors come first.

use std::io::{self, Write};

use crate::{
    Artifact, Level, Report,
    fingerprint::clean,
    grouped::{Group, groups},
    names::shown,
};

/// Writes an annotation for each finding, and the notes as a notice.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let findings = || {
        let artifacts = report.artifacts().iter();
        artifacts
            .flat_map(|artifact| groups(artifact).into_iter().map(move |group| (artifact, group)))
    };
    for kind in [Kind::Error, Kind::Warning, Kind::Notice] {
        for (artifact, group) in findings().filter(|(_, group)| Kind::of(group) == kind) {
            annotation(kind, artifact, &group, out)?;
        }
    }
    let sentences = report.sentences();
    for sentence in sentences.iter().chain(report.notes()) {
        writeln!(out, "::notice title={}::{}", property(&report.tool().name), message(sentence))?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Error,
    Warning,
    Notice,
}

impl Kind {
    fn of(group: &Group<'_>) -> Self {
        match (&group.finding.known, group.finding.level) {
            (Some(_), _) => Self::Notice,
            (None, Level::Deny) => Self::Error,
            (None, _) => Self::Warning,
        }
    }
}

fn annotation(
    kind: Kind,
    artifact: &Artifact,
    group: &Group<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let finding = group.finding;
    let command = match kind {
        Kind::Error => "error",
        Kind::Warning => "warning",
        Kind::Notice => "notice",
    };
    let releases = group.releases_of(artifact);
    let mut title = finding.rule.clone();
    if !releases.is_empty() {
        title = format!("{title} ({releases})");
    }
    if finding.known.is_some() {
        title = format!("known: {title}");
    }
    let mut lines = vec![shown(&finding.message)];
    let facts = [
        ("at", finding.place.as_ref()),
        ("found", finding.found.as_ref()),
        ("expected", finding.expected.as_ref()),
        ("help", finding.remedy.as_ref()),
        ("accepted for", finding.known.as_ref().filter(|reason| !reason.is_empty())),
    ];
    for (label, fact) in facts {
        lines.extend(fact.map(|fact| format!("{label}: {}", shown(fact)).into()));
    }
    writeln!(
        out,
        "::{command} file={},line=1,title={}::{}",
        property(&clean(artifact.location())),
        property(&title),
        lines.join("\n").replace('%', "%25").replace('\n', "%0A"),
    )
}

fn message(text: &str) -> String {
    shown(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Finding, Tool};

    #[test]
    fn github_paths_are_those_of_the_repository() {
        let mut artifact = Artifact::new("./models//a.pb");
        artifact.add_findings([Finding::new("corrupt", "no").of_class(Class::Refusal)]);
        let mut report = Report::new(Tool::new("serdes", "1"));
        report.add(artifact);
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        assert!(out.starts_with(b"::error file=models/a.pb,line=1,"));
    }

    #[test]
    fn github_escapes_what_its_runner_reads() {
        let mut artifact = Artifact::new("a,b:c%0A\n::error::x");
        artifact.add_findings([Finding::new("corrupt", "100 %\n::set-output name=x::y")
            .of_class(Class::Refusal)
            .with_remedy("mend it")]);
        let mut report = Report::new(Tool::new("serdes", "1"));
        report.add(artifact);
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            r"::error file=a%2Cb%3Ac%250A\n%3A%3Aerror%3A%3Ax,line=1,title=corrupt::100 %25\n::set-output name=x::y%0Ahelp: mend it"
        );
        assert_eq!(lines[1], "::notice title=serdes::1 of 1 fails");
        assert_eq!(lines.len(), 2);
    }
}
