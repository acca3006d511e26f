//! Reasons for which a release refuses a module.

use serdes_mlir_bytecode::{Stop, UnknownCode};

use crate::{
    bytecode::{
        Module, NEWEST_BYTECODE, SDY_REDUCTION_SINCE, SDY_SHARDING_WITH_REDUCTION,
        vhlo_attribute_name, vhlo_attribute_since, vhlo_type_since,
    },
    release::{Deserializer, Release, StableHlo},
    rule::Rule,
    vocabulary,
};

/// A part of a module that a release does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) rule: Rule,
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) message: String,
    /// The version of StableHLO that introduced it, if one did.
    pub(crate) since: Option<StableHlo>,
}

/// The version from which custom calls can return futures.
const FUTURES_OF_CUSTOM_CALLS: StableHlo = StableHlo::new(1, 17, 0);

/// Returns the parts of a module that a release does not accept. `has_all_dialects` is true if the
/// reader knows all dialects, instead of only those that JAX writes.
pub(crate) fn needs(module: &Module, release: &Release, has_all_dialects: bool) -> Vec<Need> {
    let mut needs = Vec::new();
    if module.is_too_new {
        let found = module.bytecode_version.unwrap_or_default().to_string();
        let message = format!(
            "the module is MLIR bytecode of version {found}, and every known jaxlib reads up to {NEWEST_BYTECODE}"
        );
        let expected = format!("0..{NEWEST_BYTECODE}");
        needs.push(Need { rule: Rule::TooNew, found, expected, message, since: None });
        return needs;
    }
    add_dialects(module, has_all_dialects, &mut needs);
    add_operations(module, release, &mut needs);
    add_codes(module, release, &mut needs);
    match &module.stop {
        Some(Stop::UnknownCode(unknown)) => needs.push(unknown_code(unknown, release)),
        // Bytes after something unknown cannot be distinguished from damage.
        Some(Stop::Damaged(damage)) if needs.is_empty() => {
            let found = format!("something else at byte {} of the module", damage.at);
            let message =
                format!("at byte {} of the module, there is not {}", damage.at, damage.expected);
            let expected = damage.expected.to_owned();
            needs.push(Need { rule: Rule::Corrupt, found, expected, message, since: None });
        }
        _ => {}
    }
    needs
}

fn add_dialects(module: &Module, has_all: bool, needs: &mut Vec<Need>) {
    for name in &module.dialects {
        if !vocabulary::knows_dialect(name, has_all) {
            let message = format!(
                "the module uses the dialect {name}, which this way of loading does not know"
            );
            let expected = "the dialects builtin, vhlo and sdy".to_owned();
            let found = name.clone();
            needs.push(Need { rule: Rule::ReleaseRefuses, found, expected, message, since: None });
        }
    }
    for name in &module.versioned_dialects {
        let message = format!("the dialect {name} of the module has a version of its own");
        let expected = "dialects without versions".to_owned();
        let found = name.clone();
        needs.push(Need { rule: Rule::ReleaseRefuses, found, expected, message, since: None });
    }
}

fn add_operations(module: &Module, release: &Release, needs: &mut Vec<Need>) {
    for ((dialect, name), used) in &module.operations {
        let known = match dialect.as_str() {
            "vhlo" => vocabulary::vhlo_since(name),
            "builtin" => vocabulary::builtin(name).then_some(None),
            "sdy" => vocabulary::shardy(name).map(|_| None),
            "arith" => {
                let wants_two = release.deserializer >= Deserializer::Leaves;
                if vocabulary::has_rounding_mode(name) && wants_two && used.has_one_property {
                    needs.push(old_arithmetic(name, release));
                }
                Some(None)
            }
            _ => Some(None),
        };
        let since = known.flatten();
        if known.is_some() && since.is_none_or(|since| since <= release.stablehlo) {
            continue;
        }
        let found = format!("{dialect}.{name}");
        let history = history(since);
        let message =
            format!("{release} has no operation {found}{history} ({} in the module)", used.count);
        let expected = format!("operations of StableHLO {}", release.stablehlo);
        needs.push(Need { rule: Rule::UnknownOp, found, expected, message, since });
    }
}

fn history(since: Option<StableHlo>) -> String {
    since.map(|since| format!(", which came with StableHLO {since}")).unwrap_or_default()
}

fn old_arithmetic(name: &str, release: &Release) -> Need {
    let found = format!("arith.{name}");
    let message = format!(
        "the module has {found} as jaxlib 0.10.0 and older write it, and {release} wants another property"
    );
    let expected = "two properties".to_owned();
    Need { rule: Rule::ReleaseRefuses, found, expected, message, since: None }
}

fn add_codes(module: &Module, release: &Release, needs: &mut Vec<Need>) {
    let attributes = module.vhlo_attributes.iter().filter_map(|code| {
        Some((format!("vhlo.{}", vhlo_attribute_name(*code)), vhlo_attribute_since(*code)?))
    });
    let types = module
        .vhlo_types
        .iter()
        .filter_map(|code| Some(("the type vhlo.future_v1".to_owned(), vhlo_type_since(*code)?)));
    let shardings = module.sdy_attributes.iter().filter_map(|code| {
        let found = "a sharding of shardy with a reduction".to_owned();
        (*code == SDY_SHARDING_WITH_REDUCTION).then_some((found, SDY_REDUCTION_SINCE))
    });
    let futures = module
        .has_futures_of_custom_calls
        .then(|| ("a custom call that gives a future".to_owned(), FUTURES_OF_CUSTOM_CALLS));
    for (found, since) in attributes.chain(types).chain(shardings).chain(futures) {
        if since > release.stablehlo {
            let history = history(Some(since));
            let message = format!("{release} does not know {found}{history}");
            let expected = format!("what StableHLO {} has", release.stablehlo);
            let since = Some(since);
            needs.push(Need { rule: Rule::TooNew, found, expected, message, since });
        }
    }
}

fn unknown_code(unknown: &UnknownCode, release: &Release) -> Need {
    let UnknownCode { dialect, is_type, code, at } = unknown;
    let kind = if *is_type { "type" } else { "attribute" };
    let found = format!("{kind} code {code} of {dialect}");
    let message =
        format!("at byte {at} of the module there is the {found}, which no known jaxlib has");
    let expected = format!("codes of StableHLO {}", release.stablehlo);
    Need { rule: Rule::TooNew, found, expected, message, since: None }
}
