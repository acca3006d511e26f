//! The behaviours that `serdes plugin verify` tries, and those that are known to fail.

use std::{collections::BTreeMap, fs, path::Path};

use super::nearest::nearest;
use crate::{
    arguments::VerifyArguments,
    failure::Failure,
    terminal::{shown, shown_path},
};

/// Maximum size of a file of known failures in bytes.
const LONGEST: u64 = 1 << 20;

/// Returns the behaviours of a suite that `--only` and `--skip` exclude.
pub(super) fn left_out(
    names: &[&str],
    arguments: &VerifyArguments,
) -> Result<Vec<String>, Failure> {
    for pattern in arguments.only.iter().chain(&arguments.skip) {
        if !names.iter().any(|name| is_named(name, pattern)) {
            return Err(unknown(pattern, names));
        }
    }
    let is_in = |patterns: &[String], name: &str| patterns.iter().any(|one| is_named(name, one));
    let is_left_out = |name: &&&str| {
        (!arguments.only.is_empty() && !is_in(&arguments.only, name))
            || is_in(&arguments.skip, name)
    };
    let left_out: Vec<String> =
        names.iter().filter(is_left_out).map(|name| (*name).to_owned()).collect();
    if left_out.len() == names.len() {
        return Err(Failure::new("--only and --skip leave no behaviour to try"));
    }
    Ok(left_out)
}

fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

fn unknown(found: &str, names: &[&str]) -> Failure {
    let failure =
        Failure::new(format_args!("the suite has no behaviour {:?}", shown(found).to_string()));
    match nearest(found, names.iter().copied()) {
        Some(meant) => failure.with_hint(format_args!("did you mean {meant}?")),
        None => failure.with_hint("`serdes plugin verify --list` lists them"),
    }
}

/// Behaviours that are known to fail, with the reasons in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownFailures(BTreeMap<String, String>);

impl KnownFailures {
    /// Reads the file, whose behaviours must belong to the suite.
    pub(super) fn read(path: Option<&Path>, names: &[&str]) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::default()) };
        let failed = |words: &str| Failure::new(format_args!("{}: {words}", shown_path(path)));
        let size = fs::metadata(path).map_err(|error| failed(&error.to_string()))?.len();
        if size > LONGEST {
            return Err(failed("longer than a list of behaviours is (1 MiB)"));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
        Self::parse(&text, names).map_err(|failure| failure.about(shown_path(path)))
    }

    fn parse(text: &str, names: &[&str]) -> Result<Self, Failure> {
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let (name, reason) = line.split_once('#').unwrap_or((line, ""));
            let name = name.trim();
            if name.is_empty() {
                continue;
            }
            if !names.contains(&name) {
                return Err(unknown(name, names).about(format_args!("line {}", number + 1)));
            }
            known.insert(name.to_owned(), reason.trim().to_owned());
        }
        Ok(Self(known))
    }

    /// Returns the reason of a behaviour that is known to fail; empty if the file has none.
    pub(super) fn reason(&self, behaviour: &str) -> Option<&str> {
        self.0.get(behaviour).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["memcpy_dtoh", "memcpy_dtod", "memset"];

    #[test]
    fn a_list_has_a_behaviour_a_line_with_reasons() {
        let known = KnownFailures::parse("# ours\n\nmemset # ticket 7\n memcpy_dtoh\n", &NAMES);
        let known = known.unwrap();
        assert_eq!(known.reason("memset"), Some("ticket 7"));
        assert_eq!(known.reason("memcpy_dtoh"), Some(""));
        assert_eq!(known.reason("memcpy_dtod"), None);
    }

    #[test]
    fn an_unknown_behaviour_in_a_list_is_named_with_its_line() {
        let error = KnownFailures::parse("memset\nmemcpy_dthh", &NAMES).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("did you mean memcpy_dtoh"), "{error}");
    }

    #[test]
    fn a_star_stands_for_the_rest_of_a_name() {
        assert!(is_named("memcpy_dtoh", "memcpy_*") && !is_named("memset", "memcpy_*"));
        assert!(is_named("memset", "memset") && !is_named("memset", "mem"));
    }
}
