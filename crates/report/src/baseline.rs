//! The baseline: known findings, which do not count.
//!
//! A file of JSON objects, one per line, sorted, so that reviews show changes line by line; the
//! first line has the version of the format. Empty lines and those that begin with `#` are
//! comments, which are lost when the file is rewritten.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use serde::{Deserialize, Serialize};
use serdes_abi::ErrorKind;

use crate::{Answer, Artifact, Finding, Report, fingerprint::clean};

/// Version of the format that is written, and the newest that is read.
const FORM: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    serdes_baseline: u32,
}

/// A known finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// The reported path of the artifact.
    pub artifact: String,
    /// The release; `None` for findings that do not depend on one.
    #[serde(default)]
    pub release: Option<String>,
    /// Name of the rule.
    pub rule: String,
    /// The place in the artifact.
    #[serde(default, rename = "where")]
    pub place: Option<String>,
    /// The reason for accepting it, if given.
    #[serde(default)]
    pub reason: Option<String>,
}

/// An error of reading a baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// A line is not an entry.
    #[error(
        "line {line} is no entry of a baseline: {reason}; expected an object with artifact, release, rule and where"
    )]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// The first line of a baseline is missing.
    #[error("found no baseline; expected {{\"serdes_baseline\":{FORM}}} in the first line")]
    NoHeader,
    /// The format is newer than this build.
    #[error(
        "the form of the baseline is {found}, and this program reads up to {FORM}; upgrade it, or write the baseline anew"
    )]
    TooNew {
        /// Version of the format.
        found: u32,
    },
}

impl BaselineError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Line { .. } | Self::NoHeader => ErrorKind::Corrupt,
            Self::TooNew { .. } => ErrorKind::TooNew,
        }
    }
}

/// An entry without a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// The entry.
    pub entry: Entry,
    /// True if the artifact was judged for this release, so that the finding no longer occurs.
    /// Otherwise its state is unknown, unless the artifact is gone.
    pub was_judged: bool,
}

/// A set of known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// Keys of findings, with the reasons.
    entries: BTreeMap<Key, Option<String>>,
}

/// Key of a finding: artifact, release, rule and place.
type Key = (String, Option<String>, String, Option<String>);

impl Baseline {
    /// Creates a baseline of the findings shown in a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let findings = report.artifacts().iter().flat_map(Artifact::findings);
        let shown = findings.filter(|finding| finding.is_shown());
        Self { entries: shown.map(|finding| (key(finding), reason(finding))).collect() }
    }

    /// Parses a baseline.
    ///
    /// # Errors
    /// If the text is not a baseline, or its format is too new.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let mut lines = text.lines().enumerate().filter(|(_, line)| !is_comment(line));
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Header>(line).ok());
        match header {
            None => return Err(BaselineError::NoHeader),
            Some(Header { serdes_baseline: found }) if found > FORM => {
                return Err(BaselineError::TooNew { found });
            }
            Some(_) => {}
        }
        let mut entries = BTreeMap::new();
        for (number, line) in lines {
            let entry: Entry = serde_json::from_str(line).map_err(|error| BaselineError::Line {
                line: number + 1,
                reason: error.to_string(),
            })?;
            let Entry { artifact, release, rule, place, reason } = entry;
            entries.insert((clean(&artifact).into_owned(), release, rule, place), reason);
        }
        Ok(Self { entries })
    }

    /// Returns the entries, sorted.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().map(|((artifact, release, rule, place), reason)| Entry {
            artifact: artifact.clone(),
            release: release.clone(),
            rule: rule.clone(),
            place: place.clone(),
            reason: reason.clone(),
        })
    }

    /// Copies the reasons of an older baseline for the same findings.
    #[must_use]
    pub fn with_reasons_of(mut self, older: &Self) -> Self {
        for (key, reason) in &mut self.entries {
            if reason.is_none() {
                *reason = older.entries.get(key).cloned().flatten();
            }
        }
        self
    }

    /// Writes the entries, one per line.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &Header { serdes_baseline: FORM })?;
        out.write_all(b"\n")?;
        for entry in self.entries() {
            serde_json::to_writer(&mut *out, &entry)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Marks the known findings of a report, and returns the entries without a finding.
    pub fn apply(&self, report: &mut Report) -> Vec<Unmatched> {
        let mut comparison = self.compare();
        report.artifacts_mut().iter_mut().for_each(|artifact| comparison.mark(artifact));
        comparison.unmatched()
    }

    /// Starts a comparison, for artifacts that are added one by one.
    #[must_use]
    pub const fn compare(&self) -> Comparison<'_> {
        Comparison { baseline: self, matched: BTreeSet::new(), judged: BTreeSet::new() }
    }
}

/// A comparison of artifacts with a baseline.
#[derive(Clone, Debug)]
pub struct Comparison<'b> {
    baseline: &'b Baseline,
    matched: BTreeSet<Key>,
    /// Artifacts with their judged releases.
    judged: BTreeSet<(String, Option<String>)>,
}

