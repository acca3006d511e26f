//! The names of the status functions that a host of StreamExecutor provides to plug-ins.

/// The names of the functions without their prefix, which is `TF_` or `TSL_`.
pub const SERVED: &[&str] = &[
    "NewStatus",
    "DeleteStatus",
    "SetStatus",
    "SetPayload",
    "ForEachPayload",
    "SetStatusFromIOError",
    "GetCode",
    "Message",
];

/// The prefixes under which each of [`SERVED`] is provided. TensorFlow's `TF_` functions jump to
/// its `TSL_` functions, so providing only the former would leave the latter to TensorFlow.
pub const PREFIXES: &[&str] = &["TF_", "TSL_"];

/// Returns true if the symbol is one of the status functions that the host provides to plug-ins.
#[must_use]
pub fn serves(symbol: &str) -> bool {
    PREFIXES
        .iter()
        .any(|prefix| symbol.strip_prefix(prefix).is_some_and(|name| SERVED.contains(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_served_names_are_sixteen() {
        assert_eq!(SERVED.len() * PREFIXES.len(), 16);
        assert!(serves("TF_SetStatus") && serves("TSL_ForEachPayload"));
        assert!(!serves("TF_RegisterKernelBuilder") && !serves("SetStatus"));
    }
}
