//! `xla.DebugOptions`: some hundred compiler switches, which every client sends.
//!
//! The message is rebuilt field by field: unknown fields never reach a plug-in. Some fields make
//! the compiler write or read files, run programs, or end the process, and releases of XLA add some
//! each month; so fields are permitted by a list.

use serdes::codec::Status;
use serdes_pjrt::Minor;

use super::{
    rules::{OptionRules, Target, refused, refused_value},
    table::{self, Otherwise},
    wire::{Fields, Value},
};

/// First minor whose plug-ins compile shardings in the named form. Clients since jaxlib 0.12
/// request that form; a plug-in of minor 106 knows it, and ends the process on some programs for
/// several devices (`SubgroupReplicationDim should not be called`), and one of 115 does not.
/// Measured with the CPU plug-ins of PyPI.
const NAMED_SHARDINGS_SINCE: Minor = Minor::new(115);
/// `xla_enable_hlo_sharding_v3`, which requests them.
const NAMED_SHARDINGS: u32 = 452;

/// Rebuilds the options of a client for a plug-in.
///
/// # Errors
/// INVALID_ARGUMENT with the name of the refused option.
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

/// Returns true if the field is passed on; otherwise it is omitted.
fn passes(number: u32, value: Value<'_>, rules: &OptionRules) -> Result<bool, Status> {
    let Some(option) = table::by_number(number) else {
        if rules.allows_number(number) {
            return Ok(true);
        }
        if value.is_nothing() {
            // Treat it as absent.
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
