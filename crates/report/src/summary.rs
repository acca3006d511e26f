//! Numbers and summary sentences of a report.

use std::collections::HashMap;

use crate::{Artifact, Cell, Report, grouped::ranges, names::count};

/// The artifacts with the same releases, which form one table.
#[derive(Clone, Debug)]
pub(crate) struct Table<'r> {
    /// The releases; an empty name for answers that do not depend on one.
    pub(crate) releases: Vec<&'r str>,
    pub(crate) artifacts: Vec<&'r Artifact>,
}

/// Numbers of a report. Artifacts are counted by their worst answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of artifacts.
    pub artifacts: usize,
    /// Number of artifacts that every release accepts.
    pub yes: usize,
    /// Number of artifacts that every release accepts, and some release computes differently.
    pub differs: usize,
    /// Number of artifacts that some release refuses.
    pub no: usize,
    /// Number of artifacts that cannot be read.
    pub unknown: usize,
    /// Number of counted findings, separately for each release.
    pub counting: usize,
    /// Number of findings in the baseline, separately for each release.
    pub known: usize,
}

impl Report {
    /// Returns the numbers of the report.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { artifacts: self.artifacts().len(), ..Summary::default() };
        for artifact in self.artifacts() {
            *match artifact.worst() {
                Cell::Yes => &mut summary.yes,
                Cell::Differs => &mut summary.differs,
                Cell::No => &mut summary.no,
                Cell::Unknown => &mut summary.unknown,
            } += 1;
            for finding in artifact.findings().filter(|finding| finding.is_shown()) {
                summary.counting += usize::from(finding.counts());
                summary.known += usize::from(finding.known.is_some());
            }
        }
        summary
    }

    /// Returns a summary in sentences: the releases that load artifacts, and the known findings.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.tables().iter().map(Table::sentence).collect();
        sentences.extend(self.known());
        sentences
    }

    /// Returns the sentence about known findings; `None` if there are none.
    #[must_use]
    pub fn known(&self) -> Option<String> {
        let Summary { counting, known, .. } = self.summary();
        let new = match counting {
            0 => "none is new".to_owned(),
            1 => "1 is new".to_owned(),
            many => format!("{many} are new"),
        };
        (known > 0).then(|| format!("{} known to the baseline; {new}", count(known, "finding")))
    }

    /// Groups the artifacts by their releases, in the order of the first ones.
    pub(crate) fn tables(&self) -> Vec<Table<'_>> {
        let mut tables: Vec<Table<'_>> = Vec::new();
        let mut numbers = HashMap::new();
        for artifact in self.artifacts() {
            let releases: Vec<&str> = artifact
                .answers()
                .iter()
                .map(|answer| answer.release.as_deref().unwrap_or_default())
                .collect();
            let number = *numbers.entry(releases.clone()).or_insert(tables.len());
            match tables.get_mut(number) {
                Some(table) => table.artifacts.push(artifact),
                None => tables.push(Table { releases, artifacts: vec![artifact] }),
            }
        }
        tables
    }
}

