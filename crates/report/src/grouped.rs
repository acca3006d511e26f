//! Groups the findings of an artifact that are the same in several releases.

use std::collections::HashMap;

use crate::{Artifact, Finding};

/// A finding with its releases.
#[derive(Clone, Debug)]
pub(crate) struct Group<'r> {
    /// The finding of the first of these releases.
    pub(crate) finding: &'r Finding,
    /// The releases, in the order of the artifact's answers.
    pub(crate) releases: Vec<&'r str>,
}

/// Returns the shown findings of an artifact, each once. Known findings are separate from unknown
/// ones of the same rule and place.
pub(crate) fn groups(artifact: &Artifact) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut numbers = HashMap::new();
    for finding in artifact.findings().filter(|finding| finding.is_shown()) {
        let Finding { rule, place, found, level, known, .. } = finding;
        let number = *numbers.entry((rule, place, found, level, known)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.add(finding),
            None => {
                let releases = finding.release.as_deref().into_iter().collect();
                groups.push(Group { finding, releases });
            }
        }
    }
    groups
}

impl<'r> Group<'r> {
    fn add(&mut self, finding: &'r Finding) {
        let release = finding.release.as_deref();
        self.releases.extend(release.filter(|release| self.releases.last() != Some(release)));
    }

    /// Formats the releases: `2.12 to 2.16, 2.18`; empty if there are none, or the artifact has no
    /// other.
    pub(crate) fn releases_of(&self, artifact: &'r Artifact) -> String {
        if artifact.answers().len() < 2 {
            return String::new();
        }
        let all: Vec<&str> =
            artifact.answers().iter().filter_map(|answer| answer.release.as_deref()).collect();
        ranges(&all, |release| self.releases.contains(&release))
    }
}

/// Formats the chosen elements of a list as ranges.
pub(crate) fn ranges(all: &[&str], is_chosen: impl Fn(&str) -> bool) -> String {
    let mut words = Vec::new();
    for run in all.chunk_by(|one, next| is_chosen(one) == is_chosen(next)) {
        match run {
            [first, ..] if !is_chosen(first) => {}
            [only] => words.push((*only).to_owned()),
            [first, .., last] => words.push(format!("{first} to {last}")),
            [] => {}
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn ranges_name_their_ends() {
        let all = ["2.12", "2.13", "2.14", "2.15"];
        let of = |chosen: &[&str]| ranges(&all, |one| chosen.contains(&one));
        assert_eq!(of(&["2.12", "2.13", "2.15"]), "2.12 to 2.13, 2.15");
        assert_eq!(of(&all), "2.12 to 2.15");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn findings_of_several_releases_are_one() {
        let finding = |found: &str| {
            let finding = Finding::new("unknown_op", "no X").of_class(Class::Refusal).at("x");
            finding.with_values(Some(found.to_owned()), None)
        };
        let mut artifact = Artifact::new("m");
        artifact.add_release("2.12", [finding("X"), finding("Y")]);
        artifact.add_release("2.13", [finding("X")]);
        artifact.add_release("2.14", []);
        let groups = groups(&artifact);
        let shown: Vec<_> = groups
            .iter()
            .map(|group| (group.finding.found.as_deref(), group.releases_of(&artifact)))
            .collect();
        assert_eq!(shown, [(Some("X"), "2.12 to 2.13".into()), (Some("Y"), "2.12".into())]);
    }
}
