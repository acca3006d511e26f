//! Bans of operations, as the recipes of [`evolution`](serdes::version::evolution) make them, for
//! graphs.

use serdes::version::evolution::OperationBan;
use serdes_graphs::graph::DeprecatedOperation;

/// The operation that a ban deprecates.
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
    fn a_ban_of_a_recipe_is_an_operation_of_the_list() {
        let ban = OperationBan::new("OurFusedOp", 2000, "OurFusedOpV2");
        let list = DeprecatedOperations::tensorflow().clone().with([deprecated(&ban)]);
        let listed = list.get("OurFusedOp").unwrap();
        assert_eq!((listed.version, listed.replacement.as_deref()), (2000, Some("OurFusedOpV2")));
        let without = deprecated(&OperationBan::new("OurFusedOp", 2000, ""));
        assert_eq!(without.replacement, None);
    }
}
