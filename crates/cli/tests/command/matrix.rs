//! Tests of `serdes matrix`: the tables of releases.

use crate::testkit::{objects, serdes, status};

fn text(arguments: &[&str]) -> String {
    let output = serdes(arguments);
    assert_eq!(status(&output), 0, "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn matrix_has_the_releases_that_verdicts_know() {
    let rows = objects(&serdes(&["matrix", "--json"]));
    let of = |table: &str, release: &str| {
        let mut rows = rows.iter().filter(|row| row["table"] == table && row["release"] == release);
        let row = rows.next().unwrap_or_else(|| panic!("{table} {release}"));
        assert!(rows.next().is_none(), "{table} {release} twice");
        row.clone()
    };
    let jaxlib = of("jaxlib", "0.10.2");
    for column in [
        "pjrt_version",
        "takes_plugins",
        "stablehlo",
        "serialization",
        "proxy_protocol",
        "proxy_serdes",
    ] {
        assert!(jaxlib[column].is_string(), "{column} of {jaxlib}");
    }
    assert_eq!(jaxlib["jax-cuda12-plugin"], "0.10.2");
    let tensorflow = of("tensorflow", "2.21");
    assert_eq!(tensorflow["graph_def"], "2474");
    let operations = objects(&serdes(&["ops", "2.21", "--json"]));
    assert_eq!(tensorflow["operations"], operations.len().to_string());
}

#[test]
fn every_form_of_the_matrix_has_all_rows() {
    let rows = objects(&serdes(&["matrix", "--json"])).len();
    let markdown = text(&["matrix", "--format", "markdown"]);
    // Each table has two lines of header.
    let tables = markdown.lines().filter(|line| line.starts_with("|---")).count();
    let lines = markdown.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(lines, rows + 2 * tables);
    let html = text(&["matrix", "--format", "html"]);
    assert_eq!(html.matches("<tr><td>").count(), rows);
    let plain = text(&["matrix"]);
    for row in objects(&serdes(&["matrix", "--json"])) {
        assert!(plain.contains(row["release"].as_str().unwrap()), "{row}");
    }
}
