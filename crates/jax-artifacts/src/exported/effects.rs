//! Effects of a function, and safety checks disabled when it was exported.

use super::{
    flatbuffer::Vector,
    profile::ReaderProfile,
    refusal::{Refusal, Result},
};
use crate::rule::Rule;

/// Effects of `jax._src` that every judged release can create without arguments.
const KNOWN: [&str; 8] = [
    "callback.IOEffect",
    "callback.OrderedIOEffect",
    "debugging.DebugEffect",
    "debugging.OrderedDebugEffect",
    "export.shape_poly.ShapeAssertionEffect",
    "ffi.FfiEffect",
    "lax.lax.NoDCEEffect",
    "lax.parallel.SingleSideCollectiveEffect",
];

/// Limit on the effects and checks that are kept; further ones are only examined.
const MOST_KEPT: usize = 1000;

/// A safety check that was disabled when the file was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisabledCheck {
    /// The check of the platform on which the function is called.
    Platform,
    /// The check of custom calls to this target.
    CustomCall(String),
    /// The check of assertions about shapes; disabling it no longer has an effect.
    ShapeAssertions,
}

pub(super) fn read_effects(
    effects: Vector<'_, '_>,
    profile: &ReaderProfile<'_>,
) -> Result<Vec<String>> {
    let place = "the effects";
    let mut names = Vec::new();
    for index in 0..effects.len() {
        let name = effects.table(index).and_then(|effect| effect.needed_string(0));
        let name = Refusal::at(name, place)?;
        let class = name.strip_prefix("<class 'jax._src.").and_then(|name| name.strip_suffix("'>"));
        if !class.is_some_and(|class| KNOWN.contains(&class)) && !profile.is_lenient {
            let message =
                format!("the function has the effect {name}, which this release does not make");
            let expected = "an effect that jax makes without arguments";
            return Err(Refusal::new(Rule::MissingType, name, expected, message, place));
        }
        if names.len() < MOST_KEPT {
            names.push(class.unwrap_or(name).to_owned());
        }
    }
    Ok(names)
}

pub(super) fn read_checks(checks: Vector<'_, '_>) -> Result<Vec<DisabledCheck>> {
    let place = "the disabled checks";
    let mut found = Vec::new();
    for index in 0..checks.len() {
        let check = Refusal::at(checks.table(index), place)?;
        let check = match Refusal::at(check.i8(0), place)? {
            0 => DisabledCheck::Platform,
            1 => DisabledCheck::CustomCall(Refusal::at(check.needed_string(1), place)?.to_owned()),
            2 => DisabledCheck::ShapeAssertions,
            other => {
                let message =
                    format!("a disabled check is of kind {other}, and this release knows 0 to 2");
                let rule = if other > 2 { Rule::TooNew } else { Rule::Corrupt };
                return Err(Refusal::new(rule, other.to_string(), "0..2", message, place));
            }
        };
        if found.len() < MOST_KEPT {
            found.push(check);
        }
    }
    Ok(found)
}
