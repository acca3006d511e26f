//! Rules for the compile options of clients: the table, and additions by the server's operator.

use std::collections::BTreeSet;

use serdes::codec::Status;
use serdes_pjrt::Minor;

use super::table::{self, DebugOption, Otherwise};
use crate::{ProxyError, status::status};

/// Options that the operator has allowed beyond the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionRules {
    names: BTreeSet<String>,
    numbers: BTreeSet<u32>,
}

/// Facts about the compiling machine, for interpreting options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) minor: Minor,
    /// Ordinals of the devices.
    pub(crate) devices: &'a [i32],
}

impl OptionRules {
    /// Creates rules that permit these options with any value: by name, or by number in
    /// `xla.DebugOptions`.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for an invalid name, and for options that are command lines of
    /// other programs: their values could run anything.
    pub(crate) fn new(allowed: impl IntoIterator<Item = String>) -> Result<Self, ProxyError> {
        let mut rules = Self::default();
        for name in allowed {
            let name = name.trim_start_matches("--").to_owned();
            let number: Option<u32> = name.parse().ok();
            let known = number.map_or_else(|| table::by_name(&name), table::by_number);
            if known.is_some_and(|known| known.otherwise == Otherwise::NeverAllowed) {
                let reason = "its value is a command line, which can run programs and write files; no client gets it";
                return Err(ProxyError::configuration("the compile option", name, reason));
            }
            let is_name =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_name) {
                let reason = "expected the name of an option, such as xla_cpu_enable_fast_math, or its number in xla.DebugOptions";
                let found = name.escape_debug().to_string();
                return Err(ProxyError::configuration("the compile option", found, reason));
            }
            rules.numbers.extend(number.or(known.map(|known| known.number)));
            rules.names.extend(known.map(|known| known.name.to_owned()));
            rules.names.insert(name);
        }
        Ok(rules)
    }

    /// Returns true if the operator has allowed the field of `xla.DebugOptions`.
    pub(super) fn allows_number(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }

    /// Returns true if the operator has allowed the option.
    pub(super) fn allows(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// Returns the error for a refused option, with the found and the permitted value.
pub(super) fn refused(name: &str, found: &str, expected: &str) -> Status {
    status!(
        InvalidArgument,
        "the compile option {} is {found}; this server takes {expected} for it from its clients: take it out of XLA_FLAGS or `compiler_options`, or ask the server's operator to allow it",
        name.escape_debug()
    )
}

/// Like [`refused`], for an option of the table.
pub(super) fn refused_value(option: &DebugOption, found: &str) -> Status {
    if option.otherwise == Otherwise::NeverAllowed {
        return status!(
            InvalidArgument,
            "the compile option {} is {found}; no server takes it from its clients, for its value can run programs and write files where the program is compiled: take it out of XLA_FLAGS or `compiler_options`",
            option.name
        );
    }
    refused(option.name, found, &option.expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(name: &str) -> Result<OptionRules, String> {
        OptionRules::new([name.to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn option_rules_take_names_and_numbers() {
        let by_name = rules("xla_cpu_mock_custom_calls").unwrap();
        let by_number = rules("548").unwrap();
        for rules in [by_name, by_number, rules("--xla_cpu_mock_custom_calls").unwrap()] {
            assert!(rules.allows("xla_cpu_mock_custom_calls") && rules.allows_number(548));
            assert!(!rules.allows("xla_dump_to") && !rules.allows_number(109));
        }
        assert!(
            rules("xla_tpu_scoped_vmem_limit_kib").unwrap().allows("xla_tpu_scoped_vmem_limit_kib")
        );
        assert!(rules("9999").unwrap().allows_number(9999));
    }

    #[test]
    fn option_rules_refuse_command_lines_and_nonsense() {
        for name in ["xla_backend_extra_options", "500", "xla_gpu_ptx_compiler_extra_flags"] {
            assert!(rules(name).unwrap_err().contains("command line"), "{name}");
        }
        for name in ["", "xla dump", "a=b", "XLA_DUMP"] {
            assert!(rules(name).unwrap_err().contains("expected the name"), "{name}");
        }
    }
}
