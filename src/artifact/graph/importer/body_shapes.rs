//! What shape functions refuse in a function, whoever calls it.
//!
//! Knows which operation each node has. It must never know what an operation does with shapes.

use std::collections::HashSet;

use super::{
    body::{Body, Owner, Owners},
    instantiate::{BodyFinding, Definitions, Finding, numbered},
    order::Visits,
};
use crate::artifact::graph::{
    ImportFaultKind,
    fault::Part,
    index::FunctionIndex,
    shapes::{ShapedBody, first_body_fault},
};

/// The first node that a shape function refuses in a function that is built, by its number.
pub(super) fn shape_fault<D: Definitions>(
    function: &FunctionIndex,
    definitions: &D,
) -> Option<BodyFinding> {
    let arguments = numbered(&function.arguments);
    let mut owners: Owners = arguments.map(|(n, a)| (a.name, Owner::Argument(n))).collect();
    for (number, node) in numbered(&function.nodes) {
        // A list of arguments may have the name of a node.
        if owners.insert(node.name, Owner::Node(number)).is_some() {
            return None;
        }
    }
    let visits = Body { function, owners }.visits();
    in_order(function, definitions, &visits)
}

/// The same where it is known when each node is visited.
pub(super) fn in_order<D: Definitions>(
    function: &FunctionIndex,
    definitions: &D,
    visits: &Visits,
) -> Option<BodyFinding> {
    let order: Vec<u32> = visits.in_order().collect();
    let called: HashSet<u32> =
        function.nodes.iter().filter(|node| node.is_function).map(|node| node.kind).collect();
    let operations = numbered(&function.kinds).map(|(number, kind)| {
        let definition = definitions.find(&kind.operation);
        definition.filter(|found| !found.is_name_alone() && !called.contains(&number))
    });
    let body = ShapedBody { function, operations: operations.collect(), order: &order };
    let (node, mismatch) = first_body_fault(&body)?;
    let fault = Finding::of(Part::Node(node), ImportFaultKind::Shape);
    Some(fault.of_operation(function, node).with(&mismatch.found, &mismatch.expected))
}
