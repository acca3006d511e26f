//! Output of the changes as text, JSON objects or Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::change::{Change, ChangeKind, Side};
use crate::{
    arguments::CheckArguments,
    commands::{
        form_places::FormPlaces,
        markdown_text::{code, plain},
        remedies, report_file,
    },
    failure::Failure,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, count, json_line, shown},
};

/// Maximum number of reasons shown for an artifact.
const LISTED: usize = 5;

/// Output formats of a comparison.
const FORMS: [&str; 3] = ["text", "json", "markdown"];

/// Prints the changes in the requested formats.
pub(super) fn show(
    against: &str,
    changes: &[Change],
    arguments: &CheckArguments,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let reports = &arguments.reports;
    let output = reports.output.as_deref();
    let places = FormPlaces::of(&reports.format, output, terminal.json(), &FORMS)?;
    for (form, path) in &places.files {
        let content = match *form {
            "json" => lines(against, changes),
            "markdown" => markdown(against, changes),
            _ => anstream::adapter::strip_str(&text(against, changes)).to_string(),
        };
        report_file::write(path, &mut |file| file.write_all(content.as_bytes()))?;
    }
    match places.standard {
        Some("markdown") => terminal.raw(markdown(against, changes).as_bytes()),
        Some("json") => terminal.raw(lines(against, changes).as_bytes()),
        None => Ok(()),
        _ => text(against, changes).lines().try_for_each(|line| terminal.line(line)),
    }
}

/// Formats the changes as JSON objects, one per line, followed by their numbers.
fn lines(against: &str, changes: &[Change]) -> String {
    let objects = changes.iter().map(|change| object(against, change));
    objects.chain([summary(against, changes)]).map(|one| json_line(&one)).collect()
}

fn number(changes: &[Change], kind: ChangeKind) -> usize {
    changes.iter().filter(|change| change.kind == kind).count()
}

const KINDS: [ChangeKind; 6] = [
    ChangeKind::Worse,
    ChangeKind::Mixed,
    ChangeKind::Better,
    ChangeKind::Added,
    ChangeKind::Removed,
    ChangeKind::Same,
];

