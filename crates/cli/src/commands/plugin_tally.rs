//! Collects, counts and prints the outcomes of `serdes plugin verify`.

use std::fmt::Write as _;

use serde_json::{Value, json};
use serdes_stream_executor::conformance::{Class, Conformance};

use super::{plugin_behaviours, plugin_selection::KnownFailures};
use crate::{
    arguments::Level,
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, Terminal, WARN, harmless, shown},
};

/// An outcome with the data for reports.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) behaviour: String,
    pub(super) result: Conformance,
    pub(super) detail: String,
    pub(super) class: Class,
    /// The reason of a behaviour that is known to fail.
    pub(super) known: Option<String>,
    /// True if it makes the status 1.
    pub(super) counts: bool,
}

/// Outcomes of the behaviours so far.
pub(super) struct Tally {
    level: Level,
    known: KnownFailures,
    /// True if outcomes are printed immediately.
    prints: bool,
    tried: Vec<Tried>,
}

impl Tally {
    /// Creates an empty tally. `prints` says if outcomes are printed immediately.
    pub(super) fn new(level: Level, known: KnownFailures, prints: bool) -> Self {
        Self { level, known, prints, tried: Vec::new() }
    }

    /// Returns the outcomes in order.
    pub(super) fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// Adds a line of a process's output: an outcome, or, before its end, the reason for a missing
    /// one.
    pub(super) fn add(&mut self, line: &[u8], terminal: &mut Terminal) -> Result<(), Failure> {
        let value: Value = serde_json::from_slice(line).map_err(Failure::of)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let result =
            [Conformance::Pass, Conformance::Fail, Conformance::Unsupported, Conformance::Skipped]
                .into_iter()
                .find(|result| result.as_str() == text("result"));
        match result {
            Some(result) => self.count(text("behaviour"), result, text("detail"), terminal),
            // Users have seen it on standard error.
            None if terminal.json() => terminal.object(&value),
            None => Ok(()),
        }
    }

    /// Counts and prints an outcome.
    pub(super) fn count(
        &mut self,
        behaviour: &str,
        result: Conformance,
        detail: &str,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let guidance = plugin_behaviours::guidance(behaviour);
        // A failure outside of the suite's behaviours, such as a crash while unloading, counts as
        // required.
        let class = guidance.map_or(Class::Required, |guidance| guidance.class);
        let known = self.known.reason(behaviour).map(str::to_owned);
        let is_of_level = class == Class::Required || self.level == Level::Robust;
        let counts = match (result, &known) {
            (Conformance::Fail, None) => is_of_level,
            (Conformance::Pass, Some(_)) => true,
            _ => false,
        };
        let (behaviour, detail) = (behaviour.to_owned(), detail.to_owned());
        let tried = Tried { behaviour, result, detail, class, known, counts };
        if self.prints {
            print(&tried, terminal)?;
        }
        self.tried.push(tried);
        Ok(())
    }

    fn number(&self, is_counted: impl Fn(&&Tried) -> bool) -> usize {
        self.tried.iter().filter(is_counted).count()
    }

    /// Returns the status for the outcomes.
    pub(super) fn status(&self) -> ExitStatus {
        if self.tried.iter().any(|one| one.counts) {
            ExitStatus::Negative
        } else {
            ExitStatus::Success
        }
    }

    /// Formats the numbers of outcomes.
    pub(super) fn summary(&self) -> String {
        let of = |result| self.number(|one| one.result == result);
        let failed = of(Conformance::Fail);
        let known = self.number(|one| one.result == Conformance::Fail && one.known.is_some());
        let robust = self.number(|one| {
            one.result == Conformance::Fail && one.known.is_none() && one.class == Class::Robust
        });
        let surprising = self.number(|one| one.result == Conformance::Pass && one.counts);
        let mut words = vec![
            format!("{} passed", of(Conformance::Pass)),
            format!("{failed} failed"),
            format!("{} unsupported", of(Conformance::Unsupported)),
        ];
        if of(Conformance::Skipped) > 0 {
            words.push("the rest skipped".to_owned());
        }
        if surprising > 0 {
            words.push(format!("{surprising} passed that the list says fail"));
        }
        let mut summary = words.join(", ");
        if failed > 0 {
            let _ = write!(summary, "; of those that failed {} required", failed - known - robust);
            for (number, word) in [(robust, "robust"), (known, "known")] {
                if number > 0 {
                    let _ = write!(summary, ", {number} {word}");
                }
            }
        }
        summary
    }

    /// Prints the numbers as text; returns the status for the outcomes.
    pub(super) fn end(&self, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
        if self.prints {
            terminal.line(format_args!("\n{}", self.summary()))?;
            let is_robust = |one: &&Tried| {
                one.result == Conformance::Fail && one.class == Class::Robust && !one.counts
            };
            if self.number(is_robust) > 0 && self.level == Level::Required {
                terminal.line("robust behaviours count with --level robust")?;
            }
        }
        Ok(self.status())
    }
}

/// Prints an outcome.
fn print(tried: &Tried, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        terminal.object(&json_line(tried))
    } else {
        terminal.line(text_line(tried))
    }
}

/// Formats an outcome as a JSON object.
pub(super) fn json_line(tried: &Tried) -> Value {
    json!({
        "behaviour": tried.behaviour,
        "result": tried.result.as_str(),
        "detail": tried.detail,
        "class": tried.class.as_str(),
        "known": tried.known.is_some(),
        "counts": tried.counts,
    })
}

/// Formats an outcome as one line of text, with any message of the plug-in.
pub(super) fn text_line(tried: &Tried) -> String {
    let Tried { behaviour, result, detail, class, known, .. } = tried;
    let detail = harmless(&detail.replace('\n', " "));
    let style = match result {
        Conformance::Fail if tried.counts => BAD,
        Conformance::Pass if !tried.counts => GOOD,
        _ => WARN,
    };
    let note = match (result, class, known) {
        (Conformance::Fail, _, Some(reason)) if reason.is_empty() => "[known] ".to_owned(),
        (Conformance::Fail, _, Some(reason)) => format!("[known: {}] ", shown(reason)),
        (Conformance::Fail, Class::Robust, None) => "[robust] ".to_owned(),
        (Conformance::Pass, _, Some(_)) => "[listed as a known failure; take it out] ".to_owned(),
        _ => String::new(),
    };
    format!(
        "{style}{:<11}{style:#} {behaviour:<40} {note}{FAINT}{detail}{FAINT:#}",
        result.as_str()
    )
}