impl Comparison<'_> {
    /// Marks the known findings of an artifact.
    pub fn mark(&mut self, artifact: &mut Artifact) {
        let path = clean(artifact.location()).into_owned();
        for Answer { release, findings, .. } in artifact.answers_mut() {
            self.judged.insert((path.clone(), release.clone()));
            for finding in findings {
                let key = key(finding);
                if let Some(reason) = self.baseline.entries.get(&key) {
                    finding.known = Some(reason.clone().unwrap_or_default());
                    self.matched.insert(key);
                }
            }
        }
    }

    /// Returns the entries without a finding in these artifacts.
    #[must_use]
    pub fn unmatched(&self) -> Vec<Unmatched> {
        let unmatched =
            self.baseline.entries().filter(|entry| !self.matched.contains(&entry.key()));
        let with_judged = unmatched.map(|entry| Unmatched {
            was_judged: self.judged.contains(&(entry.artifact.clone(), entry.release.clone())),
            entry,
        });
        with_judged.collect()
    }
}

impl Entry {
    fn key(&self) -> Key {
        (self.artifact.clone(), self.release.clone(), self.rule.clone(), self.place.clone())
    }
}

fn key(finding: &Finding) -> Key {
    let Finding { artifact, release, rule, place, .. } = finding;
    (clean(artifact).into_owned(), release.clone(), rule.clone(), place.clone())
}

/// Returns the reason in the finding's entry.
fn reason(finding: &Finding) -> Option<String> {
    finding.known.clone().filter(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Class, Tool};

    /// Returns a report on artifacts with findings: path, release, rule, place.
    fn report(findings: &[(&str, &str, &str, &str)]) -> Report {
        let mut report = Report::new(Tool::new("t", "1"));
        for (path, release, rule, place) in findings {
            let finding = Finding::new(*rule, "m").of_class(Class::Refusal).at(*place);
            let mut artifact = Artifact::new(*path);
            artifact.add_release(*release, [finding]);
            report.add(artifact);
        }
        report
    }

    const KNOWN: [(&str, &str, &str, &str); 2] =
        [("m", "2.12", "unknown_op", "a"), ("n", "2.12", "unknown_op", "b")];

    #[test]
    fn baseline_leaves_only_what_is_new_to_count() {
        let baseline = Baseline::of(&report(&KNOWN));
        let mut again = report(&KNOWN);
        assert!(baseline.apply(&mut again).is_empty() && again.is_clean());
        for new in [
            ("m", "2.13", "unknown_op", "a"),
            ("m", "2.12", "corrupt", "a"),
            ("m", "2.12", "unknown_op", "c"),
            ("o", "2.12", "unknown_op", "a"),
        ] {
            let mut report = report(&[KNOWN[0], KNOWN[1], new]);
            assert!(baseline.apply(&mut report).is_empty());
            assert_eq!((report.outcome(), report.summary().counting), (Cell::No, 1), "{new:?}");
            assert_eq!(report.summary().known, 2);
        }
    }

    #[test]
    fn baseline_says_which_entries_no_longer_occur() {
        let baseline = Baseline::of(&report(&KNOWN));
        let mut mended = report(&[("m", "2.12", "unknown_op", "c")]);
        let unmatched = baseline.apply(&mut mended);
        let said: Vec<_> =
            unmatched.iter().map(|one| (one.entry.artifact.as_str(), one.was_judged)).collect();
        assert_eq!(said, [("m", true), ("n", false)]);
    }

    #[test]
    fn baseline_is_read_as_it_was_written_and_keeps_reasons() {
        let mut text = Vec::new();
        Baseline::of(&report(&KNOWN)).write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 3);
        let with_reason = text.replacen("\"reason\":null", "\"reason\":\"waits\"", 1);
        let older = Baseline::parse(&format!("\n# ours\n{with_reason}")).unwrap();
        let mut report = report(&KNOWN);
        older.apply(&mut report);
        let finding = report.artifacts()[0].findings().next().unwrap();
        assert_eq!(finding.known.as_deref(), Some("waits"));
        let anew = Baseline::of(&self::report(&KNOWN)).with_reasons_of(&older);
        assert_eq!(anew, older);
        let by_hand = "{\"serdes_baseline\":1}\n{\"artifact\":\"./m/\",\"rule\":\"r\"}";
        assert_eq!(Baseline::parse(by_hand).unwrap().entries().next().unwrap().artifact, "m");
    }

    #[test]
    fn baseline_says_why_it_cannot_be_read() {
        for (text, words) in [
            ("", "first line"),
            ("{}", "first line"),
            ("{\"serdes_baseline\":2}", "the form of the baseline is 2"),
            ("{\"serdes_baseline\":1}\n\n{\"artifact\":\"m\"}", "line 3"),
            ("{\"serdes_baseline\":1}\n{\"artifact\":\"m\",\"rule\":\"r\",\"wher\":\"x\"}", "wher"),
        ] {
            let error = Baseline::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
