//! Markdown for a comment on a pull request, as GitHub and GitLab show it.

use std::{
    fmt,
    io::{self, Write},
};

use askama::Template;

use crate::{
    Artifact, Cell, Level, Report,
    grouped::{Group, groups},
    names::{count, shortened, shown},
    summary::Table,
};

/// Maximum length of a comment in characters; GitHub accepts 65,536.
const LONGEST: usize = 60_000;

/// Writes the comment: as many rows and findings as fit, counted ones first.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = 200;
    loop {
        let text = Page::of(report, rows).render().map_err(io::Error::other)?;
        if text.len() <= LONGEST || rows == 0 {
            return out.write_all(shortened(&text, LONGEST).as_bytes());
        }
        rows /= 2;
    }
}

#[derive(Template)]
#[template(path = "report.md", escape = "none")]
struct Page {
    title: Words,
    sentences: Vec<Words>,
    tables: Vec<Rows>,
    count: Words,
    findings: Vec<Item>,
    left_out: usize,
}

struct Rows {
    releases: Vec<Words>,
    rows: Vec<Row>,
    left_out: usize,
}

struct Row {
    path: Code,
    cells: Vec<&'static str>,
}

struct Item {
    mark: &'static str,
    rule: Words,
    path: Code,
    releases: Option<Words>,
    message: Words,
    facts: Vec<(&'static str, Fact)>,
}

impl Page {
    fn of(report: &Report, most: usize) -> Self {
        let all: Vec<(&Artifact, Group<'_>)> = report
            .artifacts()
            .iter()
            .flat_map(|artifact| groups(artifact).into_iter().map(move |group| (artifact, group)))
            .collect();
        let number = all.len();
        let mut findings: Vec<Item> = Vec::new();
        for rank in 0..3 {
            let ranked = all.iter().filter(|(_, group)| weight(group).0 == rank);
            let room = most.saturating_sub(findings.len());
            findings.extend(ranked.take(room).map(|(artifact, group)| item(artifact, group)));
        }
        let sentences = report.sentences();
        Self {
            title: Words::new(&report.tool().name),
            sentences: sentences.iter().chain(report.notes()).map(|one| Words::new(one)).collect(),
            tables: report.tables().iter().map(|table| rows(table, most)).collect(),
            count: Words::new(&count(number, "finding")),
            left_out: number - findings.len(),
            findings,
        }
    }
}

/// Returns the rows of a table; if not all fit, those that every release accepts come last.
fn rows(table: &Table<'_>, most: usize) -> Rows {
    let number = table.artifacts.len();
    let is_good = |artifact: &Artifact| number > most && artifact.worst() == Cell::Yes;
    let bad = table.artifacts.iter().filter(|artifact| !is_good(artifact));
    let chosen = bad.chain(table.artifacts.iter().filter(|artifact| is_good(artifact)));
    let rows: Vec<Row> = chosen
        .take(most)
        .map(|artifact| Row {
            path: Code::new(artifact.path()),
            cells: artifact.answers().iter().map(|answer| word(answer.cell)).collect(),
        })
        .collect();
    let release = |name: &&str| Words::new(if name.is_empty() { "loads" } else { name });
    Rows {
        releases: table.releases.iter().map(release).collect(),
        left_out: number - rows.len(),
        rows,
    }
}

const fn word(cell: Cell) -> &'static str {
    match cell {
        Cell::Yes => "✅ yes",
        Cell::Differs => "⚠️ differs",
        Cell::No => "❌ no",
        Cell::Unknown => "❔ unknown",
    }
}

fn item(artifact: &Artifact, group: &Group<'_>) -> Item {
    let finding = group.finding;
    let releases = group.releases_of(artifact);
    let code = |text: &String| Fact::Code(Code::new(text));
    let words = |text: &String| Fact::Words(Words::new(text));
    let reason = finding.known.as_ref().filter(|reason| !reason.is_empty());
    let facts = [
        ("at", finding.place.as_ref().map(code)),
        ("found", finding.found.as_ref().map(code)),
        ("expected", finding.expected.as_ref().map(code)),
        ("help", finding.remedy.as_ref().map(words)),
        ("accepted for", reason.map(words)),
    ];
    Item {
        mark: weight(group).1,
        rule: Words::new(&finding.rule),
        path: Code::new(artifact.path()),
        releases: (!releases.is_empty()).then(|| Words::new(&releases)),
        message: Words::new(&finding.message),
        facts: facts.into_iter().filter_map(|(label, fact)| Some((label, fact?))).collect(),
    }
}

/// Returns the rank of a finding among others, and its mark.
fn weight(group: &Group<'_>) -> (usize, &'static str) {
    match (&group.finding.known, group.finding.level) {
        (None, Level::Deny) => (0, "❌"),
        (None, _) => (1, "⚠️"),
        (Some(_), _) => (2, "☑️ known:"),
    }
}

/// Maximum length of a text in a comment, in characters.
const LONGEST_TEXT: usize = 500;

/// Escapes text: no markup, mentions of users or links to issues.
struct Words(String);

impl Words {
    fn new(text: &str) -> Self {
        Self(shown(&shortened(text, LONGEST_TEXT)).into_owned())
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                // An empty HTML comment keeps GitHub from recognizing the reference.
                '@' | '#' => write!(f, "\\{c}<!-- -->")?,
                // Escape only where needed: a version stays readable in the source.
                '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '!' | '|' | '~' | '$' | '^'
                | ':' | '=' | '+' => {
                    write!(f, "\\{c}")?;
                }
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// Formats text as code. Backticks cannot be escaped there, so the fence is a longer run of them.
struct Code(String);

impl Code {
    fn new(text: &str) -> Self {
        Self(shown(&shortened(text, LONGEST_TEXT)).into_owned())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.0.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest + 1);
        // In a table a bar ends the cell, even in code.
        let text = self.0.replace('|', "\\|");
        let space =
            if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
        write!(f, "{fence}{space}{text}{space}{fence}")
    }
}

enum Fact {
    Words(Words),
    Code(Code),
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => words.fmt(f),
            Self::Code(code) => code.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Finding, Tool};

    #[test]
    fn markdown_has_no_markup_of_a_name() {
        for (text, shown) in [
            ("<b>@you</b> [a](b) #1", r"&lt;b&gt;\@<!-- -->you&lt;/b&gt; \[a\](b) \#<!-- -->1"),
            ("https://x a|b\n", r"https\://x a\|b\\n"),
            ("2.12 to 2.16", "2.12 to 2.16"),
        ] {
            assert_eq!(Words::new(text).to_string(), shown);
        }
        for (text, shown) in [("a|b", r"`a\|b`"), ("`a``b", "``` `a``b ```"), ("", "`  `")] {
            assert_eq!(Code::new(text).to_string(), shown);
        }
    }

    #[test]
    fn markdown_is_a_comment_that_github_takes() {
        let mut report = Report::new(Tool::new("serdes", "1"));
        for number in 0..3_000 {
            let mut artifact = Artifact::new(format!("models/{number}/{}", "x|".repeat(300)));
            let finding = Finding::new("unknown_op", "m".repeat(400)).of_class(Class::Refusal);
            artifact.add_release("2.12", (number % 2 == 0).then_some(finding));
            artifact.add_release("2.13", []);
            report.add(artifact);
        }
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        assert!(out.len() <= 65_536, "{}", out.len());
        let text = String::from_utf8(out).unwrap();
        for line in [
            "### serdes\n",
            "| Artifact | 2.12 | 2.13 |\n| :-- | :-: | :-: |\n",
            "❌ no",
            "</details>",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
