//! The report: artifacts by releases, with what was found.

use crate::{Artifact, Cell, Levels};

/// The program that a report is of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version, `MAJOR.MINOR.PATCH`.
    pub version: String,
    /// The address of its documentation.
    pub address: Option<String>,
}

impl Tool {
    /// Creates a program without an address.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), address: None }
    }

    /// Returns the same with the address of its documentation.
    #[must_use]
    pub fn at(self, address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), ..self }
    }
}

/// A rule, for those who read of it in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// Its meaning, in one sentence.
    pub summary: String,
    /// Its meaning.
    pub meaning: String,
    /// An example.
    pub example: Option<String>,
    /// The remedy.
    pub remedy: Option<String>,
    /// The address of its documentation.
    pub address: Option<String>,
    /// True if it never refuses by itself: its findings are warnings, unless a level denies them.
    pub is_warning: bool,
}

impl Rule {
    /// Creates a rule by its name and meaning.
    pub fn new(id: impl Into<String>, summary: impl Into<String>) -> Self {
        Self { id: id.into(), summary: summary.into(), ..Self::default() }
    }

    /// Returns the same, where it never refuses by itself.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { is_warning: true, ..self }
    }

    /// Returns the same with its meaning at length.
    #[must_use]
    pub fn with_meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: meaning.into(), ..self }
    }

    /// Returns the same with an example.
    #[must_use]
    pub fn with_example(self, example: impl Into<String>) -> Self {
        Self { example: Some(example.into()), ..self }
    }

    /// Returns the same with what to do.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Returns the same with the address of its documentation.
    #[must_use]
    pub fn at(self, address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), ..self }
    }
}

/// Artifacts by releases, with what was found.
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

    /// Returns the same with the rules that its findings name. A rule that is not among them is
    /// known by its name alone.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..self }
    }

    /// Adds an artifact.
    pub fn add(&mut self, artifact: Artifact) {
        self.artifacts.push(artifact);
    }

    /// Adds a sentence that is about no artifact: that files were skipped, that an entry of the
    /// baseline is outdated.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Returns the program that made it.
    #[must_use]
    pub const fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Returns the rules, in the order that they were given in.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the artifacts, in the order that they were added in.
    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    pub(crate) fn artifacts_mut(&mut self) -> &mut [Artifact] {
        &mut self.artifacts
    }

    /// Sentences that are about no artifact.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Sets the levels of warnings. Refusals keep theirs.
    pub fn apply(&mut self, levels: &Levels) {
        self.artifacts.iter_mut().for_each(|artifact| artifact.apply(levels));
    }

    /// Returns the worst answer that counts: no is status 1, unknown status 2. What is known to the
    /// baseline does not count.
    #[must_use]
    pub fn outcome(&self) -> Cell {
        self.artifacts.iter().map(Artifact::outcome).max().unwrap_or(Cell::Yes)
    }

    /// Returns true if nothing counts against an artifact.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.outcome() == Cell::Yes
    }
}
