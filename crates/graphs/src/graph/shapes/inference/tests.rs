use std::collections::BTreeSet;

use super::*;
use crate::{
    graph::{
        attributes::Attributes,
        shapes::{shape::UNKNOWN, tensor::Variable},
        tests::attributes_of,
    },
    ops::{Attribute, Element, Registry, type_name},
};

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        // The xorshift generator by G. Marsaglia, with shifts of 13, 7 and 17.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }

    fn any_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// Returns the operations with known shape functions, each as defined by the newest release that
/// has it.
fn operations() -> Vec<Operation<'static>> {
    let oldest = Registry::tensorflow("2.12").unwrap();
    let newest = Registry::tensorflow("2.21").unwrap();
    let names: BTreeSet<&str> =
        oldest.operations().chain(newest.operations()).map(|one| one.name()).collect();
    let operations = names.into_iter().filter_map(Registry::operation_of_any_release);
    operations.filter(|operation| !ShapeRule::of(*operation).is_empty()).collect()
}

/// Returns a value that an attribute accepts, as text, mostly one that fits an image or a matrix.
fn value(attribute: Attribute<'_>, numbers: &mut Numbers, rank: usize) -> String {
    let least = attribute.minimum().unwrap_or(0);
    let one = |numbers: &mut Numbers| match attribute.kind().element {
        Element::Int => ("i", least.max(numbers.any_of(&[0, 1, 1, 2])).to_string()),
        Element::Float => ("f", "1.0".to_owned()),
        Element::Bool => ("b", numbers.any_of(&["false", "true"]).to_owned()),
        Element::Type => ("type", type_name(1).into_owned()),
        Element::Shape => {
            ("shape", numbers.any_of(&["{ unknown_rank: true }", "{ dim { size: 2 } }"]).to_owned())
        }
        Element::Function => ("func", "{ name: 'f' }".to_owned()),
        Element::Tensor => {
            ("tensor", "{ dtype: DT_FLOAT tensor_shape { } float_val: 1.0 }".to_owned())
        }
        Element::String => {
            let texts = [
                "'VALID'",
                "'SAME'",
                "'NHWC'",
                "'NDHWC'",
                "'NCHW'",
                "'ij,jk->ik'",
                "'ij->j'",
                "''",
            ];
            ("s", numbers.any_of(&texts).to_owned())
        }
    };
    if !attribute.kind().is_list {
        let (field, value) = one(numbers);
        return format!("{field}: {value}");
    }
    let is_window = matches!(attribute.name(), "strides" | "ksize" | "dilations");
    let length = if is_window { rank } else { (least as usize).max(numbers.any_of(&[0, 1, 1, 2])) };
    let values: String = (0..length)
        .map(|place| {
            let (field, value) = one(numbers);
            let is_outer = is_window && (place == 0 || place + 1 == length);
            if is_outer { format!("{field}: 1 ") } else { format!("{field}: {value} ") }
        })
        .collect();
    format!("list {{ {values} }}")
}

fn attributes(operation: Operation<'_>, numbers: &mut Numbers, rank: usize) -> Attributes {
    let mut values = Vec::new();
    for attribute in operation.attributes() {
        if attribute.has_default() && !numbers.one_in(4) {
            continue;
        }
        values.push((attribute.name(), value(attribute, numbers, rank)));
    }
    let values: Vec<(&str, &str)> = values.iter().map(|(name, text)| (*name, &**text)).collect();
    attributes_of(&values)
}

/// Returns a fully known tensor: mostly of this rank, sometimes one that says how others are
/// combined.
fn tensor(numbers: &mut Numbers, rank: usize) -> Tensor {
    let rank = if numbers.one_in(3) { numbers.below(3) } else { rank };
    let sizes: Vec<i64> = (0..rank).map(|_| numbers.any_of(&[1, 2, 2, 2, 3])).collect();
    let elements = sizes.iter().product::<i64>() as usize;
    let mut tensor = Tensor::of(Shape::of(&sizes));
    if rank < 3 {
        let values: Vec<i64> = (0..elements).map(|_| numbers.any_of(&[0, 1, 1, 2, -1])).collect();
        tensor.value = Some(values.into());
    }
    if numbers.one_in(2) {
        let variable = Variable { data_type: 1, shape: Shape::of(&sizes) };
        tensor.variable = Some(variable.into());
    }
    tensor
}

