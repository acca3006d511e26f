//! Reports from verdicts that were stored as objects of `--json`; they equal those that `check`
//! writes directly.

use std::{env, io, path::Path};

use serde_json::Value;
use serdes_check::{
    Outcome, Rule,
    report::{self, Artifact, Class, Finding, Format},
};

use crate::commands::remedies;

/// Writes a report of verdicts in a format (`html`, `markdown`, `sarif`, `junit`, …). Each verdict
/// is an object of `--json`; those of one artifact are consecutive, oldest release first. `loader`
/// is the loader of SavedModels that was used.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for an unknown format.
pub fn write(
    verdicts: &[Value],
    loader: &str,
    form: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let format: Format = form
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("no form {form:?}")))?;
    let mut report = report::report_with(&|remedy| remedies::words(remedy).into_owned());
    for verdicts in verdicts.chunk_by(|one, next| one.get("path") == next.get("path")) {
        report.add(artifact(verdicts, loader));
    }
    report.write(format, out)
}

/// Returns the report's row for an artifact's verdicts.
fn artifact(verdicts: &[Value], loader: &str) -> Artifact {
    let path = verdicts.first().and_then(|one| text(one, "path")).unwrap_or_default();
    let mut artifact = Artifact::new(path).located_at(location(path));
    if let Some(kind) = verdicts.iter().find_map(|one| text(one, "kind")) {
        artifact = artifact.of_kind(kind);
    }
    for verdict in verdicts {
        let has_loaders = verdict.get("loaders").is_some_and(|loaders| !loaders.is_null());
        let findings = findings(verdict).map(|finding| match has_loaders {
            true => finding.with_loader(loader),
            false => finding,
        });
        match text(verdict, "release") {
            Some(release) => artifact.add_release(release, findings),
            None => artifact.add_findings(findings),
        }
    }
    artifact
}

fn text<'v>(object: &'v Value, field: &str) -> Option<&'v str> {
    object.get(field)?.as_str()
}

/// Returns the reasons and warnings of a verdict, in order.
fn findings(verdict: &Value) -> impl Iterator<Item = Finding> {
    let list = |field: &str| verdict.get(field).and_then(Value::as_array).into_iter().flatten();
    list("reasons").map(reason).chain(list("warnings").map(warning))
}

fn reason(object: &Value) -> Finding {
    let owned = |field: &str| text(object, field).map(str::to_owned);
    let mut finding =
        said(object).with_values(owned("found"), owned("expected")).of_class(Class::Refusal);
    if let Some(remedy) = text(object, "remedy") {
        finding = finding.with_remedy(remedy);
    }
    finding
}

fn warning(object: &Value) -> Finding {
    let rule = text(object, "rule").and_then(|rule| rule.parse::<Rule>().ok());
    let class = match rule {
        Some(Rule::AttributeDropped) => Class::Differs,
        _ => Class::Warning,
    };
    let finding = said(object).of_class(class);
    match rule {
        Some(rule) => finding.with_remedy(remedies::general(rule)),
        None => finding,
    }
}

/// Returns the rule, the message and the place of a reason or a warning.
fn said(object: &Value) -> Finding {
    let field = |name: &str| text(object, name).unwrap_or_default();
    let finding = Finding::new(field("rule"), field("message"));
    let rule = field("rule").parse::<Rule>();
    let finding = match rule.is_ok_and(|rule| rule.outcome() == Outcome::Unreadable) {
        true => finding.unreadable(),
        false => finding,
    };
    match text(object, "where") {
        Some(place) => finding.at(place),
        None => finding,
    }
}

/// Returns a path relative to the working directory, if it is below it.
pub(crate) fn location(path: &str) -> String {
    let below = || {
        let here = env::current_dir().ok()?;
        let below = Path::new(path).strip_prefix(here).ok()?.to_str()?;
        Some(if below.is_empty() { ".".to_owned() } else { below.to_owned() })
    };
    below().unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use serdes_check::{Consumer, Options, bytes};

    use super::*;
    use crate::objects;

    #[test]
    fn report_of_objects_is_that_of_the_verdicts() {
        // versions { producer: 2474 min_consumer: 1400 }, bytes that are not protobuf, an empty
        // graph.
        for graph in [&[0x22, 6, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a][..], b"\xff\xff", b""] {
            let consumers = Consumer::releases("2.12..2.14").unwrap();
            let found = bytes(graph.to_vec()).check_for(&consumers, &Options::default()).unwrap();
            let objects: Vec<_> =
                found.iter().map(|verdict| objects::verdict(verdict).unwrap()).collect();
            let words = |remedy: &serdes_check::Remedy| remedies::words(remedy).into_owned();
            let mut expected = report::report_with(&words);
            let terms =
                report::Terms { remedy: &words, location: &location, loader: Some("load_v1") };
            expected.add(report::artifact_with(&found, &terms));
            for &format in Format::ALL {
                let (mut of_verdicts, mut of_objects) = (Vec::new(), Vec::new());
                expected.write(format, &mut of_verdicts).unwrap();
                write(&objects, "load_v1", format.id(), &mut of_objects).unwrap();
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(shown(&of_objects), shown(&of_verdicts), "{format}");
            }
        }
        assert!(write(&[], "load_v1", "excel", &mut Vec::new()).is_err());
    }
}
