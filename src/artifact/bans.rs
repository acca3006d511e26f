//! Bans of operations, as the recipes of [`evolution`](crate::version::evolution) make them, for
//! graphs.

use serdes_graphs::graph::DeprecatedOperation;

use crate::version::evolution::OperationBan;

impl From<&OperationBan> for DeprecatedOperation {
    fn from(ban: &OperationBan) -> Self {
        Self {
            name: ban.operation.clone(),
            version: ban.from_version,
            replacement: (!ban.replacement.is_empty()).then(|| ban.replacement.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serdes_graphs::graph::DeprecatedOperations;

    use super::*;

    #[test]
    fn a_ban_of_a_recipe_is_an_operation_of_the_list() {
        let ban = OperationBan::new("OurFusedOp", 2000, "OurFusedOpV2");
        let list = DeprecatedOperations::tensorflow().clone().with([(&ban).into()]);
        let listed = list.get("OurFusedOp").unwrap();
        assert_eq!((listed.version, listed.replacement.as_deref()), (2000, Some("OurFusedOpV2")));
        let without = DeprecatedOperation::from(&OperationBan::new("OurFusedOp", 2000, ""));
        assert_eq!(without.replacement, None);
    }
}
