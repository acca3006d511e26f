//! `serdes matrix`: the tables of releases that verdicts use, as a page.

use std::{collections::BTreeSet, fmt::Write as _};

use pep440_rs::Version;
use serde_json::{Map, Value};
use serdes_doctor::Releases;
use serdes_operations::Registry;
use serdes_pjrt::{Framework, Gate};

use crate::{
    arguments::{MatrixArguments, MatrixFormat},
    failure::Failure,
    status::ExitStatus,
    terminal::{NAME, Terminal},
};

/// A table: its names in JSON and in text, and those of its columns.
struct Table {
    id: &'static str,
    title: &'static str,
    columns: Vec<(&'static str, &'static str)>,
    rows: Vec<Vec<String>>,
}

/// Prints the tables.
pub(crate) fn run(
    arguments: &MatrixArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let tables = [jaxlib(), tensorflow()?];
    match arguments.format {
        _ if terminal.json() => json(&tables, terminal)?,
        MatrixFormat::Json => {
            terminal.speak_json();
            json(&tables, terminal)?;
        }
        MatrixFormat::Text => text(&tables, terminal)?,
        MatrixFormat::Markdown => terminal.raw(markdown(&tables).as_bytes())?,
        MatrixFormat::Html => terminal.raw(html(&tables).as_bytes())?,
    }
    Ok(ExitStatus::Success)
}

/// Plug-ins of jax that are released with jaxlib's numbers.
const PLUGINS: [(&str, &str); 3] = [
    ("jax-cuda12-plugin", "CUDA 12"),
    ("jax-cuda13-plugin", "CUDA 13"),
    ("jax-rocm7-plugin", "ROCm 7"),
];

fn jaxlib() -> Table {
    let mut columns = vec![
        ("release", "jaxlib"),
        ("pjrt_version", "PJRT"),
        ("takes_plugins", "takes plug-ins"),
        ("stablehlo", "StableHLO"),
        ("writes_stablehlo", "jax.export writes"),
        ("serialization", "reads serialization"),
        ("proxy_protocol", "proxy protocol"),
        ("proxy_serdes", "IFRT SerDes"),
    ];
    columns.extend(PLUGINS);
    let rows = Framework::names().filter_map(|name| Framework::named(&name)).map(|framework| {
        let release = framework.name().trim_start_matches("jaxlib-").to_owned();
        let gate = match framework.gate() {
            Gate::Equal => format!("{} alone", framework.minor()),
            Gate::AtLeast(oldest) => format!("from {oldest} on"),
        };
        let reads = serdes_jax_artifacts::releases().iter().find(|one| one.version == release);
        let stablehlo =
            |of: fn(&serdes_jax_artifacts::Release) -> serdes_jax_artifacts::StableHlo| {
                reads.map(|release| of(release).to_string()).unwrap_or_default()
            };
        let mut row = vec![
            release.clone(),
            framework.minor().to_string(),
            gate,
            stablehlo(|release| release.stablehlo),
            stablehlo(|release| release.week_4),
            reads.map(|release| release.serialization.to_string()).unwrap_or_default(),
        ];
        row.extend(proxy(&release));
        row.extend(PLUGINS.map(|(package, _)| plugin(package, &release)));
        row
    });
    Table {
        id: "jaxlib",
        title: "jaxlib, the plug-ins that it takes, and what it reads",
        columns,
        rows: rows.collect(),
    }
}

/// Returns the versions of the protocol and of IFRT SerDes that a release's proxy client offers.
fn proxy(release: &str) -> [String; 2] {
    let row = serdes_releases::jaxlib().releases.iter().find(|row| row.version == release);
    let Some(client) = row.and_then(|row| row.proxy.as_ref()) else { return Default::default() };
    [client.protocol, client.serdes].map(|range| match range {
        Some([oldest, newest]) if oldest == newest => oldest.to_string(),
        Some([oldest, newest]) => format!("{oldest} to {newest}"),
        None => String::new(),
    })
}

/// Returns the text for a plug-in of a release's number: jaxlib since 0.5.3 ignores one of another
/// number.
fn plugin(package: &str, release: &str) -> String {
    let Ok(version) = release.parse::<Version>() else { return String::new() };
    let is_known = Releases::known().versions(package).any(|known| *known == version);
    if is_known { release.to_owned() } else { String::new() }
}

