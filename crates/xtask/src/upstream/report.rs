//! The report in Markdown: changes, and decisions for a person.

use std::fmt::Write as _;

use serdes_releases::JaxlibRelease;

/// Maximum number of a row's characters in the report.
const SHOWN: usize = 160;

/// A report about one release.
#[derive(Debug)]
pub(super) struct Report {
    release: String,
    moved: Vec<(String, String)>,
    files: Vec<String>,
    decisions: Vec<(String, String)>,
    proposals: Vec<String>,
    interop: Vec<(String, Option<bool>)>,
}

impl Report {
    pub(super) fn new(package: &str, version: &str) -> Self {
        Self {
            release: format!("{package} {version}"),
            moved: Vec::new(),
            files: Vec::new(),
            decisions: Vec::new(),
            proposals: Vec::new(),
            interop: Vec::new(),
        }
    }

    /// Records a written file.
    pub(super) fn file(&mut self, name: &str) {
        self.files.push(name.to_owned());
    }

    /// Records new rows, with their files.
    pub(super) fn moved(&mut self, rows: Vec<(String, String)>) {
        self.moved = rows;
    }

    /// Records a decision for a person, and the file to edit.
    pub(super) fn decide(&mut self, what: &str, file: &str) {
        self.decisions.push((what.to_owned(), file.to_owned()));
    }

    /// Records an entry for `versions.toml`.
    pub(super) fn propose(&mut self, entry: &str) {
        self.proposals.push(entry.to_owned());
    }

    /// Records a command of the interop suite; `passed` is its result if it was run.
    pub(super) fn interop(&mut self, command: &str, passed: Option<bool>) {
        self.interop.push((command.to_owned(), passed));
    }

    /// Returns false if a check against the release failed.
    pub(super) fn is_good(&self) -> bool {
        self.interop.iter().all(|(_, passed)| *passed != Some(false))
    }

    /// Compares a jaxlib with the previous release: changes that affect code need a decision.
    pub(super) fn compare(
        &mut self,
        before: Option<&JaxlibRelease>,
        now: &JaxlibRelease,
        newest_layout: u32,
    ) {
        if now.pjrt > newest_layout {
            self.decide(
                &format!("PJRT 0.{} is newer than the layouts: read its header", now.pjrt),
                "crates/abi/pjrt.json, then `cargo xtask pjrt`",
            );
        }
        let Some(before) = before else { return };
        if now.stablehlo != before.stablehlo {
            let what = format!(
                "StableHLO {} in place of {}: operations, attributes and types that are new",
                now.stablehlo, before.stablehlo
            );
            self.decide(
                &what,
                "crates/mlir-bytecode/src/vhlo.rs, crates/stablehlo/src/catalogue.rs",
            );
        }
        if let (Some(old), Some(new)) = (&before.exports, &now.exports) {
            let behaviours = [
                ("serialization", old.serialization != new.serialization),
                ("written serialization", old.writes_serialization != new.writes_serialization),
                ("calling convention", old.calling_convention != new.calling_convention),
                ("deserializer", old.deserializer != new.deserializer),
                ("element types", old.last_dtype != new.last_dtype),
            ];
            for (name, _) in behaviours.iter().filter(|(_, moved)| *moved) {
                let what = format!("jax.export has another {name}");
                self.decide(&what, "crates/jax-artifacts/src/exported, src/release/row.rs");
            }
        }
        let (Some(old), Some(new)) = (&before.proxy, &now.proxy) else { return };
        for (line, old, new) in
            [("ifrt_proxy", old.protocol, new.protocol), ("ifrt_serdes", old.serdes, new.serdes)]
        {
            let (Some([_, old]), Some([_, new])) = (old, new) else { continue };
            for number in old.saturating_add(1)..=new {
                self.decide(
                    &format!("a new wire format: {line} {number}"),
                    "versions.toml, docs/evolving.md",
                );
                let day = now.exports.as_ref().map_or("", |one| one.day.as_str());
                self.propose(&format!(
                    "# of the line {line}\n[[line.entry]]\nnumber = {number}\nintroduced = {day}\nsummary = \"\"\nreleased_in = \"jaxlib {}\"\n",
                    now.version
                ));
            }
        }
    }

    /// Returns the report's text.
    pub(super) fn text(&self) -> String {
        let mut text = format!("# {}\n\n## What moved\n\n", self.release);
        for (file, row) in &self.moved {
            let shown: String = row.chars().take(SHOWN).collect();
            let more = if shown.len() < row.len() { "…" } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(text, "- `{file}`: `{shown}{more}`");
        }
        for file in &self.files {
            let _ = writeln!(text, "- `{file}`");
        }
        if self.moved.is_empty() && self.files.is_empty() {
            text.push_str("Nothing: the tables have this release as it is.\n");
        }
        text.push_str("\n## To decide\n\n");
        for (what, file) in &self.decisions {
            let _ = writeln!(text, "- {what}: {file}");
        }
        if self.decisions.is_empty() {
            text.push_str("Nothing.\n");
        }
        for entry in &self.proposals {
            let _ = write!(text, "\nProposed for `versions.toml`:\n\n```toml\n{entry}```\n");
        }
        if !self.interop.is_empty() {
            text.push_str("\n## Against the release itself\n\n");
        }
        for (command, passed) in &self.interop {
            let word = match passed {
                Some(true) => "passed",
                Some(false) => "FAILED",
                None => "not run",
            };
            let _ = writeln!(text, "- {word}: `{command}`");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lists_what_code_follows() {
        let releases = &serdes_releases::jaxlib().releases;
        let at = |version: &str| releases.iter().find(|one| one.version == version).unwrap();
        let mut report = Report::new("jaxlib", "0.12.0");
        report.compare(Some(at("0.11.2")), at("0.12.0"), 115);
        let text = report.text();
        for words in ["PJRT 0.116", "StableHLO 1.22.0 in place of 1.20.0", "Nothing: the tables"] {
            assert!(text.contains(words), "{text}");
        }
        let mut report = Report::new("jaxlib", "0.11.1");
        report.compare(Some(at("0.11.0")), at("0.11.1"), 117);
        assert!(report.text().contains("a new wire format: ifrt_serdes 5"), "{}", report.text());
        assert!(report.text().contains("introduced = 2026-08-17"));
        assert!(report.is_good());
    }
}
