//! Measured or reported requirements that the metadata do not declare correctly.

use super::{
    declared,
    findings::{Findings, View},
    unmet::Unmet,
};

/// Returns the unmet requirements of the table.
pub(super) fn unmet<'a>(view: &View<'a>, findings: &mut Findings) -> Vec<Unmet<'a>> {
    let mut unmet: Vec<Unmet<'a>> = Vec::new();
    for package in view.environment.packages.values() {
        for need in view.known.needs_of(&package.name, &package.version) {
            let required = need.needs.name.as_ref();
            let Some(other) = view.environment.provider(required) else { continue };
            let Some(wanted) = declared::specifiers(&need.needs) else { continue };
            let fits = wanted.contains(&other.public());
            if !fits || need.replaces_declared() {
                findings.explain(&package.name, &other.name);
            }
            // jax and jaxlib belong together: requirements on other versions of both have one
            // cause.
            let is_said = other.name == "jaxlib"
                && unmet
                    .iter()
                    .any(|one| one.package.name == package.name && one.other.name == "jax");
            if !fits && !is_said {
                let (rule, wanted) = (declared::rule_of(required), wanted.clone());
                unmet.push(Unmet { package, other, wanted, rule, need: Some(need) });
            }
        }
    }
    unmet
}
