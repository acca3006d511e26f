//! An artifact with the releases' answers and findings.

use crate::{Cell, Class, Finding, Levels};

/// The answer of a release on an artifact.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Answer {
    /// The release; `None` for answers that do not depend on one.
    pub release: Option<String>,
    /// The answer in one word.
    pub cell: Cell,
    /// The findings, with the reasons of a refusal first.
    pub findings: Vec<Finding>,
}

impl Answer {
    /// Computes the cell from the findings: a refusal takes precedence over a difference.
    pub(crate) fn judge(&mut self) {
        let mut cells = self.findings.iter().map(Finding::cell);
        let first = cells.clone().find(|cell| matches!(cell, Cell::No | Cell::Unknown));
        self.cell = first.or(cells.find(|cell| *cell == Cell::Differs)).unwrap_or(Cell::Yes);
    }

    /// Returns the answer for the exit status, from the counted findings only.
    pub(crate) fn counted(&self) -> Cell {
        self.findings.iter().find(|one| one.counts()).map_or(Cell::Yes, Finding::cell)
    }
}

/// An artifact: a row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Artifact {
    path: String,
    location: Option<String>,
    kind: Option<String>,
    answers: Vec<Answer>,
}

impl Artifact {
    /// Creates an artifact without answers.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), location: None, kind: None, answers: Vec::new() }
    }

    /// Sets the kind.
    #[must_use]
    pub fn of_kind(self, kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..self }
    }

    /// Sets the path for readers of reports, for example relative to the root of a repository.
    /// Fingerprints, baselines and locations of code scanners use it; the default is the path.
    #[must_use]
    pub fn located_at(self, location: impl Into<String>) -> Self {
        Self { location: Some(location.into()), ..self }
    }

    /// Adds the findings of a release, in order, the newest one last. A release without findings
    /// accepts the artifact.
    pub fn add_release(
        &mut self,
        release: impl Into<String>,
        findings: impl IntoIterator<Item = Finding>,
    ) {
        self.add(Some(release.into()), findings);
    }

    /// Adds findings that do not depend on a release, such as a damaged file.
    pub fn add_findings(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.add(None, findings);
    }

    fn add(&mut self, release: Option<String>, findings: impl IntoIterator<Item = Finding>) {
        let findings = findings.into_iter().map(|finding| Finding {
            artifact: self.location().to_owned(),
            kind: self.kind.clone(),
            release: release.clone(),
            ..finding
        });
        let mut answer =
            Answer { findings: findings.collect(), cell: Cell::Yes, release: release.clone() };
        answer.judge();
        self.answers.push(answer);
    }

    /// Sets the levels of warnings. Refusals keep theirs.
    pub fn apply(&mut self, levels: &Levels) {
        for answer in &mut self.answers {
            for finding in &mut answer.findings {
                if finding.class != Class::Refusal {
                    finding.level = levels.of(&finding.rule);
                }
            }
            answer.judge();
        }
    }

    /// Returns the worst counted answer: no is status 1, unknown status 2. Findings in the baseline
    /// do not count.
    #[must_use]
    pub fn outcome(&self) -> Cell {
        self.answers.iter().map(Answer::counted).max().unwrap_or(Cell::Yes)
    }

    /// Returns the path as given.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path for readers of reports.
    #[must_use]
    pub fn location(&self) -> &str {
        self.location.as_deref().unwrap_or(&self.path)
    }

    /// Returns the kind, if it is known.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Returns the answers of the releases, in their order.
    #[must_use]
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    pub(crate) fn answers_mut(&mut self) -> &mut [Answer] {
        &mut self.answers
    }

    /// Returns the findings of all releases.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.answers.iter().flat_map(|answer| &answer.findings)
    }

    /// Returns the worst answer of all releases.
    #[must_use]
    pub fn worst(&self) -> Cell {
        self.answers.iter().map(|answer| answer.cell).max().unwrap_or(Cell::Yes)
    }
}
