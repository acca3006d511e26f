//! A standalone HTML file, without external scripts, fonts or images.
//!
//! It is readable without the script, which only filters. A policy in the page permits this style
//! and this script, by their hashes, and nothing else.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, Write},
};

use askama::Template;

use crate::{
    Artifact, Cell, Class, Finding, Fingerprint, Level, Report, Rule,
    grouped::{Group, groups},
    names::{count, shown},
    summary::Table,
};

const STYLE: &str = include_str!("../templates/report.css");
const SCRIPT: &str = include_str!("../templates/report.js");

/// SHA-256 of the style and of the script in the policy's format; a test compares.
const STYLE_HASH: &str = "sha256-Apg+CpRwiE5CUM0lezk3DAHXlYtwPHGZ6FVkwfS+HrA=";
const SCRIPT_HASH: &str = "sha256-Zzqfnmogm2Dk1pbrjvIz6Bx/1FeD7K1Stmb1SrLln7w=";

/// Writes the page.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    Page::of(report).write_into(&mut *out)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'r> {
    title: String,
    tool: &'r str,
    version: &'r str,
    style: &'static str,
    style_hash: &'static str,
    script: &'static str,
    script_hash: &'static str,
    sentences: Vec<String>,
    notes: Vec<Cow<'r, str>>,
    /// Verdicts with their texts and the numbers of artifacts.
    verdicts: Vec<(&'static str, &'static str, usize)>,
    /// Rules with the numbers of artifacts with findings.
    named: BTreeMap<&'r str, usize>,
    tables: Vec<Rows<'r>>,
    artifacts: Vec<Section<'r>>,
    rules: Vec<Explained<'r>>,
}

struct Rows<'r> {
    caption: String,
    releases: Vec<Cow<'r, str>>,
    rows: Vec<Row<'r>>,
}

struct Row<'r> {
    number: usize,
    path: Cow<'r, str>,
    kind: Option<&'r str>,
    verdicts: String,
    rules: String,
    has_findings: bool,
    cells: Vec<Answer>,
}

struct Answer {
    id: &'static str,
    words: &'static str,
    /// Id of the element of the finding that determines the cell.
    finding: Option<String>,
}

struct Section<'r> {
    number: usize,
    path: Cow<'r, str>,
    kind: Option<&'r str>,
    findings: Vec<Item<'r>>,
}

struct Item<'r> {
    id: String,
    class: &'static str,
    mark: &'static str,
    rule: &'r str,
    releases: String,
    message: Cow<'r, str>,
    facts: Vec<(&'static str, Cow<'r, str>)>,
}

struct Explained<'r> {
    id: &'r str,
    texts: Vec<(&'static str, &'r str)>,
    address: Option<&'r str>,
}

impl<'r> Page<'r> {
    fn of(report: &'r Report) -> Self {
        let mut page = Self {
            title: format!("{} report", report.tool().name),
            tool: &report.tool().name,
            version: &report.tool().version,
            style: STYLE,
            style_hash: STYLE_HASH,
            script: SCRIPT,
            script_hash: SCRIPT_HASH,
            sentences: report.sentences(),
            notes: report.notes().iter().map(|note| shown(note)).collect(),
            verdicts: Vec::new(),
            named: BTreeMap::new(),
            tables: Vec::new(),
            artifacts: Vec::new(),
            rules: Vec::new(),
        };
        let mut ids = Ids::default();
        for table in report.tables() {
            let rows = page.rows(&table, &mut ids);
            page.tables.push(rows);
        }
        let counted = |&cell: &Cell| (cell.id(), words(cell), page.count(cell));
        page.verdicts = Cell::ALL.iter().map(counted).collect();
        page.rules = page.explained(report.rules());
        page
    }

    fn count(&self, cell: Cell) -> usize {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.filter(|row| row.cells.iter().any(|one| one.id == cell.id())).count()
    }

    /// Creates the rows of a table; the findings of its artifacts become sections.
    fn rows(&mut self, table: &Table<'r>, ids: &mut Ids) -> Rows<'r> {
        let mut rows = Vec::new();
        for artifact in &table.artifacts {
            let number = ids.next_artifact();
            let (findings, elements) = items(artifact, ids);
            let rules: BTreeSet<&str> = findings.iter().map(|item| item.rule).collect();
            for rule in &rules {
                *self.named.entry(rule).or_default() += 1;
            }
            let cells: Vec<Answer> = artifact
                .answers()
                .iter()
                .map(|answer| Answer {
                    id: answer.cell.id(),
                    words: words(answer.cell),
                    finding: decisive(&answer.findings, answer.cell)
                        .and_then(|finding| elements.get(&key(finding)).cloned()),
                })
                .collect();
            let verdicts: BTreeSet<&str> = cells.iter().map(|cell| cell.id).collect();
            rows.push(Row {
                number,
                path: shown(artifact.path()),
                kind: artifact.kind(),
                verdicts: joined(verdicts),
                rules: joined(rules),
                has_findings: !findings.is_empty(),
                cells,
            });
            if !findings.is_empty() {
                let (path, kind) = (shown(artifact.path()), artifact.kind());
                self.artifacts.push(Section { number, path, kind, findings });
            }
        }
        let release = |name: &&'r str| if name.is_empty() { "loads".into() } else { shown(name) };
        Rows {
            caption: format!(
                "{} by {}",
                count(table.artifacts.len(), "artifact"),
                count(table.releases.len(), "release")
            ),
            releases: table.releases.iter().map(release).collect(),
            rows,
        }
    }

    fn explained(&self, rules: &'r [Rule]) -> Vec<Explained<'r>> {
        let known: HashMap<&str, &Rule> =
            rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
        let explain = |id: &&'r str| {
            let Some(rule) = known.get(id) else {
                return Explained { id, texts: Vec::new(), address: None };
            };
            let meaning = if rule.meaning.is_empty() { &rule.summary } else { &rule.meaning };
            let texts = [
                ("", Some(meaning)),
                ("Example", rule.example.as_ref()),
                ("Remedy", rule.remedy.as_ref()),
            ];
            Explained {
                id,
                texts: texts
                    .into_iter()
                    .filter_map(|(label, text)| Some((label, text?.as_str())))
                    .collect(),
                address: rule.address.as_deref(),
            }
        };
        self.named.keys().map(explain).collect()
    }
}

/// Generates unique ids of elements.
#[derive(Default)]
struct Ids {
    artifacts: usize,
    findings: HashMap<Fingerprint, usize>,
}

impl Ids {
    fn next_artifact(&mut self) -> usize {
        self.artifacts += 1;
        self.artifacts
    }