fn tensorflow() -> Result<Table, Failure> {
    let mut rows = Vec::new();
    let mut before: Option<BTreeSet<String>> = None;
    for release in Registry::releases() {
        let registry = Registry::tensorflow(release).map_err(Failure::new)?;
        let names: BTreeSet<String> =
            registry.operations().map(|operation| operation.name().to_owned()).collect();
        let (mut added, mut removed) = (String::new(), String::new());
        if let Some(before) = &before {
            added = names.difference(before).count().to_string();
            removed = before.difference(&names).count().to_string();
        }
        rows.push(vec![
            release.to_owned(),
            registry.graph_def_version().to_string(),
            names.len().to_string(),
            added,
            removed,
        ]);
        before = Some(names);
    }
    Ok(Table {
        id: "tensorflow",
        title: "TensorFlow and its operations",
        columns: vec![
            ("release", "TensorFlow"),
            ("graph_def", "GraphDef"),
            ("operations", "operations"),
            ("added", "added"),
            ("removed", "removed"),
        ],
        rows,
    })
}

/// Prints one object per row, with the name of its table; unknown values are null.
fn json(tables: &[Table], terminal: &mut Terminal) -> Result<(), Failure> {
    for table in tables {
        for row in &table.rows {
            let mut object = Map::new();
            object.insert("table".to_owned(), table.id.into());
            for ((id, _), cell) in table.columns.iter().zip(row) {
                let cell = if cell.is_empty() { Value::Null } else { cell.as_str().into() };
                object.insert((*id).to_owned(), cell);
            }
            terminal.object(&Value::Object(object))?;
        }
    }
    Ok(())
}

fn text(tables: &[Table], terminal: &mut Terminal) -> Result<(), Failure> {
    for (number, table) in tables.iter().enumerate() {
        if number > 0 {
            terminal.line("")?;
        }
        terminal.line(format_args!("{NAME}{}{NAME:#}\n", table.title))?;
        let mut shown = comfy_table::Table::new();
        shown.load_preset(comfy_table::presets::NOTHING);
        shown.set_header(table.columns.iter().map(|(_, title)| *title));
        shown.add_rows(&table.rows);
        for line in shown.to_string().lines() {
            terminal.line(line.trim_end())?;
        }
    }
    Ok(())
}

fn markdown(tables: &[Table]) -> String {
    let mut page = String::new();
    for table in tables {
        let titles: Vec<&str> = table.columns.iter().map(|(_, title)| *title).collect();
        // Writing to a string does not fail.
        let _ = writeln!(page, "## {}\n\n| {} |", table.title, titles.join(" | "));
        let _ = writeln!(page, "|{}", "---|".repeat(titles.len()));
        for row in &table.rows {
            let _ = writeln!(page, "| {} |", row.join(" | "));
        }
        page.push('\n');
    }
    page
}

fn cells<'c>(tag: &str, cells: impl Iterator<Item = &'c str>) -> String {
    cells.fold(String::new(), |mut row, cell| {
        // Writing to a string does not fail.
        let _ = write!(row, "<{tag}>{cell}</{tag}>");
        row
    })
}

/// Formats a standalone page; the cells come from this build, and need no escaping.
fn html(tables: &[Table]) -> String {
    let mut page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Releases</title></head><body>\n".to_owned();
    for table in tables {
        let head = cells("th", table.columns.iter().map(|(_, title)| *title));
        // Writing to a string does not fail.
        let _ = writeln!(page, "<h2>{}</h2>\n<table><tr>{head}</tr>", table.title);
        for row in &table.rows {
            let _ = writeln!(page, "<tr>{}</tr>", cells("td", row.iter().map(String::as_str)));
        }
        page.push_str("</table>\n");
    }
    page.push_str("</body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_program() {
        let jaxlib = jaxlib();
        assert_eq!(jaxlib.rows.len(), Framework::names().count());
        assert!(jaxlib.rows.iter().all(|row| row.len() == jaxlib.columns.len()));
        let row = jaxlib.rows.iter().find(|row| row[0] == "0.9.1").unwrap();
        assert_eq!(row[1..4], ["0.96", "from 0.29 on", "1.13.8"]);
        assert_eq!(row[8], "0.9.1");
        let row = jaxlib.rows.iter().find(|row| row[0] == "0.8.0").unwrap();
        assert_eq!(row[6..8], ["15 to 19", "0"]);
        assert_eq!(tensorflow().unwrap().rows.len(), Registry::releases().count());
    }

    #[test]
    fn pages_have_a_line_a_release() {
        let tables = [jaxlib()];
        let rows = tables[0].rows.len();
        assert_eq!(
            markdown(&tables).lines().filter(|line| line.starts_with("| ")).count(),
            rows + 1
        );
        assert_eq!(html(&tables).matches("<tr>").count(), rows + 1);
    }
}
