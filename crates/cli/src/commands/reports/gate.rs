//! The gate of reports: levels of rules and the baseline, from the options.

use std::path::{Path, PathBuf};

use serdes_check::{
    Rule,
    report::{Baseline, Comparison, Entry, Level, Levels, Report, Unmatched},
};

use crate::{
    arguments::ReportArguments,
    commands::{report_file, small_file},
    failure::Failure,
    terminal::{count, shown, shown_path},
};

/// Maximum size of a baseline in bytes.
const LARGEST: u64 = 256 << 20;

/// Levels of rules, and the baseline of known findings.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) levels: Levels,
    pub(crate) baseline: Option<Baseline>,
    written: Option<PathBuf>,
    /// True if there are options other than `--strict`.
    pub(crate) is_active: bool,
}

impl Gate {
    /// Creates the gate of the arguments.
    ///
    /// # Errors
    /// If a level is for an unknown rule, or for one that refuses; if the baseline cannot be read.
    pub(crate) fn of(arguments: &ReportArguments, strict: bool) -> Result<Self, Failure> {
        let mut levels = if strict { Levels::strict() } else { Levels::default() };
        for (name, level) in &arguments.levels.levels {
            levels = levels.with(warning(name, *level)?.id(), *level);
        }
        let baseline = arguments.baseline.as_deref().map(read).transpose()?;
        let is_active = !arguments.levels.levels.is_empty() || baseline.is_some();
        Ok(Self { levels, baseline, written: arguments.write_baseline.clone(), is_active })
    }

    /// Writes the new baseline on request, and returns a message; reasons in the old baseline stay
    /// with their findings.
    pub(crate) fn write(&self, report: &Report) -> Result<Option<String>, Failure> {
        let Some(path) = &self.written else { return Ok(None) };
        let mut baseline = Baseline::of(report);
        if let Some(known) = &self.baseline {
            baseline = baseline.with_reasons_of(known);
        }
        if path.exists() {
            baseline = baseline.with_reasons_of(&read(path)?);
        }
        report_file::write(path, &mut |file| baseline.write(file))?;
        let number = baseline.entries().count() as u64;
        Ok(Some(format!("{} written to {}", count(number, "finding"), shown_path(path))))
    }
}

/// Returns the rule of a level.
fn warning(name: &str, level: Level) -> Result<Rule, Failure> {
    let rule: Rule =
        name.parse().map_err(|error| Failure::new(format_args!("--{level}: {error}")))?;
    if rule.is_warning() {
        return Ok(rule);
    }
    let warnings = Rule::ALL.iter().copied().filter(|rule| rule.is_warning()).map(Rule::id);
    Err(Failure::new(format_args!(
        "--{level} {rule}: the rule refuses, and levels are for warnings: {}",
        warnings.collect::<Vec<_>>().join(", ")
    ))
    .with_hint("accept a refusal that is known with --baseline FILE"))
}

fn read(path: &Path) -> Result<Baseline, Failure> {
    let bytes = small_file::read(path, "a baseline, as --write-baseline writes it", LARGEST)?;
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot read the baseline {}: {error}", shown_path(path)))
    };
    let text = String::from_utf8(bytes).map_err(|error| failed(&error))?;
    Baseline::parse(&text).map_err(|error| failed(&error))
}

/// Maximum number of outdated entries that are named.
const NAMED: usize = 20;

/// Returns messages about outdated entries of the baseline: their artifact no longer has these
/// findings, or is gone.
pub(crate) fn outdated(comparison: &Comparison<'_>) -> Vec<String> {
    let unmatched = comparison.unmatched();
    let is_gone = |entry: &Entry| {
        !entry.artifact.contains("://")
            && entry.artifact != "-"
            && !Path::new(&entry.artifact).exists()
    };
    let outdated: Vec<&Unmatched> =
        unmatched.iter().filter(|one| one.was_judged || is_gone(&one.entry)).collect();
    let mut sentences: Vec<String> = outdated.iter().take(NAMED).map(|one| sentence(one)).collect();
    if outdated.len() > NAMED {
        let more = (outdated.len() - NAMED) as u64;
        sentences.push(format!("{} of the baseline no longer occur", count(more, "more entry")));
    }
    sentences
}

fn sentence(unmatched: &Unmatched) -> String {
    let Entry { artifact, release, rule, place, .. } = &unmatched.entry;
    let at = place.as_ref().map(|place| format!(" at {}", shown(place))).unwrap_or_default();
    let release = release.as_ref().map(|release| format!(" ({release})")).unwrap_or_default();
    let why = if unmatched.was_judged { "no longer occurs" } else { "is of a file that is gone" };
    format!("the baseline's {rule}{at} of {}{release} {why}", shown(artifact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_for_rules_that_warn() {
        assert_eq!(warning("attribute_dropped", Level::Deny).unwrap(), Rule::AttributeDropped);
        for (name, words) in [
            ("unknown_op", "--allow unknown_op: the rule refuses"),
            ("atribute_dropped", "did you mean attribute_dropped?"),
        ] {
            let error = warning(name, Level::Allow).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
