//! Rules for the targets of custom calls in programs, and for the dialects of their operations.
//!
//! A custom call names a function that the plug-in has, with operands of any number and shape. Many
//! of these functions expect the compiler as their only caller: one of oneDNN in the CPU plug-ins
//! reads uninitialized memory, or ends the process, when a program calls it. A program may
//! therefore name targets that are not functions, markers that the compiler removes or expands.
//! Every other target is refused before a compiler sees the program, unless the operator has
//! allowed it.
//!
//! Source: programs from jaxlib 0.8.0 to 0.12.0.1, and the treatment of each of these names by the
//! CPU plug-ins of PJRT 0.81, 0.106 and 0.115 (`tests/interop/jaxlib_hostile.py`).

use std::collections::BTreeSet;

use serdes::{codec::Status, stablehlo::Program};

use crate::{ProxyError, status::status};

/// Targets that compilers remove or expand, with their meaning.
const COMPILER_TARGETS: &[&str] = &[
    // The sharding of an array, and per-device parts of a program.
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    // The same in programs from Shardy's exporter.
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.ShardingGroup",
    // The memory kind of an array.
    "annotate_device_placement",
    // Linear algebra and searches, which XLA expands to its own operations; JAX calls these on
    // platforms other than CPU and GPU.
    "ApproxTopK",
    "Eigh",
    "LuDecomposition",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    // Operations of CHLO, which are custom calls in a portable artifact.
    "mhlo.acos",
    "mhlo.acosh",
    "mhlo.asin",
    "mhlo.asinh",
    "mhlo.atanh",
    "mhlo.cosh",
    "mhlo.erf",
    "mhlo.ragged_dot",
    "mhlo.sinh",
    "mhlo.tan",
    "mhlo.topk",
];

/// Dialects of a portable artifact's operations: versioned StableHLO, the surrounding module, and
/// shardings.
const DIALECTS: &[&str] = &["vhlo", "builtin", "sdy"];

/// The functions that clients' programs may call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallRules {
    names: BTreeSet<String>,
    prefixes: Vec<String>,
}

impl CallRules {
    /// Creates rules that allow these functions as well; `PREFIX*` allows every name with that
    /// prefix.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for an empty name or prefix, and for one with characters other
    /// than visible ASCII.
    pub(crate) fn new(allowed: impl IntoIterator<Item = String>) -> Result<Self, ProxyError> {
        let mut rules = Self::default();
        for name in allowed {
            let prefix = name.strip_suffix('*');
            let checked = prefix.unwrap_or(&name);
            if checked.is_empty() || !checked.chars().all(|letter| letter.is_ascii_graphic()) {
                let reason = "expected the name of a function that programs call, such as lapack_spotrf_ffi, or its beginning and `*`";
                let found = name.escape_debug().to_string();
                return Err(ProxyError::configuration("the custom call", found, reason));
            }
            match prefix {
                Some(prefix) => rules.prefixes.push(prefix.to_owned()),
                None => {
                    rules.names.insert(name);
                }
            }
        }
        Ok(rules)
    }

    /// Checks that a program has only operations of the dialects of portable artifacts, and calls
    /// only allowed functions.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the dialect or the function; also for a custom call whose target
    /// cannot be read.
    pub(crate) fn check(&self, program: &Program<'_>) -> Result<(), Status> {
        let mut dialects = program.operation_dialects();
        if let Some(dialect) = dialects.find(|dialect| !DIALECTS.contains(dialect)) {
            return Err(status!(
                InvalidArgument,
                "the program has operations of the dialect `{}`; expected {} alone, as portable artifacts have them",
                shortened(dialect),
                DIALECTS.join(", ")
            ));
        }
        for name in program.custom_calls() {
            let name = name.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "the program has a custom call whose target cannot be read; expected its name"
                )
            })?;
            if !self.allows(name) {
                return Err(status!(
                    InvalidArgument,
                    "the program calls the function `{}` by its name, in a custom call; this server takes {} from its clients, for others may end it: write the program without it, run that part on the client's own CPU, or ask the server's operator to allow it, if its plug-in has it",
                    shortened(name),
                    COMPILER_TARGETS.join(", ")
                ));
            }
        }
        Ok(())
    }

    fn allows(&self, name: &str) -> bool {
        COMPILER_TARGETS.contains(&name)
            || self.names.contains(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Returns the first 100 characters of a name that a client sent, escaped.
fn shortened(name: &str) -> String {
    name.chars().take(100).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::codec::StatusCode;

    const CHOLESKY: &[u8] =
        include_bytes!("../../../../../tests/data/stablehlo/cholesky-1.22.0.mlirbc");
    const ADD: &[u8] = include_bytes!("../../../../../tests/data/stablehlo/add-1.22.0.mlirbc");

    fn check(program: &[u8], allowed: &[&str]) -> Result<(), Status> {
        let rules = CallRules::new(allowed.iter().map(|name| (*name).to_owned())).unwrap();
        rules.check(&Program::read(program).unwrap())
    }

    fn renamed(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
        assert_eq!(from.len(), to.len());
        let mut bytes = bytes.to_vec();
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    }

    #[test]
    fn custom_calls_are_refused_by_name_unless_they_are_allowed() {
        check(ADD, &[]).unwrap();
        let error = check(CHOLESKY, &["lapack_dpotrf_ffi", "other*"]).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.message().contains("`lapack_spotrf_ffi`"), "{}", error.message());
        check(CHOLESKY, &["lapack_spotrf_ffi"]).unwrap();
        check(CHOLESKY, &["lapack_*"]).unwrap();
        let harmful = renamed(CHOLESKY, b"lapack_spotrf_ffi\0", b"__onednn$convolut\0");
        let error = check(&harmful, &["lapack_*"]).unwrap_err();
        assert!(error.message().contains("`__onednn$convolut`"), "{}", error.message());
    }

    #[test]
    fn operations_of_other_dialects_are_refused() {
        let foreign = renamed(ADD, b"vhlo\0", b"mhlo\0");
        let error = check(&foreign, &[]).unwrap_err();
        assert!(error.message().contains("dialect `mhlo`"), "{}", error.message());
    }

    #[test]
    fn names_that_no_function_has_are_no_rules() {
        for name in ["", "*", "two words", "line\n"] {
            let error = CallRules::new([name.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("expected the name"), "{error}");
        }
    }
}
