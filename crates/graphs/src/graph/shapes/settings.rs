//! Constraints between attributes that do not depend on the inputs.
//!
//! Depends on lists of equal lengths, and on names that represent numbers.

use super::{
    arrangement::nothing,
    node::ShapedNode,
    shape::{Inferred, Mismatch},
    tensor::Tensor,
};
use crate::{graph::attributes::AttributeValue, ops::type_name};

/// Operations that load or retrieve the parameters of an embedding on a TPU, and select the table
/// by its number or its name.
pub(super) fn embedding_table(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let (number, name) = (node.int("table_id")?, node.text("table_name")?);
    if let (Some(number), Some(name)) = (number, name)
        && (number >= 0) != name.is_empty()
    {
        let name = String::from_utf8_lossy(name);
        let found = format!("table_id = {number} and table_name = {name:?}");
        return Err(Mismatch::new(found, "one of the two"));
    }
    Ok(nothing(0))
}

/// Operations with a list of output types and one of output shapes, which must not be empty.
pub(super) fn shape_a_type(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    same_length(node, "output_types", false)
}

/// Operations whose list of output shapes may be left empty.
pub(super) fn shape_an_output(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    same_length(node, "Tout", true)
}

/// Loops, whose output types are those of the inputs.
pub(super) fn shape_a_loop_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let said = same_length(node, "T", true)?;
    // Without shapes, those of the inputs are kept.
    if said.is_empty() && node.list_length(SHAPES)? == Some(0) {
        return Ok(node.inputs.iter().map(|input| Tensor::of(input.shape.clone())).collect());
    }
    Ok(said)
}

/// The attribute with the shapes.
const SHAPES: &str = "output_shapes";

fn same_length(node: &ShapedNode<'_>, types: &str, may_be_empty: bool) -> Inferred<Vec<Tensor>> {
    if let (Some(said), Some(outputs)) = (node.list_length(SHAPES)?, node.list_length(types)?)
        && said != outputs
        && !(may_be_empty && said == 0)
    {
        let found = format!("{SHAPES} of {said} values");
        return Err(Mismatch::new(found, format!("{outputs}, as many as {types} has")));
    }
    Ok(node.said_shapes(SHAPES)?.into_iter().map(Tensor::of).collect())
}

/// `_ReadVariablesOp`: one type per handle, equal to the type of the variable.
pub(super) fn read_variables(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if let (Some(handles), Some(types)) = (node.int("N")?, node.list_length("dtypes")?)
        && u64::try_from(handles) != Ok(types)
    {
        let found = format!("dtypes of {types} values");
        return Err(Mismatch::new(found, format!("{handles}, one a handle")));
    }
    let Some(AttributeValue::List(types)) = node.attributes.get("dtypes") else {
        return Ok(nothing(0));
    };
    let types = types.types().iter();
    let types = types.flat_map(|run| std::iter::repeat_n(run.data_type, run.count as usize));
    let read = |(input, data_type): (&Tensor, i32)| match input.variable.as_deref() {
        Some(variable) if variable.data_type != data_type => {
            let found = format!("a variable of {}", type_name(variable.data_type));
            Err(Mismatch::new(found, format!("a variable of {}", type_name(data_type))))
        }
        Some(variable) => Ok(Tensor::of(variable.shape.clone())),
        None => Ok(Tensor::nothing()),
    };
    node.inputs.iter().zip(types).map(read).collect()
}
