//! The report: artifacts, releases and findings.

use crate::{Artifact, Cell, Levels};

/// The program that creates a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Name of the program.
    pub name: String,
    /// Version of the program, `MAJOR.MINOR.PATCH`.
    pub version: String,
    /// URL of its documentation.
    pub address: Option<String>,
}

impl Tool {
    /// Creates a program without a URL.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), address: None }
    }

    /// Sets the URL of its documentation.
    #[must_use]
    pub fn at(self, address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), ..self }
    }
}

/// A rule with its description for readers of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Name of the rule.
    pub id: String,
    /// Its meaning, in one sentence.
    pub summary: String,
    /// Its full meaning.
    pub meaning: String,
    /// An example.
    pub example: Option<String>,
    /// The remedy.
    pub remedy: Option<String>,
    /// URL of its documentation.
    pub address: Option<String>,
    /// True if its findings are warnings, unless a level denies them.
    pub is_warning: bool,
}

impl Rule {
    /// Creates a rule from its name and summary.
    pub fn new(id: impl Into<String>, summary: impl Into<String>) -> Self {
        Self { id: id.into(), summary: summary.into(), ..Self::default() }
    }

    /// Marks the rule as one of warnings.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { is_warning: true, ..self }
    }

    /// Sets the full meaning.
    #[must_use]
    pub fn with_meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: meaning.into(), ..self }
    }

    /// Sets the example.
    #[must_use]
    pub fn with_example(self, example: impl Into<String>) -> Self {
        Self { example: Some(example.into()), ..self }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Sets the URL of its documentation.
    #[must_use]
    pub fn at(self, address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), ..self }
    }
}

/// A report: artifacts with the releases' answers and findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    tool: Tool,
    rules: Vec<Rule>,
    artifacts: Vec<Artifact>,
    notes: Vec<String>,
}

impl Report {
    /// Creates a report without artifacts.
    #[must_use]
    pub const fn new(tool: Tool) -> Self {
        Self { tool, rules: Vec::new(), artifacts: Vec::new(), notes: Vec::new() }
    }

    /// Sets the descriptions of rules. Other rules appear by their names only.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..self }
    }

    /// Adds an artifact.
    pub fn add(&mut self, artifact: Artifact) {
        self.artifacts.push(artifact);
    }

    /// Adds a note that concerns no artifact, such as skipped files or an outdated entry of the
    /// baseline.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Returns the program that created it.
    #[must_use]
    pub const fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Returns the rules in the order given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the artifacts in the order in which they were added.
    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    pub(crate) fn artifacts_mut(&mut self) -> &mut [Artifact] {
        &mut self.artifacts
    }

    /// Returns the notes that concern no artifact.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Sets the levels of warnings. Refusals keep theirs.
    pub fn apply(&mut self, levels: &Levels) {
        self.artifacts.iter_mut().for_each(|artifact| artifact.apply(levels));
    }

    /// Returns the worst counted answer: no is status 1, unknown status 2. Findings in the baseline
    /// do not count.
    #[must_use]
    pub fn outcome(&self) -> Cell {
        self.artifacts.iter().map(Artifact::outcome).max().unwrap_or(Cell::Yes)
    }

    /// Returns true if no artifact has a counted finding.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.outcome() == Cell::Yes
    }
}
