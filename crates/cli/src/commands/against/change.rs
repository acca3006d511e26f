//! The change of an artifact: the releases that load it before and after.

use std::{collections::BTreeMap, path::Path};

use serdes_check::{
    Reason, Rule, Verdict, Verdicts,
    report::{self, Cell},
};

use crate::status::ExitStatus;

/// The verdicts on an artifact at one time, oldest release first; an empty name stands for an
/// artifact that does not depend on a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Side(pub(super) Vec<(String, Cell)>);

/// Returns true if the release loads it, even if it computes something else.
fn loads(answer: Cell) -> bool {
    matches!(answer, Cell::Yes | Cell::Differs)
}

impl Side {
    fn of(verdicts: &Verdicts) -> Self {
        let artifact = report::artifact(verdicts);
        let answers = artifact.answers().iter();
        Self(
            answers
                .map(|answer| (answer.release.clone().unwrap_or_default(), answer.cell))
                .collect(),
        )
    }

    fn answer(&self, release: &str) -> Option<Cell> {
        self.0.iter().find(|(name, _)| name == release).map(|(_, answer)| *answer)
    }

    /// Returns the oldest release that loads it.
    pub(super) fn oldest(&self) -> Option<&str> {
        self.0.iter().find(|(_, answer)| loads(*answer)).map(|(name, _)| name.as_str())
    }

    /// Returns the newest release that loads it.
    pub(super) fn newest(&self) -> Option<&str> {
        self.0.iter().rfind(|(_, answer)| loads(*answer)).map(|(name, _)| name.as_str())
    }

    fn worst(&self) -> Cell {
        self.0.iter().map(|(_, answer)| *answer).max().unwrap_or(Cell::Unknown)
    }

    /// Formats the releases that load it.
    pub(super) fn range(&self) -> String {
        match (self.oldest(), self.newest()) {
            (None, _) | (_, None) if self.worst() == Cell::Unknown => "unreadable".to_owned(),
            (None, _) | (_, None) => "none".to_owned(),
            (Some(""), _) => "loads".to_owned(),
            (Some(oldest), Some(newest)) if oldest == newest => oldest.to_owned(),
            (Some(oldest), Some(newest)) => {
                let inside = self.0.iter().skip_while(|(name, _)| name != oldest);
                let mut inside = inside.take_while(|(name, _)| name != newest);
                let gap =
                    if inside.any(|(_, answer)| !loads(*answer)) { ", with gaps" } else { "" };
                format!("{oldest} to {newest}{gap}")
            }
        }
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Same,
    /// More releases load it, or load it unchanged.
    Better,
    /// Fewer releases load it.
    Worse,
    /// Some releases load it now, and others no longer.
    Mixed,
    Added,
    Removed,
}

impl ChangeKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "mixed",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// The change of an artifact.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) kind: ChangeKind,
    pub(super) artifact_kind: Option<String>,
    pub(super) before: Option<Side>,
    pub(super) after: Option<Side>,
    /// Releases with a worse verdict than before, oldest first.
    pub(super) lost: Vec<String>,
    /// Releases with a better verdict than before, oldest first.
    pub(super) gained: Vec<String>,
    /// Reasons of the newest of the lost releases, or of the last release for an added artifact
    /// that none loads.
    pub(super) reasons: Vec<Reason>,
}

impl Change {
    /// Returns 1 if a release is lost, or no release loads an added artifact; 2 if an artifact
    /// became unreadable, or an added one is unreadable.
    pub(super) fn status(&self) -> ExitStatus {
        let Some(after) = &self.after else { return ExitStatus::Success };
        let is_unknown = after.worst() == Cell::Unknown;
        match self.kind {
            ChangeKind::Same | ChangeKind::Better | ChangeKind::Removed => ExitStatus::Success,
            _ if is_unknown => ExitStatus::Error,
            ChangeKind::Added if after.oldest().is_some() => ExitStatus::Success,
            _ => ExitStatus::Negative,
        }
    }
}

