//! Remedies of verdicts for users of the command: the library's, with the command's options.

use std::borrow::Cow;

use serdes_check::{Reason, Remedy, Rule};

use crate::{failure::Failure, status::ExitStatus};

/// Returns the text of a remedy for a user of this command.
pub(crate) fn words(remedy: &Remedy) -> Cow<'static, str> {
    match remedy {
        Remedy::ChooseTags => "name the tags of the meta graph to load (--tags)".into(),
        Remedy::NameOperation { operation } => format!("{remedy} (--custom-op {operation})").into(),
        Remedy::General(rule) => general(*rule).into(),
        remedy => remedy.to_string().into(),
    }
}

/// Returns the text of the verdict on an artifact that breaks a rule.
pub(crate) fn verdict(rule: Rule) -> Cow<'static, str> {
    let outcome = rule.outcome();
    if rule.is_warning() {
        format!("warning; {outcome} with --strict").into()
    } else {
        outcome.id().into()
    }
}

/// Returns the general remedy of a rule for a user of this command.
pub(crate) fn general(rule: Rule) -> &'static str {
    match rule {
        Rule::TooNew => {
            "Upgrade the reader, or have the artifact written at an older version (`--serdes-version week-4-old`)."
        }
        Rule::UnknownOp => {
            "Load the model with a release that has the operation, or export it with an older operation in its place. An operation of a library that the consumer loads is named by `--custom-op NAME`, several by `--ops FILE`."
        }
        Rule::LoaderDiffers => {
            "Find out which loader the consumer uses; `--loader NAME` has another one decide."
        }
        Rule::NotFound => "Check the path and the tags; `serdes inspect` lists what is there.",
        rule => rule.explain().remedy,
    }
}

/// Returns the command's addition to the example of a rule.
pub(crate) fn example(rule: Rule) -> &'static str {
    match rule {
        Rule::NotFound => {
            "A SavedModel with the tags [train], and no `--tags`: the default is `serve`, or the only meta graph."
        }
        rule => rule.explain().example,
    }
}

/// Returns the help for a reason; the general one is left to `explain`.
pub(crate) fn help(reason: &Reason) -> Option<Cow<'static, str>> {
    match &reason.remedy {
        Remedy::General(_) => None,
        remedy => Some(words(remedy)),
    }
}

/// Converts a reason to a failure.
pub(crate) fn failure(reason: &Reason) -> Failure {
    let place = reason.place.as_ref().map(|place| format!(" (at {place})")).unwrap_or_default();
    let message = format!("{}: {}{place}", reason.rule, reason.message);
    let failure = match ExitStatus::of(reason.rule.outcome()) {
        ExitStatus::Negative => Failure::no(message),
        _ => Failure::new(message),
    };
    match help(reason) {
        Some(help) => failure.with_hint(help),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_of_the_command_are_the_librarys_with_options() {
        assert!(words(&Remedy::ChooseTags).starts_with(&Remedy::ChooseTags.to_string()));
        assert!(words(&Remedy::ChooseTags).contains("--tags"));
        assert!(general(Rule::TooNew).contains("--serdes-version"));
        let named = Remedy::NameOperation { operation: "Ours".to_owned() };
        assert!(words(&named).ends_with("(--custom-op Ours)"));
        assert!(general(Rule::UnknownOp).contains("--custom-op"));
        assert!(general(Rule::LoaderDiffers).contains("--loader"));
        assert_eq!(words(&Remedy::ExportAgain), Remedy::ExportAgain.to_string());
        assert_eq!(words(&Remedy::General(Rule::Corrupt)), Rule::Corrupt.explain().remedy);
    }
}
