//! JUnit XML: one suite per artifact, one test case per release.

use std::io::{self, Write};

use quick_xml::{
    Writer,
    events::{BytesDecl, BytesText, Event},
};

use crate::{Answer, Artifact, Cell, Finding, Report, names::shown};

/// Writes the suites. A counted refusal is a failure, an unreadable artifact an error, one with
/// only known findings is skipped, and warnings are the output of a passing case.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let all = Counts::of(report.artifacts());
    xml.create_element("testsuites")
        .with_attributes(all.attributes(&report.tool().name).iter().map(borrowed))
        .write_inner_content(|xml| {
            report.artifacts().iter().try_for_each(|artifact| suite(artifact, xml))
        })?;
    xml.into_inner().write_all(b"\n")
}

type Xml<'o> = Writer<&'o mut dyn Write>;

fn suite(artifact: &Artifact, xml: &mut Xml<'_>) -> io::Result<()> {
    let counts = Counts::of(std::slice::from_ref(artifact));
    let name = shown(artifact.path());
    xml.create_element("testsuite")
        .with_attributes(counts.attributes(&name).iter().map(borrowed))
        .write_inner_content(|xml| {
            artifact.answers().iter().try_for_each(|answer| case(artifact, answer, &name, xml))
        })?;
    Ok(())
}

fn case(artifact: &Artifact, answer: &Answer, path: &str, xml: &mut Xml<'_>) -> io::Result<()> {
    let release = answer.release.as_deref().map_or("load".into(), shown);
    let name = format!("{path} [{release}]");
    let class = artifact.kind().unwrap_or("unknown");
    xml.create_element("testcase")
        .with_attributes([("name", name.as_str()), ("classname", class), ("time", "0")])
        .write_inner_content(|xml| {
            let shown_ones = answer.findings.iter().filter(|finding| finding.is_shown());
            let (counting, others): (Vec<&Finding>, Vec<&Finding>) =
                shown_ones.partition(|finding| finding.counts());
            result(&Outcome::of(answer), &counting, &others, xml)?;
            let mut rest = String::new();
            if answer.cell == Cell::Differs {
                rest.push_str("differs: the release takes it and computes something else\n");
            }
            rest.push_str(&lines(&others));
            if !rest.is_empty() {
                xml.create_element("system-out").write_text_content(BytesText::new(&rest))?;
            }
            Ok(())
        })?;
    Ok(())
}

/// Writes the result of a case: nothing if it passed.
fn result(
    outcome: &Outcome,
    counting: &[&Finding],
    others: &[&Finding],
    xml: &mut Xml<'_>,
) -> io::Result<()> {
    match outcome {
        Outcome::Passed => {}
        Outcome::Skipped => {
            let known = others.iter().find(|finding| finding.known.is_some());
            let message = known.map(|finding| format!("known: {}", sentence(finding)));
            xml.create_element("skipped")
                .with_attribute(("message", message.unwrap_or_default().as_str()))
                .write_empty()?;
        }
        Outcome::Failed(tag) => {
            let first = counting.first();
            let message = first.map(|finding| shown(&finding.message));
            let rule = first.map(|finding| finding.rule.as_str());
            xml.create_element(*tag)
                .with_attribute(("message", message.unwrap_or_default().as_ref()))
                .with_attribute(("type", rule.unwrap_or_default()))
                .write_text_content(BytesText::new(&lines(counting)))?;
        }
    }
    Ok(())
}

/// Formats findings as lines: the message, followed by the remedy.
fn lines(findings: &[&Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let mark = match (&finding.known, finding.counts()) {
            (Some(_), _) => "known: ",
            (None, false) => "warning: ",
            (None, true) => "",
        };
        text = text + mark + &sentence(finding) + "\n";
        let facts = [
            ("found", finding.found.as_ref()),
            ("expected", finding.expected.as_ref()),
            ("help", finding.remedy.as_ref()),
            ("accepted for", finding.known.as_ref().filter(|reason| !reason.is_empty())),
        ];
        for (label, fact) in facts {
            if let Some(fact) = fact {
                text = text + "  " + label + ": " + &shown(fact) + "\n";
            }
        }
    }
    text
}

fn sentence(finding: &Finding) -> String {
    let at = finding.place.as_ref().map(|place| format!(" (at {})", shown(place)));
    format!("{}: {}{}", finding.rule, shown(&finding.message), at.unwrap_or_default())
}

enum Outcome {
    Passed,
    Skipped,
    /// A failed case, with the element's name.
    Failed(&'static str),
}

impl Outcome {
    fn of(answer: &Answer) -> Self {
        match (answer.counted(), answer.cell) {
            (Cell::No, _) => Self::Failed("failure"),
            (Cell::Unknown, _) => Self::Failed("error"),
            (_, Cell::No | Cell::Unknown) => Self::Skipped,
            _ => Self::Passed,
        }
    }
}

#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Counts {
    fn of(artifacts: &[Artifact]) -> Self {
        let mut counts = Self::default();
        for answer in artifacts.iter().flat_map(Artifact::answers) {
            counts.tests += 1;
            match Outcome::of(answer) {
                Outcome::Passed => {}
                Outcome::Skipped => counts.skipped += 1,
                Outcome::Failed("error") => counts.errors += 1,
                Outcome::Failed(_) => counts.failures += 1,
            }
        }
        counts
    }

    fn attributes(&self, name: &str) -> [(&'static str, String); 6] {
        [
            ("name", name.to_owned()),
            ("tests", self.tests.to_string()),
            ("failures", self.failures.to_string()),
            ("errors", self.errors.to_string()),
            ("skipped", self.skipped.to_string()),
            ("time", "0".to_owned()),
        ]
    }
}

fn borrowed<'a>((name, value): &'a (&'static str, String)) -> (&'a str, &'a str) {
    (name, value)
}
