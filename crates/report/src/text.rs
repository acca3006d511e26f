//! The report as text: tables that fit a width, followed by the reasons and the summary.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;

use crate::{Answer, Artifact, Cell, Class, Finding, Level, Report, names::shown, summary::Table};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const ODD: Style = AnsiColor::Magenta.on_default().bold();
const NAME: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// Widths and colours of a text report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// Columns of a table.
    pub table: usize,
    /// Columns of a line; `None` for unwrapped lines, which are easier to search.
    pub line: Option<usize>,
    /// True if the text has colours, as escape sequences.
    pub has_colours: bool,
}

impl TextOptions {
    /// Creates options for a terminal with this number of columns.
    #[must_use]
    pub const fn terminal(columns: usize) -> Self {
        Self { table: columns, line: Some(columns), has_colours: true }
    }

    /// Creates options for a file: tables of 80 columns, unwrapped lines, no colours.
    #[must_use]
    pub const fn file() -> Self {
        Self { table: 80, line: None, has_colours: false }
    }
}

/// Writes the report; a single artifact with a single release has no table.
pub(crate) fn write(report: &Report, options: TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let tables = report.tables();
    let mut text = Text { options, out };
    for table in &tables {
        if table.releases.len() > 1 || table.artifacts.len() > 1 {
            text.table(table)?;
        }
    }
    for artifact in report.artifacts().iter().filter(|artifact| says_anything(artifact)) {
        text.reasons(artifact)?;
        writeln!(text.out)?;
    }
    for sentence in report.sentences().iter().chain(report.notes()) {
        text.line("", "", sentence)?;
    }
    Ok(())
}

/// Returns true unless every release accepts the artifact without findings.
fn says_anything(artifact: &Artifact) -> bool {
    artifact.worst() != Cell::Yes || artifact.findings().any(Finding::is_shown)
}

/// Writes the releases' answers on one artifact.
pub(crate) fn write_artifact(
    artifact: &Artifact,
    options: TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    Text { options, out }.reasons(artifact)
}

struct Text<'o> {
    options: TextOptions,
    out: &'o mut dyn Write,
}

