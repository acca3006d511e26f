//! `serdes versions`: lists every entry of every line, with its age and roles on a day.

use comfy_table::{Table, presets::NOTHING};
use serde_json::json;
use serdes::version::{Date, EntryStatus, LineRecord, ReleaseNumber, StaleRegistry, registry};
use serdes_version_registry::{Declarations, EntryDeclaration, LineDeclaration, Standing, read};

use super::options::{FILE, day};
use crate::{
    arguments::VersionsArguments,
    failure::Failure,
    status::ExitStatus,
    terminal::{FAINT, NAME, Terminal, shown},
};

/// An entry of a line: of this build, or of a versions.toml.
struct Row<'r> {
    line: &'r str,
    window_days: i64,
    release: Option<ReleaseNumber>,
    number: i32,
    introduced: Date,
    summary: &'r str,
    formats: Vec<&'r str>,
    age_days: i64,
    current: bool,
    week_4_old: bool,
    younger_than_window: bool,
    minimum: bool,
    withdrawn: bool,
}

/// Lists the lines of this build, or of the crate in a folder.
pub(super) fn run(
    arguments: &VersionsArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let requested_day = arguments.as_of.as_deref().map(|text| day("--as-of", text)).transpose()?;
    let as_of = match &arguments.directory {
        Some(directory) => {
            let path = directory.join(FILE);
            let declarations = read(&path).map_err(Failure::of)?;
            let as_of = declarations.as_of;
            list_file(&declarations, requested_day.unwrap_or(as_of), terminal)?;
            warn_of_age(&path.display(), as_of, terminal);
            as_of
        }
        None => {
            let as_of = registry().as_of;
            list_this_build(requested_day.unwrap_or(as_of), terminal)?;
            warn_of_age(&"this build's versions.toml", as_of, terminal);
            as_of
        }
    };
    let note = match requested_day {
        Some(day) => format!("ages and marks are those of {day}"),
        None => format!(
            "ages and marks are those of {as_of}, the as_of of versions.toml, and not of today; \
             --as-of DATE counts to another day"
        ),
    };
    terminal.line(format_args!("{FAINT}{note}{FAINT:#}"))?;
    Ok(ExitStatus::Success)
}

/// Returns every entry of every line of this build as a JSON object, with its age and roles on
/// `day`.
pub(crate) fn entries(day: Date) -> Vec<serde_json::Value> {
    let lines = registry().lines.iter();
    let entries_of_line = |line: &LineRecord| {
        let entries = line.on(day);
        entries.iter().map(|entry| Row::of_entry(entry, line).to_json()).collect::<Vec<_>>()
    };
    lines.flat_map(entries_of_line).collect()
}

fn list_this_build(day: Date, terminal: &mut Terminal) -> Result<(), Failure> {
    for line in registry().lines {
        let entries = line.on(day);
        let rows = entries.iter().map(|entry| Row::of_entry(entry, line));
        let title = Title::new(line.name, line.summary, line.window_days, line.release);
        list_line(&title, rows, terminal)?;
    }
    Ok(())
}

fn list_file(
    declarations: &Declarations,
    day: Date,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    for line in &declarations.lines {
        let entries = line.entries.iter().zip(line.on(day));
        let rows = entries.map(|(entry, standing)| Row::of_declaration(line, entry, standing));
        let title = Title::new(&line.name, &line.summary, line.window_days, line.release);
        list_line(&title, rows, terminal)?;
    }
    Ok(())
}

fn warn_of_age(file: &dyn std::fmt::Display, as_of: Date, terminal: &mut Terminal) {
    if let Some(stale) = StaleRegistry::find(as_of, Date::today()) {
        terminal.warning(format_args!("{file}: {stale}"));
    }
}

/// The heading of a line's entries.
struct Title {
    name: String,
    /// The summary, followed by the release if the line has one, and the window if it is not 28
    /// days.
    description: String,
}

impl Title {
    fn new(name: &str, summary: &str, window_days: i64, release: Option<ReleaseNumber>) -> Self {
        let release = release.map(|release| format!("release {release}"));
        let window = (window_days != 28).then(|| format!("window of {window_days} days"));
        let details: Vec<String> = release.into_iter().chain(window).collect();
        let summary = shown(summary);
        let description = match details.is_empty() {
            true => summary.to_string(),
            false => format!("{summary} ({})", details.join(", ")),
        };
        Self { name: shown(name).to_string(), description }
    }
}

/// Prints a line with its entries: a table as text, one object per entry with `--json`.
fn list_line<'r>(
    Title { name, description }: &Title,
    rows: impl Iterator<Item = Row<'r>>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    terminal.line(format_args!("{NAME}{name}{NAME:#}  {FAINT}{description}{FAINT:#}"))?;
    let mut table = Table::new();
    table.load_preset(NOTHING);
    for row in rows {
        if terminal.json() {
            terminal.object(&row.to_json())?;
        } else {
            table.add_row(row.cells());
        }
    }
    for line in table.lines() {
        terminal.line(line.trim_end())?;
    }
    terminal.line("")
}

impl<'r> Row<'r> {
    fn of_entry(entry: &EntryStatus, line: &LineRecord) -> Self {
        Self {
            line: entry.line,
            window_days: line.window_days,
            release: line.release,
            number: entry.number,
            introduced: entry.introduced,
            summary: entry.summary,
            formats: entry.formats.to_vec(),
            age_days: entry.age_days,
            current: entry.current,
            week_4_old: entry.week_4_old,
            younger_than_window: entry.younger_than_window,
            minimum: entry.minimum,
            withdrawn: entry.withdrawn,
        }
    }

    fn of_declaration(
        line: &'r LineDeclaration,
        entry: &'r EntryDeclaration,
        standing: Standing,
    ) -> Self {
        Self {
            line: &line.name,
            window_days: line.window_days,
            release: line.release,
            number: entry.number,
            introduced: entry.introduced,
            summary: &entry.summary,
            formats: entry.formats.iter().map(String::as_str).collect(),
            age_days: standing.age_days,
            current: standing.current,
            week_4_old: standing.week_4_old,
            younger_than_window: standing.younger_than_window,
            minimum: standing.minimum,
            withdrawn: entry.withdrawn,
        }
    }

    /// Returns the cells of the text table.
    fn cells(&self) -> Vec<String> {
        let week_4_old = match self.younger_than_window {
            true => format!("week_4_old (only {} of {} days)", self.age_days, self.window_days),
            false => "week_4_old".to_owned(),
        };
        let flags: Vec<&str> = [
            (self.current, "current"),
            (self.week_4_old, week_4_old.as_str()),
            (self.minimum, "minimum"),
            (self.withdrawn, "withdrawn"),
        ]
        .into_iter()
        .filter_map(|(set, name)| set.then_some(name))
        .collect();
        let age = match self.age_days {
            1 => "1 day".to_owned(),
            -1 => "in 1 day".to_owned(),
            days if days < 0 => format!("in {} days", -days),
            days => format!("{days} days"),
        };
        vec![
            self.number.to_string(),
            self.introduced.to_string(),
            age,
            flags.join(" "),
            shown(self.summary).to_string(),
        ]
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "line": self.line,
            "number": self.number,
            "introduced": self.introduced.to_string(),
            "summary": self.summary,
            "formats": self.formats,
            "age_days": self.age_days,
            "current": self.current,
            "week_4_old": self.week_4_old,
            "minimum": self.minimum,
            "withdrawn": self.withdrawn,
            "younger_than_window": self.younger_than_window,
            "window_days": self.window_days,
            "release": self.release.map(|release| release.to_string()),
        })
    }
}
