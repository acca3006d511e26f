//! Every entry of every line as it stands on a day.

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
    let asked = arguments.as_of.as_deref().map(|text| day("--as-of", text)).transpose()?;
    let as_of = match &arguments.directory {
        Some(directory) => {
            let path = directory.join(FILE);
            let declarations = read(&path).map_err(Failure::of)?;
            let as_of = declarations.as_of;
            of_file(&declarations, asked.unwrap_or(as_of), terminal)?;
            warn_of_age(&path.display(), as_of, terminal);
            as_of
        }
        None => {
            let as_of = registry().as_of;
            of_this_build(asked.unwrap_or(as_of), terminal)?;
            warn_of_age(&"this build's versions.toml", as_of, terminal);
            as_of
        }
    };
    let counted = match asked {
        Some(day) => format!("ages and marks are those of {day}"),
        None => format!(
            "ages and marks are those of {as_of}, the as_of of versions.toml, and not of today; \
             --as-of DATE counts to another day"
        ),
    };
    terminal.line(format_args!("{FAINT}{counted}{FAINT:#}"))?;
    Ok(ExitStatus::Success)
}

/// Every entry of every line of this build, as it stands on a day.
pub(crate) fn entries(on: Date) -> Vec<serde_json::Value> {
    let lines = registry().lines.iter();
    let of_line = |line: &LineRecord| {
        let rows = line.on(on);
        rows.iter().map(|entry| object(&of_entry(entry, line))).collect::<Vec<_>>()
    };
    lines.flat_map(of_line).collect()
}

fn of_this_build(on: Date, terminal: &mut Terminal) -> Result<(), Failure> {
    for line in registry().lines {
        let rows = line.on(on);
        let rows = rows.iter().map(|entry| of_entry(entry, line));
        let title = Title::new(line.name, line.summary, line.window_days, line.release);
        lines(&title, rows, terminal)?;
    }
    Ok(())
}

fn of_file(declarations: &Declarations, on: Date, terminal: &mut Terminal) -> Result<(), Failure> {
    for line in &declarations.lines {
        let rows = line.entries.iter().zip(line.on(on));
        let rows = rows.map(|(entry, standing)| of_declaration(line, entry, standing));
        let title = Title::new(&line.name, &line.summary, line.window_days, line.release);
        lines(&title, rows, terminal)?;
    }
    Ok(())
}

fn warn_of_age(file: &dyn std::fmt::Display, as_of: Date, terminal: &mut Terminal) {
    if let Some(stale) = StaleRegistry::find(as_of, Date::today()) {
        terminal.warning(format_args!("{file}: {stale}"));
    }
}

/// The row above the entries of a line.
struct Title {
    name: String,
    /// The summary, then the release and the window where they are said.
    rest: String,
}

impl Title {
    fn new(name: &str, summary: &str, window_days: i64, release: Option<ReleaseNumber>) -> Self {
        let release = release.map(|release| format!("release {release}"));
        let window = (window_days != 28).then(|| format!("window of {window_days} days"));
        let said: Vec<String> = release.into_iter().chain(window).collect();
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
        Self { name: shown(name).to_string(), rest: format!("{}{said}", shown(summary)) }
    }
}

/// One line with its entries.
fn lines<'r>(
    Title { name, rest }: &Title,
    rows: impl Iterator<Item = Row<'r>>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    terminal.line(format_args!("{NAME}{name}{NAME:#}  {FAINT}{rest}{FAINT:#}"))?;
    let mut table = Table::new();
    table.load_preset(NOTHING);
    for row in rows {
        if terminal.json() {
            terminal.object(&object(&row))?;
        } else {
            table.add_row(cells(&row));
        }
    }
    for line in table.lines() {
        terminal.line(line.trim_end())?;
    }
    terminal.line("")
}

fn of_entry<'r>(entry: &EntryStatus, line: &LineRecord) -> Row<'r> {
    Row {
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

fn of_declaration<'r>(
    line: &'r LineDeclaration,
    entry: &'r EntryDeclaration,
    standing: Standing,
) -> Row<'r> {
    Row {
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

fn cells(row: &Row<'_>) -> Vec<String> {
    let week_4_old = match row.younger_than_window {
        true => format!("week_4_old (only {} of {} days)", row.age_days, row.window_days),
        false => "week_4_old".to_owned(),
    };
    let flags: Vec<&str> = [
        (row.current, "current"),
        (row.week_4_old, week_4_old.as_str()),
        (row.minimum, "minimum"),
        (row.withdrawn, "withdrawn"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect();
    let age = match row.age_days {
        1 => "1 day".to_owned(),
        -1 => "in 1 day".to_owned(),
        days if days < 0 => format!("in {} days", -days),
        days => format!("{days} days"),
    };
    vec![
        row.number.to_string(),
        row.introduced.to_string(),
        age,
        flags.join(" "),
        shown(row.summary).to_string(),
    ]
}

fn object(row: &Row<'_>) -> serde_json::Value {
    json!({
        "line": row.line,
        "number": row.number,
        "introduced": row.introduced.to_string(),
        "summary": row.summary,
        "formats": row.formats,
        "age_days": row.age_days,
        "current": row.current,
        "week_4_old": row.week_4_old,
        "minimum": row.minimum,
        "withdrawn": row.withdrawn,
        "younger_than_window": row.younger_than_window,
        "window_days": row.window_days,
        "release": row.release.map(|release| release.to_string()),
    })
}
