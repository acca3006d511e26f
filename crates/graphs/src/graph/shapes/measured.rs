//! Measured rules of the shape functions of nearly all operations: the ranks that an input may
//! have, the lengths of a vector, and outputs whose shapes are always the same or that of an input.
//!
//! The table `tensorflow.shapes` has one line per operation, by name: `EncodeWav 4,1 []`. The name
//! is followed by the inputs of the definition: `*`, or a mask of the ranks that are accepted, in
//! hexadecimal (bit 8 stands for 8 and all above), and behind a colon one of the lengths that a
//! vector may have. Then come the outputs: the dimensions, with `?` for an unknown one, or `=0` for
//! the shape of that input, or `*`. `-` means that the operation has none.
//! `tests/interop/operation_shapes.py` measures several releases and writes the rules that hold in
//! all of them and for all tested attributes.
//!
//! Depends on the form of the table, but not on its contents.

use std::sync::LazyLock;

use super::{
    node::{ShapedNode, at_input},
    shape::{Inferred, Mismatch, Shape, UNKNOWN},
    tensor::Tensor,
};

/// The table, ordered by name.
const TABLE: &str = include_str!("tensorflow.shapes");

/// The highest rank and length that has its own bit in a mask.
const LAST_BIT: usize = 8;

/// The measured rules of one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    inputs: &'static str,
    outputs: &'static str,
}

/// The lines of the table, each after its name.
static LINES: LazyLock<Vec<(&str, Measured)>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut fields = line.split(' ');
        let [name, inputs, outputs] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        (name, Measured { inputs, outputs })
    };
    TABLE.lines().map(line).collect()
});

impl Measured {
    /// Returns the rules of an operation, if it was measured.
    pub(super) fn of(operation: &str) -> Option<Self> {
        let found = LINES.binary_search_by_key(&operation, |(name, _)| name).ok()?;
        let (_, known) = LINES.get(found)?;
        Some(*known)
    }

    /// Checks the inputs of a node.
    pub(super) fn check(self, node: &ShapedNode<'_>) -> Inferred<()> {
        let mut first = 0_usize;
        for (rule, count) in self.inputs.split(',').zip(node.input_counts()) {
            let Some(count) = count else { return Ok(()) };
            let end = first.saturating_add(count).min(node.inputs.len());
            if rule != "*" {
                for place in first..end {
                    check_input(rule, node.shape(place))
                        .map_err(|diagnostic| at_input(place, &diagnostic))?;
                }
            }
            first = end;
        }
        Ok(())
    }

    /// Infers the outputs of a node.
    pub(super) fn outputs(self, node: &ShapedNode<'_>) -> Vec<Tensor> {
        let outputs = self.outputs.split(',').filter(|output| *output != "-");
        outputs.map(|output| output_of(output, node).unwrap_or_default()).collect()
    }
}

fn check_input(rule: &str, shape: &Shape) -> Inferred<()> {
    let (ranks, lengths) = rule.split_once(':').map_or((rule, None), |(r, l)| (r, Some(l)));
    let Some(dimensions) = shape.dimensions() else { return Ok(()) };
    let is_in = |mask: &str, bit: usize| {
        let mask = u32::from_str_radix(mask, 16).unwrap_or(u32::MAX);
        mask >> bit.min(LAST_BIT) & 1 == 1
    };
    let refused = |mask: &str, what: &str| {
        let allowed: Vec<String> = (0..=LAST_BIT)
            .filter(|bit| is_in(mask, *bit))
            .map(|bit| if bit == LAST_BIT { format!("{bit} or more") } else { bit.to_string() })
            .collect();
        Mismatch::new(format!("shape {shape}"), format!("{what} of {}", allowed.join(" or ")))
    };
    if !is_in(ranks, dimensions.len()) {
        return Err(refused(ranks, "a rank"));
    }
    match (dimensions, lengths) {
        ([UNKNOWN], _) => Ok(()),
        ([length], Some(mask)) if !is_in(mask, usize::try_from(*length).unwrap_or(usize::MAX)) => {
            Err(refused(mask, "a length"))
        }
        _ => Ok(()),
    }
}

fn output_of(output: &str, node: &ShapedNode<'_>) -> Option<Tensor> {
    let (shape, followed) = match output.split_once('=') {
        Some((shape, followed)) => (shape, Some(followed)),
        None => (output, None),
    };
    let shape = shape_of(shape).unwrap_or_default();
    let Some(before) = followed.and_then(|followed| followed.parse().ok()) else {
        return Some(Tensor::of(shape));
    };
    let mut place = 0_usize;
    for count in node.input_counts().take(before) {
        place = place.checked_add(count?)?;
    }
    let followed = node.shape(place);
    Some(Tensor::of(shape.merge(followed).unwrap_or_default()))
}

/// Returns the shape that is written like `[?.2]`.
fn shape_of(text: &str) -> Option<Shape> {
    let dimensions = text.strip_prefix('[')?.strip_suffix(']')?;
    let dimension = |text: &str| if text == "?" { Some(UNKNOWN) } else { text.parse().ok() };
    let dimensions = dimensions.split('.').filter(|text| !text.is_empty()).map(dimension);
    Some(Shape::of(&dimensions.collect::<Option<Vec<i64>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Registry;

    #[test]
    fn every_line_of_the_table_is_found_and_is_of_an_operation() {
        let lines: Vec<&str> = TABLE.lines().collect();
        assert!(lines.is_sorted_by_key(|line| line.split(' ').next()));
        for line in lines {
            let fields: Vec<&str> = line.split(' ').collect();
            let [name, inputs, outputs] = fields[..] else { panic!("{line}") };
            let found = Measured::of(name).unwrap();
            assert_eq!((found.inputs, found.outputs), (inputs, outputs), "{name}");
            let operation = Registry::operation_of_any_release(name).unwrap();
            let rules = inputs.split(',').filter(|rule| *rule != "-").count();
            assert_eq!(rules, operation.inputs().count(), "{name}");
        }
        for name in ["", "A", "NoSuchOperation", "zzz"] {
            assert!(Measured::of(name).is_none(), "{name}");
        }
    }
}
