//! The tensors of constants, read from the nodes in the file.
//!
//! A graph has many constants, and each has another value. Constants in TensorFlow's usual encoding
//! are read from their bytes, without reading the rest of the node, which an earlier walk found
//! valid.
//!
//! Depends on the encoding of constants, but not on their use.

use super::tensor::Tensor;
use crate::graph::{
    GraphError,
    attributes::{AttributeValue, ShapeValue, TensorValue, Text},
    index::OUTPUT_SHAPES,
    node_at,
    raw_nodes::short_field,
    source::{Extent, Source},
};

/// Limit on the dimensions and numbers of a constant that is read from its bytes.
const MOST: usize = 254;

/// Reads one constant after another.
#[derive(Debug, Default)]
pub(in super::super) struct Constants {
    bytes: Vec<u8>,
}

impl Constants {
    /// Returns the tensor of the constant at `place`, if it is in the canonical encoding and does
    /// not declare the shape of its output.
    pub(super) fn canonical(
        &mut self,
        source: Source<'_>,
        place: Extent,
    ) -> Result<Option<Tensor>, GraphError> {
        // The text form has no such bytes.
        let is_read = !source.is_text() && source.read_part(place, &mut self.bytes)?;
        Ok(if is_read { of_node(&self.bytes) } else { None })
    }

    /// Returns the tensor of the constant at `place`; `None` if the node has none. A declared shape
    /// of its output is ignored.
    pub(in super::super) fn read(
        &mut self,
        source: Source<'_>,
        place: Extent,
        release: i32,
    ) -> Result<Option<Tensor>, GraphError> {
        if let Some(tensor) = self.canonical(source, place)? {
            return Ok(Some(tensor));
        }
        let node = node_at::read(source, place, None, release)?;
        Ok(match node.attributes.get("value") {
            Some(AttributeValue::Tensor(tensor)) => Some(Tensor::constant(tensor)),
            _ => None,
        })
    }
}

/// Returns the tensor of a constant that is written in the canonical encoding.
fn of_node(mut rest: &[u8]) -> Option<Tensor> {
    let mut found = None;
    while !rest.is_empty() {
        let (tag, content, after) = short_field(rest)?;
        rest = after;
        match tag {
            // Its name, operation, inputs and device.
            0x0a | 0x12 | 0x1a | 0x22 => {}
            0x2a => {
                let (0x0a, key, value) = short_field(content)? else { return None };
                let (0x12, value, []) = short_field(value)? else { return None };
                if key == OUTPUT_SHAPES {
                    return None;
                }
                if key == b"value" {
                    let (0x42, tensor, []) = short_field(value)? else { return None };
                    if found.replace(of_tensor(tensor)?).is_some() {
                        return None;
                    }
                }
            }
            _ => return None,
        }
    }
    found
}

fn of_tensor(mut rest: &[u8]) -> Option<Tensor> {
    let (mut data_type, mut shape) = (None, None);
    let mut content: Option<&[u8]> = None;
    let mut numbers: Option<Vec<i64>> = None;
    while let Some(tag) = rest.first() {
        match tag {
            0x08 if data_type.is_none() => {
                let (number, after) = short_number(rest.get(1..)?)?;
                (data_type, rest) = (Some(i32::try_from(number).ok()?), after);
                continue;
            }
            0x12 | 0x22 | 0x3a | 0x52 => {}
            _ => return None,
        }
        let (tag, part, after) = short_field(rest)?;
        rest = after;
        match tag {
            0x12 if shape.is_none() => shape = Some(dimensions(part)?),
            0x22 if content.is_none() => content = Some(part),
            // Numbers in the field of another type are left to other checks.
            0x3a if numbers.is_none() && data_type == Some(3) => numbers = Some(packed(part)?),
            0x52 if numbers.is_none() && data_type == Some(9) => numbers = Some(packed(part)?),
            _ => return None,
        }
    }
    let (data_type, dimensions) = (data_type?, shape?);
    let numbers = numbers.unwrap_or_default();
    let content = content.unwrap_or_default();
    let values = numbers.len() as u64;
    Some(Tensor::constant(TensorValue {
        data_type,
        shape: ShapeValue {
            is_unknown_rank: false,
            rank: dimensions.len() as u64,
            dimensions: &dimensions,
        },
        content: Text { length: content.len() as u64, bytes: Some(content) },
        numbers: &numbers,
        values,
        small_integers: if data_type == 3 { values } else { 0 },
    }))
}

/// Returns the sizes of a shape whose dimensions have no other fields.
fn dimensions(mut rest: &[u8]) -> Option<Vec<i64>> {
    let mut sizes = Vec::new();
    while !rest.is_empty() {
        let (0x12, dimension, after) = short_field(rest)? else { return None };
        rest = after;
        sizes.push(match dimension {
            [] => 0,
            [0x08, number @ ..] => alone(number)?,
            _ => return None,
        });
        if sizes.len() > MOST {
            return None;
        }
    }
    Some(sizes)
}