impl Text<'_> {
    /// Writes an indented line, wrapped at words; `label` is its beginning and may have a colour.
    fn line(&mut self, indent: &str, label: &str, words: &str) -> io::Result<()> {
        let label = if self.options.has_colours { label.to_owned() } else { plain(label) };
        let words = shown(words);
        let Some(width) = self.options.line else {
            return writeln!(self.out, "{indent}{label}{words}");
        };
        // Escape sequences do not count for the width of a label.
        let used = indent.len() + plain(&label).width();
        let hanging = format!("{indent}    ");
        let blank = " ".repeat(used);
        let wrapping = Options::new(width.max(20))
            .word_splitter(WordSplitter::NoHyphenation)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .initial_indent(&blank)
            .subsequent_indent(&hanging);
        for (number, line) in textwrap::wrap(&words, wrapping).iter().enumerate() {
            match line.get(used..).filter(|_| number == 0) {
                Some(rest) => writeln!(self.out, "{indent}{label}{rest}")?,
                None => writeln!(self.out, "{line}")?,
            }
        }
        Ok(())
    }

    /// Writes text in a colour.
    fn styled(&mut self, style: Style, words: &str) -> io::Result<()> {
        if self.options.has_colours {
            return write!(self.out, "{style}{words}{style:#}");
        }
        write!(self.out, "{words}")
    }

    /// Writes the table of artifacts and releases, in several parts if the releases do not fit.
    fn table(&mut self, table: &Table<'_>) -> io::Result<()> {
        let layout = Layout::of(table, self.options.table);
        let numbers: Vec<usize> = (0..table.releases.len()).collect();
        for piece in numbers.chunks(layout.columns) {
            write!(self.out, "{:1$}", "", layout.name)?;
            for number in piece {
                let release = table.releases.get(*number).copied().unwrap_or_default();
                write!(self.out, "{:gap$}", "", gap = layout.gap)?;
                let padded = format!("{:>1$}", shown(release), layout.cell);
                self.styled(NAME, &padded)?;
            }
            writeln!(self.out)?;
            for artifact in &table.artifacts {
                self.row(artifact, piece, &layout)?;
            }
            writeln!(self.out)?;
        }
        if layout.is_short {
            let words = "differs, the release takes it and computes something else";
            self.line("", "diff: ", words)?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn row(&mut self, artifact: &Artifact, piece: &[usize], layout: &Layout) -> io::Result<()> {
        let path = shown(artifact.path());
        let width = path.width();
        if width <= layout.name {
            write!(self.out, "{path}{:1$}", "", layout.name - width)?;
        } else {
            for line in lines_of_path(&path, self.options.table) {
                writeln!(self.out, "{line}")?;
            }
            write!(self.out, "{:1$}", "", layout.name)?;
        }
        for number in piece {
            let answer = artifact.answers().get(*number);
            let (style, word) = answer.map_or((FAINT, ""), |answer| layout.word(answer.cell));
            write!(self.out, "{:gap$}{:2$}", "", "", layout.cell - word.len(), gap = layout.gap)?;
            self.styled(style, word)?;
        }
        writeln!(self.out)
    }

    /// Writes a path with its kind.
    fn title(&mut self, artifact: &Artifact) -> io::Result<()> {
        let kind = artifact.kind().map(|kind| format!(" ({kind})")).unwrap_or_default();
        let width = self.options.line.unwrap_or(usize::MAX);
        let lines = lines_of_path(&shown(artifact.path()), width);
        let used = lines.last().map(|line| line.width()).unwrap_or_default();
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                writeln!(self.out)?;
            }
            self.styled(NAME, line)?;
        }
        if used.saturating_add(kind.width()) > width {
            writeln!(self.out)?;
        }
        self.styled(FAINT, &kind)
    }

    /// Writes the releases' answers on an artifact; equal ones are combined.
    fn reasons(&mut self, artifact: &Artifact) -> io::Result<()> {
        self.title(artifact)?;
        if let [answer] = artifact.answers() {
            write!(self.out, ": ")?;
            return self.answer(answer, "  ");
        }
        writeln!(self.out)?;
        for alike in artifact.answers().chunk_by(are_alike) {
            let (Some(first), Some(last)) = (alike.first(), alike.last()) else { continue };
            let range = match (first.release.as_deref(), last.release.as_deref()) {
                (Some(one), Some(other)) if alike.len() > 1 => format!("{one} to {other}: "),
                (Some(one), _) => format!("{one}: "),
                _ => String::new(),
            };
            write!(self.out, "  {}", shown(&range))?;
            self.answer(first, "    ")?;
        }
        Ok(())
    }

    /// Writes an answer as text, and its findings indented.
    fn answer(&mut self, answer: &Answer, indent: &str) -> io::Result<()> {
        let (style, word) = cell_label(answer.cell);
        self.styled(style, word)?;
        writeln!(self.out)?;
        let mut shown = answer.findings.iter().filter(|finding| finding.is_shown());
        shown.try_for_each(|finding| self.finding(finding, indent))
    }

    fn finding(&mut self, finding: &Finding, indent: &str) -> io::Result<()> {
        let (style, word) = match (&finding.known, finding.level) {
            (Some(_), _) => (FAINT, "known"),
            (None, Level::Deny) => (BAD, "reason"),
            (None, _) => (WARN, "warning"),
        };
        let at = finding.place.as_ref().map(|place| format!(" (at {})", shown(place)));
        let words =
            format!("{}: {}{}", finding.rule, shown(&finding.message), at.unwrap_or_default());
        self.line(indent, &format!("{style}{word}{style:#}: "), &words)?;
        let reason = finding.known.as_deref().filter(|reason| !reason.is_empty());
        for (style, label, fact) in [
            (FAINT, "found", finding.found.as_deref()),
            (FAINT, "expected", finding.expected.as_deref()),
            (GOOD, "help", finding.remedy.as_deref()),
            (FAINT, "accepted for", reason),
        ] {
            if let Some(fact) = fact {
                let label = format!("{style}{label}{style:#}: ");
                self.line(&format!("{indent}  "), &label, fact)?;
            }
        }
        Ok(())
    }
}

