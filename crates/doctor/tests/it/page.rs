//! Compares the page of the rules, `docs/doctor.md`, with the rules.

use std::{fs, path::Path};

use serdes_doctor::{Rule, WarningRule};

#[test]
fn page_has_every_rule_in_its_words() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = fs::read_to_string(page).unwrap();
    let row = |id: &str, meaning: &str, example: &str, remedy: &str| {
        format!("| `{id}` | {meaning} | {example} | {remedy} |")
    };
    let problems =
        Rule::ALL.iter().map(|rule| row(rule.id(), rule.meaning(), rule.example(), rule.remedy()));
    let warnings = WarningRule::ALL
        .iter()
        .map(|rule| row(rule.id(), rule.meaning(), rule.example(), rule.remedy()));
    let expected: Vec<String> = problems.chain(warnings).collect();
    let found: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let found: Vec<&str> =
        found.into_iter().filter(|line| line.matches(" | ").count() == 3).collect();
    assert_eq!(found, expected, "docs/doctor.md is to have these rows");
}