    /// Returns the id of a finding: its fingerprint, so that links to it stay valid; duplicates are
    /// numbered.
    fn of(&mut self, finding: &Finding) -> String {
        let fingerprint = finding.fingerprint();
        let count = self.findings.entry(fingerprint).or_default();
        *count += 1;
        if *count == 1 { format!("f-{fingerprint}") } else { format!("f-{fingerprint}-{count}") }
    }
}

/// Key of a group of findings.
type Key<'r> = (&'r str, Option<&'r str>, Option<&'r str>, Level, Option<&'r str>);

fn key(finding: &Finding) -> Key<'_> {
    (
        &finding.rule,
        finding.place.as_deref(),
        finding.found.as_deref(),
        finding.level,
        finding.known.as_deref(),
    )
}

/// Returns the findings of an artifact, and the element's id of each.
fn items<'r>(artifact: &'r Artifact, ids: &mut Ids) -> (Vec<Item<'r>>, HashMap<Key<'r>, String>) {
    let mut elements = HashMap::new();
    let mut items = Vec::new();
    for group in groups(artifact) {
        let id = ids.of(group.finding);
        elements.insert(key(group.finding), id.clone());
        items.push(item(artifact, &group, id));
    }
    (items, elements)
}

fn item<'r>(artifact: &'r Artifact, group: &Group<'r>, id: String) -> Item<'r> {
    let finding = group.finding;
    let facts = [
        ("where", finding.place.as_ref()),
        ("found", finding.found.as_ref()),
        ("expected", finding.expected.as_ref()),
        ("help", finding.remedy.as_ref()),
        ("loader", finding.loader.as_ref()),
        ("accepted for", finding.known.as_ref().filter(|reason| !reason.is_empty())),
    ];
    let facts = facts.into_iter().filter_map(|(label, fact)| Some((label, shown(fact?))));
    Item {
        id,
        class: match finding.cell() {
            Cell::Yes => "warning",
            cell => cell.id(),
        },
        mark: match (&finding.known, finding.level, finding.class) {
            (Some(_), ..) => "known",
            (None, Level::Deny, _) => "reason",
            (None, _, Class::Differs) => "differs",
            (None, ..) => "warning",
        },
        rule: &finding.rule,
        releases: group.releases_of(artifact),
        message: shown(&finding.message),
        facts: facts.collect(),
    }
}

/// Returns the finding that determines a cell; for a yes the first warning.
fn decisive(findings: &[Finding], cell: Cell) -> Option<&Finding> {
    let shown = || findings.iter().filter(|finding| finding.is_shown());
    shown().find(|finding| finding.cell() == cell).or_else(|| shown().next())
}

const fn words(cell: Cell) -> &'static str {
    match cell {
        Cell::Yes => "✓ yes",
        Cell::Differs => "≠ differs",
        Cell::No => "✗ no",
        Cell::Unknown => "? unknown",
    }
}

fn joined<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::Tool;

    #[test]
    fn html_policy_names_its_own_style_and_script() {
        for (text, hash) in [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH)] {
            let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
            assert_eq!(format!("sha256-{digest}"), hash);
        }
    }

    #[test]
    fn html_links_each_cell_to_its_finding() {
        let mut artifact = Artifact::new("<script>alert(1)</script>");
        let finding = Finding::new("unknown_op", "\"no\" <X>").of_class(Class::Refusal).at("'n'");
        artifact.add_release("2.12", [finding.clone()]);
        artifact.add_release("2.13", []);
        let id = artifact.answers()[0].findings[0].fingerprint();
        let mut report = Report::new(Tool::new("serdes", "1"));
        report.add(artifact);
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(!page.contains("<script>alert") && !page.contains("<X>"), "{page}");
        for part in [
            format!("<td class=\"no\"><a href=\"#f-{id}\">✗ no</a></td>"),
            "<td class=\"yes\">✓ yes</td>".to_owned(),
            format!("<article id=\"f-{id}\" class=\"no\">"),
            "<th scope=\"col\">2.12</th>".to_owned(),
            "data-verdicts=\"no yes\" data-rules=\"unknown_op\"".to_owned(),
        ] {
            assert!(page.contains(&part), "{part}: {page}");
        }
    }
}