/// Returns the changes of the artifacts below a path, by their relative names.
pub(super) fn compare(
    root: &Path,
    mut before: BTreeMap<String, Verdicts>,
    after: BTreeMap<String, Verdicts>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, now) in after {
        let then = before.remove(&name);
        changes.push(change(shown_path(root, &name), then.as_ref(), Some(&now)));
    }
    for (name, then) in before {
        changes.push(change(shown_path(root, &name), Some(&then), None));
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn shown_path(root: &Path, name: &str) -> String {
    let path = if name.is_empty() { root.to_owned() } else { root.join(name) };
    path.to_string_lossy().into_owned()
}

fn change(path: String, before: Option<&Verdicts>, after: Option<&Verdicts>) -> Change {
    let (then, now) = (before.map(Side::of), after.map(Side::of));
    let (mut lost, mut gained) = (Vec::new(), Vec::new());
    if let (Some(then), Some(now)) = (&then, &now) {
        for (release, answer) in &now.0 {
            match then.answer(release) {
                Some(earlier) if *answer > earlier => lost.push(release.clone()),
                Some(earlier) if *answer < earlier => gained.push(release.clone()),
                _ => {}
            }
        }
    }
    let kind = match (&then, &now) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
        _ => match (lost.is_empty(), gained.is_empty()) {
            (true, true) => ChangeKind::Same,
            (true, false) => ChangeKind::Better,
            (false, true) => ChangeKind::Worse,
            (false, false) => ChangeKind::Mixed,
        },
    };
    let why = match (kind, &now) {
        (ChangeKind::Added, Some(side)) if side.oldest().is_none() => {
            after.and_then(|verdicts| verdicts.iter().last())
        }
        _ => {
            let last = lost.last();
            let is_lost = |verdict: &&Verdict| {
                last.is_some_and(|name| verdict.release.as_deref().unwrap_or_default() == name)
            };
            after.and_then(|verdicts| verdicts.iter().find(is_lost))
        }
    };
    let artifact_kind =
        after.or(before).and_then(|verdicts| verdicts.iter().find_map(|one| one.kind));
    Change {
        path,
        kind,
        artifact_kind: artifact_kind.map(|kind| kind.id().to_owned()),
        before: then,
        after: now,
        lost,
        gained,
        reasons: why.map(reasons).unwrap_or_default(),
    }
}

/// Returns the reasons of a verdict; for an accepting one, the warnings about changed computations.
fn reasons(verdict: &Verdict) -> Vec<Reason> {
    let mut reasons = verdict.reasons().to_vec();
    if reasons.is_empty() {
        let differs = verdict.warnings().iter().filter(|one| one.rule == Rule::AttributeDropped);
        reasons.extend(differs.map(|warning| {
            let reason = Reason::new(warning.rule, warning.message.as_str());
            match &warning.place {
                Some(place) => reason.at(place.as_str()),
                None => reason,
            }
        }));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(answers: &[(&str, Cell)]) -> Side {
        Side(answers.iter().map(|(name, answer)| ((*name).to_owned(), *answer)).collect())
    }

    #[test]
    fn the_range_names_oldest_newest_and_gaps() {
        use Cell::{Differs, No, Unknown, Yes};
        for (answers, range) in [
            (&[("2.12", No), ("2.13", Differs), ("2.14", Yes)][..], "2.13 to 2.14"),
            (&[("2.12", Yes), ("2.13", No), ("2.14", Yes)], "2.12 to 2.14, with gaps"),
            (&[("2.12", No), ("2.13", Yes), ("2.14", No)], "2.13"),
            (&[("2.12", No), ("2.13", No)], "none"),
            (&[("2.12", Unknown)], "unreadable"),
            (&[("", Yes)], "loads"),
        ] {
            assert_eq!(side(answers).range(), range);
        }
    }
}
