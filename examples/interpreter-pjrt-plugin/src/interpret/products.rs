//! Products of matrices, in batches.

use serdes_plugin::pjrt::ElementType;

use super::shapes;
use crate::{
    array::{Array, Data},
    compile::{Dot, Operation},
    number,
};

/// Returns the number of elements in dimensions.
fn count(array: &Array, dimensions: &[usize]) -> usize {
    dimensions.iter().map(|dimension| array.of.dimensions[*dimension]).product()
}

/// Returns the number of multiplications of a product.
pub fn work(operation: &Operation, operands: &[Array]) -> Option<usize> {
    match (operation, operands) {
        (Operation::Dot(dot), [left, right]) => {
            Some(left.of.elements().saturating_mul(count(right, &dot.right[1])))
        }
        _ => None,
    }
}

/// Returns the sums of products, each rounded once.
pub fn dot(dot: &Dot, left: &Array, right: &Array, element: ElementType) -> Data {
    let [batch, rows, summed] = [0, 1, 2].map(|part| count(left, &dot.left[part]));
    let columns = count(right, &dot.right[1]);
    let lefts = shapes::ordered(left, &dot.left.concat());
    let rights = shapes::ordered(right, &dot.right.concat());
    // The first place of the summed dimension for each row and column.
    let pairs = (0..batch).flat_map(|batch| {
        (0..rows).flat_map(move |row| {
            (0..columns).map(move |column| {
                ((batch * rows + row) * summed, (batch * columns + column) * summed)
            })
        })
    });
    match (&lefts, &rights) {
        (Data::Integer(lefts), Data::Integer(rights)) => Data::Integer(
            pairs
                .map(|(left, right)| {
                    let pairs =
                        lefts[left..left + summed].iter().zip(&rights[right..right + summed]);
                    let sum = pairs.fold(0_i64, |sum, (left, right)| {
                        sum.wrapping_add(left.wrapping_mul(*right))
                    });
                    number::wrap(element, sum)
                })
                .collect(),
        ),
        _ => {
            let (lefts, rights) = (lefts.floats(), rights.floats());
            Data::Float(
                pairs
                    .map(|(left, right)| {
                        let lefts = &lefts[left..left + summed];
                        let pairs = lefts.iter().zip(&rights[right..right + summed]);
                        number::round(element, pairs.map(|(left, right)| left * right).sum())
                    })
                    .collect(),
            )
        }
    }
}
