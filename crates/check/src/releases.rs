//! Finds the releases that load a graph which another release refuses because of its operations.
//!
//! Depends on the releases with known operations, but not on the rules for graphs.

use super::{Consumer, Findings, Reason, Remedy, Rule, each::Each};

/// Rules about operations: another release may accept the same file.
const RULES: [Rule; 6] = [
    Rule::UnknownOp,
    Rule::UnknownAttribute,
    Rule::MissingAttribute,
    Rule::AttributeValue,
    Rule::InputCount,
    Rule::InputType,
];

/// Returns the first reason, if another release may load the file.
fn refused_by_operations(findings: &mut Findings) -> Option<&mut Reason> {
    findings.first_reason_mut().filter(|reason| RULES.contains(&reason.rule))
}

/// Adds the releases that load the file to the reasons of consumers that refuse it because of its
/// operations. `judge` judges the file for other consumers, and is called only for releases that
/// are not among the consumers.
pub(super) fn say_which_load(
    consumers: &Each<&Consumer>,
    findings: Each<Findings>,
    judge: impl Fn(&Each<&Consumer>) -> Each<Findings>,
) -> Each<Findings> {
    let mut judged: Vec<(Consumer, bool)> = consumers
        .iter()
        .zip(findings.iter())
        .map(|(consumer, findings)| ((*consumer).clone(), findings.reasons().is_empty()))
        .collect();
    let mut findings = consumers.map(|consumer| *consumer).zip(findings);
    let mut say = |(consumer, findings): &mut (&Consumer, Findings)| {
        let Some(reason) = refused_by_operations(findings) else { return };
        let Some(own) = consumer.release() else { return };
        let all = consumer.of_every_release();
        let is_judged = |one: &Consumer| judged.iter().any(|(other, _)| other == one);
        let missing: Vec<Consumer> = all.iter().filter(|one| !is_judged(one)).cloned().collect();
        if let Some(missing) = Each::of(&missing) {
            let found = judge(&missing);
            let found = missing.zip(found).into_vec();
            judged.extend(
                found.into_iter().map(|(one, found)| (one.clone(), found.reasons().is_empty())),
            );
        }
        let takes = |one: &Consumer| judged.iter().any(|(other, takes)| other == one && *takes);
        let releases: Vec<(&str, bool)> =
            all.iter().filter_map(|one| Some((one.release()?, takes(one)))).collect();
        add(reason, own, &releases);
    };
    say(&mut findings.first);
    findings.others.iter_mut().for_each(say);
    findings.map_into(|(_, findings)| findings)
}

