//! Bans of operations from [`evolution`](serdes::version::evolution), as rules for graphs.

use serdes::version::evolution::OperationBan;
use serdes_graphs::graph::DeprecatedOperation;

/// Converts a ban to a deprecated operation: graphs of producers from its version onwards are
/// refused if they have the operation.
pub(super) fn deprecated(ban: &OperationBan) -> DeprecatedOperation {
    DeprecatedOperation {
        name: ban.operation.clone(),
        version: ban.from_version,
        replacement: (!ban.replacement.is_empty()).then(|| ban.replacement.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serdes_graphs::graph::DeprecatedOperations;

    use super::*;

    #[test]
    fn ban_becomes_a_deprecated_operation() {
        let ban = OperationBan::new("OurFusedOp", 2000, "OurFusedOpV2");
        let list = DeprecatedOperations::tensorflow().clone().with([deprecated(&ban)]);
        let listed = list.get("OurFusedOp").unwrap();
        assert_eq!((listed.version, listed.replacement.as_deref()), (2000, Some("OurFusedOpV2")));
        let without = deprecated(&OperationBan::new("OurFusedOp", 2000, ""));
        assert_eq!(without.replacement, None);
    }
}