fn packed(mut rest: &[u8]) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        let (number, after) = short_number(rest)?;
        (rest, _) = (after, numbers.push(number));
        if numbers.len() > MOST {
            return None;
        }
    }
    Some(numbers)
}

/// Returns the number that these bytes encode.
fn alone(bytes: &[u8]) -> Option<i64> {
    short_number(bytes).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// Returns the first number, if it has at most four bytes, and the bytes after it.
fn short_number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let length = bytes.iter().take(4).position(|byte| *byte < 0x80)? + 1;
    let (number, rest) = bytes.split_at_checked(length)?;
    let sum = number.iter().rev().fold(0, |sum, byte| sum << 7 | i64::from(byte & 0x7f));
    Some((sum, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Form, Message, tests::field};

    fn node(attributes: &[Vec<u8>]) -> Vec<u8> {
        let attributes: Vec<u8> = attributes.iter().flat_map(|one| field(5, one)).collect();
        [field(1, b"n"), field(2, b"Const"), attributes].concat()
    }

    fn value(tensor: &[u8]) -> Vec<u8> {
        [field(1, b"value"), field(2, &field(8, tensor))].concat()
    }

    fn shape(sizes: &[u8]) -> Vec<u8> {
        let sizes: Vec<u8> = sizes.iter().flat_map(|size| field(2, &[8, *size])).collect();
        field(2, &sizes)
    }

    /// Returns the tensor that is read from the bytes, if any, and the tensor of the parsed node.
    fn both(node: &[u8]) -> (Option<Tensor>, Option<Tensor>) {
        let bytes = field(1, node);
        let (start, end) = ((bytes.len() - node.len()) as u64, bytes.len() as u64);
        let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
        let place = Extent { start, end };
        let whole = node_at::read(source, place, None, i32::MAX).unwrap().attributes;
        let tensor = match whole.get("value") {
            Some(AttributeValue::Tensor(tensor)) => Some(Tensor::constant(tensor)),
            _ => None,
        };
        assert_eq!(Constants::default().read(source, place, i32::MAX).unwrap(), tensor);
        (of_node(node), tensor)
    }

    #[test]
    fn constants_are_read_from_their_bytes_as_from_the_whole_node() {
        let two = [&[8, 3][..], &shape(&[2])].concat();
        let long = [&[8, 9][..], &shape(&[1])].concat();
        let float = [&[8, 1][..], &shape(&[2, 3]), &field(4, &[0; 24])].concat();
        for tensor in [
            [&two[..], &field(4, &[5, 0, 0, 0, 6, 0, 0, 0])].concat(),
            [&two[..], &field(4, &[5, 0, 0])].concat(),
            [&two[..], &field(7, &[5, 0x80, 1])].concat(),
            [&two[..], &field(7, &[5])].concat(),
            [&long[..], &field(10, &[7])].concat(),
            [&long[..], &field(4, &[0xff; 8])].concat(),
            [&[8, 3][..], &shape(&[])].concat(),
            [&[8, 3][..], &field(2, &field(2, &[]))].concat(),
            float,
            two.clone(),
        ] {
            let other = [field(1, b"dtype"), field(2, &[0x30, 3])].concat();
            let (found, whole) = both(&node(&[other, value(&tensor)]));
            assert!(found.is_some(), "{tensor:?}");
            assert_eq!(found, whole, "{tensor:?}");
        }
    }

    #[test]
    fn whatever_is_written_otherwise_is_read_whole() {
        let tensor = [&[8, 3][..], &shape(&[1]), &field(7, &[5])].concat();
        let valid = value(&tensor);
        for bytes in [
            node(&[valid.clone(), value(&[8, 1])]),
            node(&[[field(2, &field(8, &tensor)), field(1, b"value")].concat()]),
            node(&[value(&[&tensor[..], &[0x38, 6]].concat())]),
            node(&[value(&[&tensor[..], &shape(&[2])].concat())]),
            node(&[value(&[&tensor[..], &[8, 9]].concat())]),
            node(&[value(&[&tensor[..], &field(10, &[6])].concat())]),
            node(&[value(&[&[8, 3][..], &field(2, &[0x18, 1])].concat())]),
            node(&[value(&[&shape(&[1])[..], &field(7, &[5]), &[8, 3]].concat())]),
            node(&[]),
        ] {
            assert_eq!(both(&bytes).0, None, "{bytes:?}");
        }
        for length in 0..valid.len() {
            assert_eq!(of_node(&node(&[valid[..length].to_vec()])), None, "{length}");
        }
    }
}
