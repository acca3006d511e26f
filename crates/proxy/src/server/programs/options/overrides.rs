//! `env_option_overrides` of `xla.CompileOptionsProto`: options by name, from JAX's
//! `compiler_options`.

use serdes::codec::Status;

use super::{
    rules::{OptionRules, refused, refused_value},
    table::{self, DebugOption, Kind, Otherwise},
    wire::{Fields, Value},
};
use crate::status::status;

/// Effort options of the compiler, which are not debug options: from -1 to 1.
const EFFORTS: [&str; 2] = ["exec_time_optimization_effort", "memory_fitting_effort"];

/// The fields of `xla.OptionOverrideProto`.
mod form {
    pub(super) const TEXT: u32 = 1;
    pub(super) const BOOL: u32 = 2;
    pub(super) const INT: u32 = 3;
    pub(super) const DOUBLE: u32 = 4;
}

/// Rebuilds an entry of the map for a plug-in; `None` if it is omitted.
///
/// # Errors
/// INVALID_ARGUMENT with the name of the refused option.
pub(super) fn rebuilt(entry: &[u8], rules: &OptionRules) -> Result<Option<Vec<u8>>, Status> {
    let (mut name, mut given) = (&b""[..], &b""[..]);
    for field in Fields(entry) {
        match field? {
            (1, Value::Bytes(bytes)) => name = bytes,
            (2, Value::Bytes(bytes)) => given = bytes,
            (number, _) => {
                return Err(status!(
                    InvalidArgument,
                    "an entry of env_option_overrides has the field {number}; expected a name and a value"
                ));
            }
        }
    }
    let name = std::str::from_utf8(name).map_err(|_| {
        status!(InvalidArgument, "a name in env_option_overrides is no text; expected one")
    })?;
    // The last of several values counts.
    let value = Fields(given).last().transpose()?;
    let takes = match table::by_name(name) {
        _ if rules.allows(name) => true,
        Some(option) => takes(option, value),
        None => EFFORTS.contains(&name) && is_effort(value),
    };
    if takes {
        let mut only = Vec::new();
        if let Some((number, value)) = value {
            value.write(number, &mut only);
        }
        let mut rebuilt = Vec::new();
        Value::Bytes(name.as_bytes()).write(1, &mut rebuilt);
        Value::Bytes(&only).write(2, &mut rebuilt);
        return Ok(Some(rebuilt));
    }
    let found = value.map_or_else(|| "nothing".to_owned(), |(_, value)| value.describe());
    match table::by_name(name) {
        Some(option) if option.otherwise == Otherwise::LeftOut => {
            tracing::debug!("the compile option {} of a client was left out", option.name);
            Ok(None)
        }
        Some(option) => Err(refused_value(option, &found)),
        None if EFFORTS.contains(&name) => Err(refused(name, &found, "a number from -1 to 1")),
        None => {
            let name: String = name.chars().take(100).collect();
            Err(refused(&name, &found, "nothing"))
        }
    }
}

/// Returns true if the option permits the value; clients write numbers as text, too.
fn takes(option: &DebugOption, value: Option<(u32, Value<'_>)>) -> bool {
    match value {
        Some((form::BOOL, Value::Number(number @ (0 | 1)))) => {
            option.kind == Kind::Bool && option.takes_number(number.cast_signed())
        }
        Some((form::INT, Value::Number(number))) => {
            matches!(option.kind, Kind::Bool | Kind::Int | Kind::Enum)
                && option.takes_number(number.cast_signed())
        }
        Some((form::DOUBLE, Value::Fixed64(bytes))) => {
            let number = f64::from_le_bytes(bytes);
            match option.kind {
                Kind::Double => option.takes_fraction(number),
                Kind::Float => option.takes_fraction(f64::from(number as f32)),
                _ => false,
            }
        }
        Some((form::TEXT, Value::Bytes(bytes))) => {
            std::str::from_utf8(bytes).is_ok_and(|text| takes_word(option, text))
        }
        _ => false,
    }
}

fn takes_word(option: &DebugOption, text: &str) -> bool {
    match option.kind {
        Kind::Bool => match text {
            "True" | "true" | "1" => option.takes_number(1),
            "False" | "false" | "0" => true,
            _ => false,
        },
        Kind::Int => text.parse().is_ok_and(|number| option.takes_number(number)),
        Kind::Float => text.parse::<f32>().is_ok_and(|number| option.takes_fraction(number.into())),
        Kind::Double => text.parse().is_ok_and(|number| option.takes_fraction(number)),
        Kind::Text => option.takes_text(text),
        Kind::Enum | Kind::Message | Kind::List => text.is_empty(),
    }
}

fn is_effort(value: Option<(u32, Value<'_>)>) -> bool {
    match value {
        Some((form::DOUBLE, Value::Fixed64(bytes))) => {
            (-1.0..=1.0).contains(&f64::from_le_bytes(bytes))
        }
        Some((form::TEXT, Value::Bytes(bytes))) => {
            let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<f64>().ok());
            number.is_some_and(|number| (-1.0..=1.0).contains(&number))
        }
        _ => false,
    }
}
