//! Parsing of rule ids, as people write them.

use std::{fmt, str::FromStr};

use serdes::{ErrorKind, version::VersionRule};

use super::Rule;

/// The error for a rule id that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRule {
    /// The text found, cut to 60 characters.
    pub found: String,
    /// The rule that was probably meant.
    pub meant: Option<Rule>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no rule \"{}\"; ", self.found)?;
        match self.meant {
            Some(rule) => write!(f, "did you mean {rule}? The rules are ")?,
            None => f.write_str("the rules are ")?,
        }
        let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        f.write_str(&ids.join(", "))
    }
}

impl std::error::Error for UnknownRule {}

impl UnknownRule {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }
}

impl Rule {
    /// Returns the rule of verdicts for a condition of the VersionDef rule.
    pub(crate) const fn of_versions(rule: VersionRule) -> Self {
        match rule {
            VersionRule::ProducerTooOld => Self::ProducerTooOld,
            VersionRule::MinConsumer => Self::MinConsumer,
            VersionRule::BadConsumer => Self::BadConsumer,
            // A consumer that contradicts itself cannot judge anything.
            VersionRule::ConsumerBelowMinProducer => Self::Unsupported,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Rule {
    type Err = UnknownRule;

    /// Parses an id in upper or lower case, with hyphens or spaces for underscores.
    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let found: String = text.chars().take(60).collect();
        let id = found.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        if let Some(rule) = Self::ALL.iter().copied().find(|rule| rule.id() == id) {
            return Ok(rule);
        }
        let nearest = Self::ALL.iter().copied().min_by_key(|rule| distance(rule.id(), &id));
        let meant = nearest.filter(|rule| distance(rule.id(), &id) <= rule.id().len() / 3);
        let begun =
            || Self::ALL.iter().copied().find(|rule| id.len() > 2 && rule.id().starts_with(&id));
        Err(UnknownRule { found, meant: begun().or(meant) })
    }
}

/// Returns the edit distance of two words: the number of letters to insert, remove or replace.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        let (first, rest) = match row.split_first_mut() {
            Some(parts) => parts,
            None => break,
        };
        *first = before;
        for (cell, b) in rest.iter_mut().zip(right.bytes()) {
            let cost = diagonal + usize::from(a != b);
            diagonal = *cell;
            before = cost.min(before + 1).min(diagonal + 1);
            *cell = before;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{super::Explanation, *};
    use crate::Outcome;

    #[test]
    fn every_rule_is_found_by_its_id_and_explained() {
        for &rule in Rule::ALL {
            assert_eq!(rule.id().parse(), Ok(rule));
            let Explanation { meaning, example, remedy, .. } = rule.explain();
            assert!(!meaning.is_empty() && !example.is_empty() && !remedy.is_empty());
        }
        let error = "nothing".parse::<Rule>().unwrap_err();
        assert!(error.to_string().contains("min_consumer"), "{error}");
    }

    #[test]
    fn rule_is_found_in_any_case_and_a_similar_one_suggested() {
        assert_eq!("MIN_CONSUMER".parse(), Ok(Rule::MinConsumer));
        assert_eq!("Min-Consumer".parse(), Ok(Rule::MinConsumer));
        let meant = |text: &str| text.parse::<Rule>().unwrap_err().meant;
        assert_eq!(meant("min_consumers"), Some(Rule::MinConsumer));
        assert_eq!(meant("depricated_op"), Some(Rule::DeprecatedOp));
        assert_eq!(meant("forward"), Some(Rule::ForwardCompatibility));
        assert_eq!(meant("nosuch"), None);
        assert!(
            "CORUPT".parse::<Rule>().unwrap_err().to_string().contains("did you mean corrupt?")
        );
        assert_eq!(distance("corrupt", "corrupt"), 0);
        assert_eq!(distance("abc", "xbcd"), 2);
    }

    #[test]
    fn rule_of_unreadable_data_gives_unreadable() {
        assert_eq!(Rule::Corrupt.outcome(), Outcome::Unreadable);
        assert_eq!(Rule::NotFound.outcome(), Outcome::Unreadable);
        assert_eq!(Rule::Unsupported.outcome(), Outcome::Unreadable);
        assert_eq!(Rule::TooNew.outcome(), Outcome::Unacceptable);
    }
}
