//! The rules, applied to an environment.
//!
//! Rules get packages, plug-ins and the system as data, so that a changed environment can be judged
//! again, which is how remedies are checked.

mod cuda;
mod declared;
mod declared_needs;
mod files;
mod findings;
mod jax;
mod needs;
mod plugins;
mod system;
mod tensorflow;
mod torch_xla;
mod unmet;

use self::findings::View;
pub(crate) use self::{
    declared::{extras, requires, specifiers},
    findings::Findings,
};
use crate::{data::Releases, environment::Environment, libraries::Libraries};

/// Applies every rule.
pub(crate) fn judge(environment: &Environment, libraries: &dyn Libraries) -> Findings {
    let view = View { environment, known: Releases::known(), libraries };
    let mut findings = Findings {
        warnings: environment.read_warnings.clone(),
        unknown: environment.unread.clone(),
        ..Findings::default()
    };
    jax::judge(&view, &mut findings);
    plugins::judge(&view, &mut findings);
    cuda::judge(&view, &mut findings);
    torch_xla::judge(&view, &mut findings);
    tensorflow::judge(&view, &mut findings);
    let mut unmet = needs::unmet(&view, &mut findings);
    unmet.extend(declared_needs::unmet(&view, &findings));
    unmet::report(&view, unmet, &mut findings);
    system::judge(&view, &mut findings);
    files::judge(&view, &mut findings);
    findings
}