/// Formats the numbers of changes: `1 worse, 2 added, 3 same`.
fn tally(changes: &[Change]) -> String {
    let words = KINDS.iter().filter_map(|kind| match number(changes, *kind) {
        0 => None,
        number => Some(format!("{number} {}", kind.word())),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn summary(against: &str, changes: &[Change]) -> Value {
    let mut found = Map::new();
    found.insert("summary".to_owned(), json!(true));
    found.insert("against".to_owned(), json!(against));
    found.insert("artifacts".to_owned(), json!(changes.len()));
    for kind in KINDS {
        found.insert(kind.word().to_owned(), json!(number(changes, kind)));
    }
    Value::Object(found)
}

fn object(against: &str, change: &Change) -> Value {
    let side = |side: &Option<Side>| {
        side.as_ref().map(|side| {
            let named = side.0.iter().filter(|(name, _)| !name.is_empty());
            let releases: Map<String, Value> =
                named.map(|(name, answer)| (name.clone(), json!(answer.id()))).collect();
            // The only answer, if it does not depend on a release.
            let answer = match &side.0[..] {
                [(name, answer)] if name.is_empty() => Some(answer.id()),
                _ => None,
            };
            let named =
                |release: Option<&str>| release.filter(|name| !name.is_empty()).map(str::to_owned);
            json!({
                "oldest": named(side.oldest()),
                "newest": named(side.newest()),
                "answer": answer,
                "releases": releases,
            })
        })
    };
    let reasons = change.reasons.iter().map(|reason| {
        json!({
            "rule": reason.rule.id(),
            "found": reason.found,
            "expected": reason.expected,
            "message": reason.message,
            "remedy": remedies::help(reason),
            "where": reason.place,
        })
    });
    json!({
        "path": change.path,
        "kind": change.artifact_kind,
        "against": against,
        "change": change.kind.word(),
        "before": side(&change.before),
        "after": side(&change.after),
        "lost": named(&change.lost),
        "gained": named(&change.gained),
        "reasons": reasons.collect::<Vec<_>>(),
    })
}

/// Returns the names of releases that are not empty.
fn named(releases: &[String]) -> Vec<&str> {
    releases.iter().map(String::as_str).filter(|name| !name.is_empty()).collect()
}

fn range(side: &Option<Side>) -> String {
    side.as_ref().map_or_else(|| "not there".to_owned(), Side::range)
}

/// Formats the changes as text.
fn text(against: &str, changes: &[Change]) -> String {
    let mut page = String::new();
    for change in changes.iter().filter(|change| change.kind != ChangeKind::Same) {
        write_change(change, &mut page);
    }
    let against = shown(against);
    let _ = if changes.is_empty() {
        writeln!(page, "no artifacts, now or in {against}")
    } else {
        let artifacts = count(changes.len() as u64, "artifact");
        writeln!(page, "{artifacts} against {against}: {}", tally(changes))
    };
    page
}

fn write_change(change: &Change, page: &mut String) {
    let style = match change.kind {
        ChangeKind::Worse | ChangeKind::Mixed => BAD,
        ChangeKind::Better => GOOD,
        _ => WARN,
    };
    let word = change.kind.word();
    let _ = writeln!(page, "{NAME}{}{NAME:#}: {style}{word}{style:#}", shown(&change.path));
    let (before, after) = (range(&change.before), range(&change.after));
    let _ = writeln!(page, "  loads in  {before}  {FAINT}->{FAINT:#}  {after}");
    for (label, releases) in [("lost", &change.lost), ("gained", &change.gained)] {
        let releases = named(releases);
        if !releases.is_empty() {
            let _ = writeln!(page, "  {label:<9} {}", releases.join(", "));
        }
    }
    for reason in change.reasons.iter().take(LISTED) {
        let place = reason.place.as_ref().map(|place| format!(" (at {})", shown(place)));
        let place = place.unwrap_or_default();
        let message = shown(&reason.message);
        let _ = writeln!(page, "  {BAD}reason{BAD:#}    {}: {message}{place}", reason.rule);
        if let Some(help) = remedies::help(reason) {
            let _ = writeln!(page, "  {GOOD}help{GOOD:#}      {}", shown(&help));
        }
    }
}

/// Formats a comment for a review: a table of the changes, followed by the reasons.
fn markdown(against: &str, changes: &[Change]) -> String {
    let mut page = format!("### Compatibility against {}\n\n", code(against));
    let changed: Vec<&Change> =
        changes.iter().filter(|change| change.kind != ChangeKind::Same).collect();
    if changed.is_empty() {
        let artifacts = count(changes.len() as u64, "artifact");
        let _ = writeln!(page, "Nothing changes: {artifacts} compared.");
        return page;
    }
    page.push_str(
        "| artifact | change | loads in, before | loads in, after | why |\n|---|---|---|---|---|\n",
    );
    for change in &changed {
        let why = change.reasons.first().map_or_else(String::new, |reason| {
            format!("{}: {}", code(reason.rule.id()), plain(&reason.message))
        });
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {why} |",
            code(&change.path),
            change.kind.word(),
            range(&change.before),
            range(&change.after)
        );
    }
    for change in changed.iter().filter(|change| !change.reasons.is_empty()) {
        let _ = write!(page, "\n<details><summary>{}</summary>\n\n", plain(&change.path));
        let lost = named(&change.lost);
        if !lost.is_empty() {
            let _ = writeln!(page, "No longer as before in {}.\n", lost.join(", "));
        }
        for reason in change.reasons.iter().take(LISTED) {
            let place = reason.place.as_ref().map(|place| format!(" at {}", code(place)));
            let message = plain(&reason.message);
            let place = place.unwrap_or_default();
            let _ = writeln!(page, "- {}{place}: {message}", code(reason.rule.id()));
            if let Some(help) = remedies::help(reason) {
                let _ = writeln!(page, "  Remedy: {}", plain(&help));
            }
        }
        page.push_str("\n</details>\n");
    }
    let _ = writeln!(page, "\n{}", tally(changes));
    page
}