impl Table<'_> {
    /// Returns the number of artifacts for which `holds` is true, and a text such as `1 of 3`.
    fn part(&self, holds: impl Fn(&Artifact) -> bool) -> (usize, String) {
        let number = self.artifacts.iter().filter(|artifact| holds(artifact)).count();
        (number, format!("{number} of {}", self.artifacts.len()))
    }

    /// Returns the table as a sentence: the number of artifacts that each release loads.
    fn sentence(&self) -> String {
        let fails = |cell: Cell| matches!(cell, Cell::No | Cell::Unknown);
        let has = |artifact: &Artifact, which: &dyn Fn(Cell) -> bool| {
            artifact.answers().iter().any(|answer| which(answer.cell))
        };
        let (yes, all_yes) = self.part(|artifact| artifact.worst() == Cell::Yes);
        let (differ, some_differ) =
            self.part(|artifact| has(artifact, &|cell| cell == Cell::Differs));
        let (fail, some_fail) = self.part(|artifact| has(artifact, &fails));
        let loads =
            |number: usize| if number == 1 { "loads and computes" } else { "load and compute" };
        let mut parts = Vec::new();
        let are_several = self.releases.len() > 1;
        let where_in = if are_several { " in at least one release" } else { "" };
        match (yes == self.artifacts.len(), are_several) {
            (true, true) => {
                return format!("{all_yes} load in each of these releases");
            }
            (true, false) => return format!("{all_yes} load"),
            (false, true) if yes > 0 => {
                parts.push(format!("{all_yes} load in each of these releases"))
            }
            (false, false) if yes > 0 => parts.push(format!("{all_yes} load")),
            (false, _) => {}
        }
        if fail > 0 {
            let fails = if fail == 1 { "fails" } else { "fail" };
            parts.push(format!("{some_fail} {fails}{where_in}"));
        }
        if differ > 0 {
            parts.push(format!("{some_differ} {} something else{where_in}", loads(differ)));
        }
        if are_several {
            let words = self.where_all_load();
            let is_none = differ > 0 && words.starts_with("none");
            parts.push(if is_none { words + " unchanged" } else { words });
        }
        parts.join("; ")
    }

    /// Returns the releases that load all artifacts, or the one that loads the most.
    fn where_all_load(&self) -> String {
        let of_release = |number: usize| {
            let cells = self.artifacts.iter().filter_map(|artifact| artifact.answers().get(number));
            cells.filter(|answer| answer.cell == Cell::Yes).count()
        };
        let counts: Vec<usize> = (0..self.releases.len()).map(of_release).collect();
        let loads_all = |number: usize| counts.get(number) == Some(&self.artifacts.len());
        let all = if self.artifacts.len() == 1 { "it loads" } else { "all load" };
        let good: Vec<usize> = (0..counts.len()).filter(|number| loads_all(*number)).collect();
        let name = |number: &usize| self.releases.get(*number).copied().unwrap_or_default();
        let is_one_run = |first: &usize, last: &usize| last - first + 1 == good.len();
        match good.as_slice() {
            [] => match counts.iter().copied().max().filter(|most| *most > 0) {
                Some(most) if self.artifacts.len() > 1 => {
                    let newest = counts.iter().rposition(|count| *count == most);
                    let newest = newest.as_ref().map(name).unwrap_or_default();
                    format!("no release loads all of them; {newest} loads the most, {most}")
                }
                _ if self.artifacts.len() == 1 => "none of these releases loads it".to_owned(),
                _ => "none of these releases loads any of them".to_owned(),
            },
            [first, .., last] if is_one_run(first, last) && last + 1 == counts.len() => {
                format!("{all} from {} on", name(first))
            }
            [last] if last + 1 == counts.len() => format!("{all} from {} on", name(last)),
            [first, .., last] if *first == 0 && is_one_run(first, last) => {
                format!("{all} up to {}", name(last))
            }
            [0] => format!("{all} up to {}", name(&0)),
            good => {
                let good: Vec<&str> = good.iter().map(name).collect();
                format!("{all} in {}", ranges(&self.releases, |release| good.contains(&release)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Finding, Tool};

    /// Returns a report on artifacts, given by the letters of their cells: y, d, n, u.
    fn report(rows: &[&str]) -> Report {
        let mut report = Report::new(Tool::new("t", "1"));
        for (row, cells) in rows.iter().enumerate() {
            let mut artifact = Artifact::new(format!("m{row}"));
            for (number, cell) in cells.chars().enumerate() {
                let finding = Finding::new("r", "m");
                let finding = match cell {
                    'd' => Some(finding.of_class(Class::Differs)),
                    'n' => Some(finding.of_class(Class::Refusal)),
                    'u' => Some(finding.of_class(Class::Refusal).unreadable()),
                    _ => None,
                };
                artifact.add_release(format!("2.{}", 12 + number), finding);
            }
            report.add(artifact);
        }
        report
    }

    #[test]
    fn summary_says_from_which_release_on_all_load() {
        for (rows, sentence) in [
            (&["yyy", "yyy"][..], "2 of 2 load in each of these releases"),
            (&["nyy", "nny"], "2 of 2 fail in at least one release; all load from 2.14 on"),
            (
                &["nyy", "yyy"],
                "1 of 2 load in each of these releases; 1 of 2 fails in at least one release; all load from 2.13 on",
            ),
            (&["yyn", "yyn"], "2 of 2 fail in at least one release; all load up to 2.13"),
            (&["ynn", "ynn"], "2 of 2 fail in at least one release; all load up to 2.12"),
            (&["nyn", "nyn"], "2 of 2 fail in at least one release; all load in 2.13"),
            (
                &["nyy", "yyn", "yny"],
                "3 of 3 fail in at least one release; no release loads all of them; 2.14 loads the most, 2",
            ),
            (
                &["ddy", "yyy"],
                "1 of 2 load in each of these releases; 1 of 2 loads and computes something else in at least one release; all load from 2.14 on",
            ),
            (
                &["dd"],
                "1 of 1 loads and computes something else in at least one release; none of these releases loads it unchanged",
            ),
            (&["nnn"], "1 of 1 fails in at least one release; none of these releases loads it"),
            (&["nny"], "1 of 1 fails in at least one release; it loads from 2.14 on"),
            (&["y", "y"], "2 of 2 load"),
            (&["y", "n"], "1 of 2 load; 1 of 2 fails"),
        ] {
            assert_eq!(report(rows).sentences(), [sentence], "{rows:?}");
        }
    }

    #[test]
    fn summary_counts_artifacts_by_their_worst_answer() {
        let summary = report(&["yy", "yd", "dn", "nu"]).summary();
        assert_eq!(
            (summary.yes, summary.differs, summary.no, summary.unknown, summary.counting),
            (1, 1, 1, 1, 3)
        );
    }
}