/// Returns the same tensor with less known about it.
fn less_of(tensor: &Tensor, numbers: &mut Numbers) -> Tensor {
    let mut less = tensor.clone();
    if numbers.one_in(2) {
        less.value = None;
    }
    if numbers.one_in(2) {
        less.variable = None;
    }
    match (numbers.below(3), less.shape.dimensions()) {
        (0, _) => {
            // A tensor of unknown rank has unknown values.
            (less.shape, less.value) = (Shape::unknown(), None);
        }
        (1, Some(sizes)) => {
            let sizes: Vec<i64> =
                sizes.iter().map(|size| numbers.any_of(&[*size, UNKNOWN])).collect();
            less.value = less.value.filter(|_| !sizes.contains(&UNKNOWN));
            less.shape = Shape::of(&sizes);
        }
        _ => {}
    }
    less
}

fn inputs(operation: Operation<'_>, attributes: &Attributes) -> usize {
    let node = ShapedNode { operation, attributes, inputs: &[], producer: 2000, is_in_body: false };
    node.input_counts().map(|count| count.unwrap_or(1).min(8)).sum()
}

#[test]
fn nothing_is_refused_of_which_nothing_is_known() {
    for operation in operations() {
        let rule = ShapeRule::of(operation);
        let held: Vec<(&str, &str)> = operation
            .attributes()
            .map(|attribute| (attribute.name(), "placeholder: 'a'"))
            .collect();
        let attributes = attributes_of(&held);
        for count in 0..=6 {
            let inputs = vec![Tensor::nothing(); count];
            for producer in [0, 2000] {
                let (attributes, inputs) = (&attributes, &inputs[..]);
                let node = ShapedNode { operation, attributes, inputs, producer, is_in_body: true };
                let found = rule.infer(&node);
                assert!(found.is_ok(), "{} with {count} inputs: {found:?}", operation.name());
            }
        }
    }
}

#[test]
fn inference_accepts_and_infers_the_same_where_less_is_known() {
    /// Number of graphs for each operation.
    const DRAWS: usize = 400;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut never = Vec::new();
    let rules = operations().into_iter().map(|operation| (operation, ShapeRule::of(operation)));
    for (operation, rule) in rules.filter(|(_, rule)| rule.function.is_some()) {
        let mut accepted = 0;
        for draw in 0..DRAWS {
            let rank = draw % 6;
            let attributes = attributes(operation, &mut numbers, rank);
            let count = inputs(operation, &attributes);
            let all: Vec<Tensor> = (0..count).map(|_| tensor(&mut numbers, rank)).collect();
            let infer = |inputs: &[Tensor]| {
                let (attributes, producer, is_in_body) = (&attributes, 2000, false);
                rule.infer(&ShapedNode { operation, attributes, inputs, producer, is_in_body })
            };
            let Ok(given) = infer(&all) else { continue };
            accepted += 1;
            for _ in 0..3 {
                let less: Vec<Tensor> = all.iter().map(|one| less_of(one, &mut numbers)).collect();
                let name = operation.name();
                let found = infer(&less);
                let Ok(found) = found else {
                    panic!("{name} of {all:?}, then of {less:?}: {found:?}")
                };
                for (found, given) in found.iter().zip(&given) {
                    let is_same = found.shape.merge(&given.shape).is_ok();
                    assert!(is_same, "{name} of {all:?} gives {given:?}, of {less:?} {found:?}");
                }
            }
        }
        if accepted == 0 {
            never.push(operation.name());
        }
    }
    // Random ranks never fit all of the many inputs of these operations.
    never.retain(|name| !name.contains("Quantized"));
    assert!(never.is_empty(), "never accepted: {never:?}");
}
