//! `xla.DebugOptions`: some hundred switches of the compiler, which every client sends.
//!
//! They are written anew, field by field: what is not known here never reaches a plug-in. Some of
//! the fields have the compiler write or read files, run programs, or end the process, and releases
//! of XLA add some each month; so it is a list of what passes, not of what does not.

use serdes::codec::Status;
use serdes_pjrt::Minor;

use super::{
    rules::{OptionRules, Target, refused, refused_value},
    table::{self, Otherwise},
    wire::{Fields, Value},
};

/// The minor from which on plug-ins compile shardings in the named form. Clients from jaxlib 0.12
/// on ask for that form; a plug-in of minor 106 knows it, and ends the process on some programs for
/// several devices (`SubgroupReplicationDim should not be called`), and one of 115 does not.
/// Measured with the CPU plug-ins of PyPI.
const NAMED_SHARDINGS_SINCE: Minor = Minor::new(115);
/// `xla_enable_hlo_sharding_v3`, by which they are asked for.
const NAMED_SHARDINGS: u32 = 452;

/// Returns the options that a client has sent, as a plug-in gets them.
///
/// # Errors
/// INVALID_ARGUMENT with the name of what is not taken.
pub(super) fn rebuilt(
    options: &[u8],
    rules: &OptionRules,
    target: Target<'_>,
) -> Result<Vec<u8>, Status> {
    let mut rebuilt = Vec::with_capacity(options.len());
    for field in Fields(options) {
        let (number, value) = field?;
        if number == NAMED_SHARDINGS && target.minor < NAMED_SHARDINGS_SINCE {
            continue;
        }
        if passes(number, value, rules)? {
            value.write(number, &mut rebuilt);
        }
    }
    Ok(rebuilt)
}

/// Returns true if the field is passed on; else it is left out.
fn passes(number: u32, value: Value<'_>, rules: &OptionRules) -> Result<bool, Status> {
    let Some(option) = table::by_number(number) else {
        if rules.allows_number(number) {
            return Ok(true);
        }
        if value.is_nothing() {
            // As if it were not there.
            return Ok(false);
        }
        let name = format!("field {number} of xla.DebugOptions");
        return Err(refused(&name, &value.describe(), "nothing"));
    };
    if option.takes(value) || rules.allows_number(number) {
        return Ok(true);
    }
    match option.otherwise {
        Otherwise::LeftOut => {
            tracing::debug!("the compile option {} of a client was left out", option.name);
            Ok(false)
        }
        Otherwise::Refused | Otherwise::NeverAllowed => {
            Err(refused_value(option, &value.describe()))
        }
    }
}
