//! The loaders of a SavedModel and their outcomes.
//!
//! Depends on the loaders' names only, and not on their checks.

use super::{Loader, Outcome, Reason, Rule, Warning, rule::messages};

/// The verdicts of TensorFlow's loaders on a SavedModel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Loaders {
    /// `tf.compat.v1.saved_model.load`.
    pub load_v1: Outcome,
    /// `tf.saved_model.load`.
    pub load: Outcome,
    /// The C++ loader, `TF_LoadSessionFromSavedModel`.
    pub cpp: Outcome,
}

/// The loaders of SavedModels.
pub(super) const LOADERS: [Loader; 3] = [Loader::LoadV1, Loader::Load, Loader::Cpp];

/// Returns the name of a loader in messages.
pub(super) const fn title(loader: Loader) -> &'static str {
    match loader {
        Loader::Import => "the C import of its graph",
        Loader::LoadV1 => "tf.compat.v1.saved_model.load",
        Loader::Load => "tf.saved_model.load",
        Loader::Cpp => "the C++ loader",
    }
}

impl Loaders {
    /// Returns the outcomes of [`LOADERS`], in their order.
    pub(super) const fn of([load_v1, load, cpp]: [Outcome; 3]) -> Self {
        Self { load_v1, load, cpp }
    }

    /// Merges what every loader finds in a further step.
    pub(super) fn add(&mut self, outcome: Outcome) {
        for loader in [&mut self.load_v1, &mut self.load, &mut self.cpp] {
            if *loader == Outcome::Acceptable {
                *loader = outcome;
            }
        }
    }
}

/// Returns the warning that a loader's verdict differs from the decisive one, given the reasons of
/// each.
pub(super) fn differs(loader: Loader, decides: &[Reason], other: &[Reason]) -> Option<Warning> {
    let name = title(loader);
    match (decides.first(), other.first()) {
        (None, Some(reason)) => {
            let place = reason.place.as_deref().map(|place| format!(" (at {place})"));
            let why = format!("{}: {}", reason.rule, reason.message);
            Some(messages::loader_refuses(name, place.unwrap_or_default(), why).into())
        }
        (Some(_), None) => Some(messages::loader_takes(name, why_it_takes(loader, decides)).into()),
        _ => None,
    }
}

/// Returns why a loader accepts a model that is refused for these reasons.
fn why_it_takes(loader: Loader, reasons: &[Reason]) -> &'static str {
    let is_of_files = |reason: &Reason| {
        matches!(reason.rule, Rule::VariableMismatch | Rule::NotFound | Rule::Corrupt)
    };
    match loader {
        Loader::Load if !reasons.iter().all(is_of_files) => {
            ": it looks neither at the versions nor at the nodes outside of functions of a model in the TF2 format"
        }
        Loader::Import | Loader::LoadV1 | Loader::Load | Loader::Cpp => {
            ", because it does not look at that"
        }
    }
}