/// Adds to a reason the releases, of all given oldest first, that load the file.
fn add(reason: &mut Reason, own: &str, releases: &[(&str, bool)]) {
    let position = releases.iter().position(|(name, _)| *name == own);
    let (older, newer) = releases.split_at(position.unwrap_or(releases.len()));
    let next = newer.iter().position(|(_, takes)| *takes);
    let (words, remedy) = if let Some(next) = next {
        let rest = newer.get(next..).unwrap_or_default();
        let or_newer = rest.iter().all(|(_, takes)| *takes);
        let release = rest.first().map_or("", |(name, _)| *name);
        let words = match or_newer {
            true => format!("it loads from TensorFlow {release} on"),
            false => format!("TensorFlow {release} loads it"),
        };
        (words, Some(Remedy::UseRelease { release: release.to_owned(), or_newer }))
    } else if let Some((release, _)) = older.iter().rev().find(|(_, takes)| *takes) {
        let words = format!("TensorFlow {release} is the last release that loads it");
        (words, Some(Remedy::UseRelease { release: (*release).to_owned(), or_newer: false }))
    } else {
        let ends = releases.first().zip(releases.last());
        let (first, last) = ends.map_or((own, own), |((first, _), (last, _))| (*first, *last));
        (format!("no release from {first} to {last} loads it"), None)
    };
    reason.message = format!("{}; {words}", reason.message);
    reason.remedy = match (std::mem::replace(&mut reason.remedy, Remedy::ExportAgain), remedy) {
        (Remedy::UseOlderOperation { operation, .. }, remedy) => {
            let release = match remedy {
                Some(Remedy::UseRelease { release, .. }) => Some(release),
                _ => None,
            };
            Remedy::UseOlderOperation { operation, release }
        }
        (_, Some(remedy)) => remedy,
        (named @ Remedy::NameOperation { .. }, None) => named,
        (_, None) => Remedy::ExportAgain,
    };
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Returns the reasons for the consumers `asked` of a file that the releases from `first` to
    /// `last` accept, and the number of further consumers that it was judged for.
    fn said(asked: &str, first: &str, last: &str) -> (Vec<Option<Reason>>, usize) {
        let takes = |consumer: &Consumer| {
            let number = |name: &str| name.rsplit_once('.').unwrap().1.parse::<u32>().unwrap();
            (number(first)..=number(last)).contains(&number(consumer.release().unwrap()))
        };
        let judge = |consumer: &Consumer| match takes(consumer) {
            true => Findings::default(),
            false => Findings::default().refused(Reason::new(Rule::UnknownOp, "no operation X")),
        };
        let consumers = Consumer::releases(asked).unwrap();
        let each = Each::of(&consumers).unwrap();
        let more = RefCell::new(0);
        let findings = say_which_load(&each, each.map(|one| judge(one)), |others| {
            *more.borrow_mut() += others.iter().count();
            others.map(|one| judge(one))
        });
        let reasons = findings.iter().map(|findings| findings.reasons().first().cloned()).collect();
        (reasons, more.into_inner())
    }

    #[test]
    fn a_refusal_names_the_release_from_which_on_it_loads() {
        let (reasons, more) = said("2.12", "2.14", "2.21");
        let reason = reasons[0].as_ref().unwrap();
        assert_eq!(reason.message, "no operation X; it loads from TensorFlow 2.14 on");
        assert_eq!(
            reason.remedy,
            Remedy::UseRelease { release: "2.14".to_owned(), or_newer: true }
        );
        assert_eq!(more, 9);
    }

    #[test]
    fn a_refusal_by_a_newer_release_names_the_last_that_loads() {
        let (reasons, _) = said("2.21", "2.12", "2.18");
        let reason = reasons[0].as_ref().unwrap();
        assert!(reason.message.ends_with("TensorFlow 2.18 is the last release that loads it"));
        let (reasons, _) = said("2.12", "2.14", "2.18");
        assert!(reasons[0].as_ref().unwrap().message.ends_with("TensorFlow 2.14 loads it"));
    }

    #[test]
    fn release_is_judged_once_and_not_at_all_if_all_accept() {
        let (reasons, more) = said("all", "2.14", "2.16");
        assert_eq!(reasons.iter().filter(|reason| reason.is_some()).count(), 7);
        assert_eq!(more, 0);
        assert_eq!(said("2.12..2.14", "2.12", "2.21").1, 0);
        // Two releases refuse; the others are judged once.
        assert_eq!(said("2.12..2.13", "2.14", "2.21").1, 8);
    }

    #[test]
    fn remedy_stays_if_no_release_loads_the_file() {
        let releases = [("2.12", false), ("2.13", false)];
        let operation = "Ours".to_owned();
        let named = Remedy::NameOperation { operation };
        let mut reason = Reason::new(Rule::UnknownOp, "no").with_remedy(named.clone());
        add(&mut reason, "2.12", &releases);
        assert_eq!(
            (reason.remedy, reason.message.as_str()),
            (named, "no; no release from 2.12 to 2.13 loads it")
        );
        let mut reason = Reason::new(Rule::InputCount, "no");
        add(&mut reason, "2.12", &releases);
        assert_eq!(reason.remedy, Remedy::ExportAgain);
    }
}