/// Removes the escape sequences of colours from a label, which has no others.
fn plain(label: &str) -> String {
    let mut plain = String::with_capacity(label.len());
    let mut is_sequence = false;
    for c in label.chars() {
        match c {
            '\u{1b}' => is_sequence = true,
            'm' if is_sequence => is_sequence = false,
            c if !is_sequence => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Returns true if the answers of two releases on an artifact are equal, apart from the releases'
/// names.
fn are_alike(one: &Answer, other: &Answer) -> bool {
    let same = |one: &Finding, other: &Finding| {
        one.rule == other.rule
            && one.place == other.place
            && one.level == other.level
            && one.known == other.known
            && (one.found == other.found || one.class == Class::Warning)
    };
    one.cell == other.cell
        && one.findings.len() == other.findings.len()
        && one.findings.iter().zip(&other.findings).all(|(one, other)| same(one, other))
}

const fn cell_label(cell: Cell) -> (Style, &'static str) {
    match cell {
        Cell::Yes => (GOOD, "acceptable"),
        Cell::Differs => (WARN, "differs"),
        Cell::No => (BAD, "unacceptable"),
        Cell::Unknown => (ODD, "unreadable"),
    }
}

/// Column widths of a table.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Width of the first column; a longer path has a line of its own.
    name: usize,
    /// Width of a cell, including the gap before it.
    cell: usize,
    gap: usize,
    /// Number of releases beside one another.
    columns: usize,
    /// True if the word for `differs` is a short one.
    is_short: bool,
}

/// Minimum width of the column of paths: a shorter path is padded.
const NARROWEST: usize = 12;

impl Layout {
    fn of(table: &Table<'_>, width: usize) -> Self {
        let answers = table.artifacts.iter().flat_map(|artifact| artifact.answers());
        let differs = answers.clone().any(|answer| answer.cell == Cell::Differs);
        let release =
            table.releases.iter().map(|release| shown(release).width()).max().unwrap_or(0);
        let longest = table.artifacts.iter().map(|one| shown(one.path()).width()).max();
        let longest = longest.unwrap_or(0);
        let count = table.releases.len().max(1);
        let fit = |name: usize, cell: usize, gap: usize| name + count * (cell + gap) <= width;
        let full = release.max(if differs { 7 } else { 3 });
        let short = release.max(if differs { 4 } else { 3 });
        for (cell, gap) in [(full, 2), (full, 1), (short, 2), (short, 1)] {
            if fit(longest, cell, gap) {
                let is_short = differs && cell < 7;
                return Self { name: longest, cell, gap, columns: count, is_short };
            }
        }
        let (cell, gap) = if fit(NARROWEST, short, 2) { (short, 2) } else { (short, 1) };
        let name = width.saturating_sub(count * (cell + gap)).max(NARROWEST).min(longest);
        let columns = (width.saturating_sub(name) / (cell + gap)).max(1);
        Self { name, cell, gap, columns, is_short: differs && cell < 7 }
    }

    fn word(&self, cell: Cell) -> (Style, &'static str) {
        match cell {
            Cell::Yes => (GOOD, "yes"),
            Cell::Differs if self.is_short => (WARN, "diff"),
            Cell::Differs => (WARN, "differs"),
            Cell::No => (BAD, "no"),
            Cell::Unknown => (ODD, "?"),
        }
    }
}

/// Splits a path into lines of a width, after slashes if possible.
fn lines_of_path(path: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for part in path.split_inclusive('/') {
        if used > 0 && used + part.width() > width {
            lines.push(String::new());
            used = 0;
        }
        for c in part.chars() {
            let one = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
            if used + one > width.max(2) {
                lines.push(String::new());
                used = 0;
            }
            used += one;
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;

    fn report(paths: &[&str], releases: usize) -> Report {
        let mut report = Report::new(Tool::new("t", "1"));
        for path in paths {
            let mut artifact = Artifact::new(*path).of_kind("saved_model");
            for number in 0..releases {
                let finding = match number {
                    0 => Some(
                        Finding::new("unknown_op", "there is no such operation in this release")
                            .of_class(Class::Refusal)
                            .at("a/node")
                            .with_values(Some("X".into()), Some("an operation".into()))
                            .with_remedy("load it with a newer one"),
                    ),
                    1 => Some(Finding::new("attribute_dropped", "m").of_class(Class::Differs)),
                    _ => None,
                };
                artifact.add_release(format!("2.{}", 12 + number), finding);
            }
            report.add(artifact);
        }
        report
    }

    fn text(report: &Report, options: TextOptions) -> String {
        let mut out = Vec::new();
        write(report, options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const PATHS: [&str; 3] = [
        "m",
        "exported/models/a-really-long-team-name/and-a-model/1/saved_model.pb",
        "exported/models/a-really-long-team-name/and-a-model/with-a-name-that-is-longer-than-one-line/1",
    ];

    #[test]
    fn text_fits_the_width_and_breaks_no_word() {
        for (width, releases) in [(80, 10), (80, 30), (60, 10), (120, 10), (40, 3)] {
            let shown = text(&report(&PATHS, releases), TextOptions::terminal(width));
            let words: Vec<&str> = shown.split_whitespace().collect();
            for line in plain(&shown).lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
            for word in ["2.12", "operation", "release", "newer"] {
                assert!(words.iter().any(|shown| plain(shown).contains(word)), "{word}: {shown}");
            }
        }
    }

    #[test]
    fn text_of_a_file_has_no_colours_and_a_line_a_fact() {
        let shown = text(&report(&PATHS, 10), TextOptions::file());
        assert!(!shown.contains('\u{1b}'));
        for line in [
            "  2.12: unacceptable\n    reason: unknown_op: there is no such operation in this release (at a/node)\n",
            "      found: X\n      expected: an operation\n      help: load it with a newer one\n",
            "  2.14 to 2.21: acceptable\n",
            "diff: differs",
            "3 of 3 fail in at least one release",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    #[test]
    fn text_has_a_row_an_artifact_where_it_fits() {
        let shown = text(&report(&["m", "n"], 3), TextOptions::file());
        let rows: Vec<Vec<&str>> =
            shown.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [
                &["2.12", "2.13", "2.14"][..],
                &["m", "no", "differs", "yes"],
                &["n", "no", "differs", "yes"]
            ]
        );
    }
}
