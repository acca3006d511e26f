//! Reads each operation from the program and checks it, so that its execution needs no checks.

use serdes_plugin::{Result, pjrt::ElementType};
use serdes_stablehlo::Attribute;

use super::{
    Scope,
    operation::{BINARY, Direction, Dot, Operation, UNARY},
    source::Source,
};
use crate::{
    array::{Array, Type},
    number::is_float,
};

/// Reads an operation. The numbers of attributes are their places in alphabetical order.
pub fn compile(
    scope: &mut Scope<'_, '_>,
    source: &Source<'_, '_>,
    operands: &[Type],
) -> Result<Operation> {
    let name = source.name();
    if let Some((_, unary)) = UNARY.iter().find(|(known, _)| *known == name) {
        return Ok(Operation::Unary(*unary));
    }
    if let Some((_, binary)) = BINARY.iter().find(|(known, _)| *known == name) {
        return Ok(Operation::Binary(*binary));
    }
    let first = || operands.first().ok_or_else(|| source.wrong("an operand is missing"));
    Ok(match name {
        "bitcast_convert" => Operation::Bitcast,
        "broadcast_in_dim" => Operation::Broadcast(source.dimensions(0, 256)?),
        "call" => Operation::Call(callee(scope, source, 0)?),
        "case" => Operation::Case(blocks(scope, source)?),
        "if" => Operation::Case(blocks(scope, source)?.into_iter().rev().collect()),
        "clamp" => Operation::Clamp,
        "compare" => Operation::Compare(direction(source)?),
        "composite" => Operation::Call(callee(scope, source, 1)?),
        "concatenate" => Operation::Concatenate(source.dimension(0, first()?.rank())?),
        "constant" => Operation::Constant(constant(scope, source)?),
        "convert" => Operation::Convert,
        "dot_general" => Operation::Dot(dot(source, operands)?),
        "dynamic_slice" => Operation::DynamicSlice,
        "dynamic_update_slice" => Operation::DynamicUpdateSlice,
        "iota" => Operation::Iota(source.dimension(0, 256)?),
        "optimization_barrier" => Operation::Identity,
        "pad" => Operation::Pad { low: source.numbers(1)?, interior: source.numbers(2)? },
        "reduce" => reduce(scope, source, first()?)?,
        "reshape" => Operation::Reshape,
        "select" => Operation::Select,
        "slice" => slice(source, first()?)?,
        "transpose" => {
            let strides = first()?.strides();
            let order = source.dimensions(0, strides.len())?;
            Operation::View { first: 0, strides: order.iter().map(|of| strides[*of]).collect() }
        }
        "while" => Operation::While {
            condition: scope.block(source.region(0)?)?,
            body: scope.block(source.region(1)?)?,
        },
        _ => return Err(source.unknown()),
    })
}

fn callee(scope: &Scope<'_, '_>, source: &Source<'_, '_>, place: usize) -> Result<usize> {
    let found = scope.names.get(source.text(place)?).copied();
    found.ok_or_else(|| source.wrong("there is no such function"))
}

fn blocks(scope: &mut Scope<'_, '_>, source: &Source<'_, '_>) -> Result<Vec<super::Block>> {
    source.regions().iter().map(|region| scope.block(region)).collect()
}

fn direction(source: &Source<'_, '_>) -> Result<Direction> {
    let Attribute::Enumeration(number) = source.attribute(1)? else {
        return Err(source.wrong("found another attribute, expected a direction"));
    };
    Direction::of(number).ok_or_else(|| source.wrong("a direction that is not known"))
}

fn constant(scope: &mut Scope<'_, '_>, source: &Source<'_, '_>) -> Result<Array> {
    let Attribute::Tensor { type_number, data } = source.attribute(0)? else {
        return Err(source.wrong("found another attribute, expected elements"));
    };
    let of = scope.tensor(type_number)?;
    let count = of.elements();
    if of.element != ElementType::Pred || data.len() == count {
        return Array::read(&of, data);
    }
    // Eight booleans in a byte, or one byte for all of them.
    let is_splat = matches!(data, [0 | 0xff]);
    if !is_splat && data.len() != count.div_ceil(8) {
        return Err(source.wrong("as many elements as the type has were expected"));
    }
    let bit = |at: usize| if is_splat { data[0] & 1 } else { data[at / 8] >> (at % 8) & 1 };
    Array::read(&of, &(0..count).map(bit).collect::<Vec<u8>>())
}

/// Returns the dimensions of a product. The first form of the operation lacks the attributes of an
/// algorithm, which later forms have between those of the dimensions.
fn dot(source: &Source<'_, '_>, operands: &[Type]) -> Result<Dot> {
    let [left, right] = operands else { return Err(source.wrong("two operands were expected")) };
    let [left_batch, left_summed, right_batch, right_summed] =
        if source.is_v1() { [0, 1, 3, 4] } else { [2, 4, 8, 10] };
    let side = |of: &Type, batch: usize, summed: usize| -> Result<[Vec<usize>; 3]> {
        let batch = source.dimensions(batch, of.rank())?;
        let summed = source.dimensions(summed, of.rank())?;
        if batch.iter().any(|dimension| summed.contains(dimension)) {
            return Err(source.wrong("a dimension of the batch that is summed"));
        }
        let is_kept = |dimension: &usize| !batch.contains(dimension) && !summed.contains(dimension);
        let kept = (0..of.rank()).filter(is_kept).collect();
        Ok([batch, kept, summed])
    };
    let left_side = side(left, left_batch, left_summed)?;
    let right_side = side(right, right_batch, right_summed)?;
    for part in [0, 2] {
        let sizes = |of: &Type, side: &[Vec<usize>; 3]| -> Vec<usize> {
            side[part].iter().map(|dimension| of.dimensions[*dimension]).collect()
        };
        if sizes(left, &left_side) != sizes(right, &right_side) {
            return Err(source.wrong("the dimensions of the operands differ"));
        }
    }
    Ok(Dot { left: left_side, right: right_side })
}

fn reduce(scope: &mut Scope<'_, '_>, source: &Source<'_, '_>, operand: &Type) -> Result<Operation> {
    let folded = source.dimensions(0, operand.rank())?;
    let kept = (0..operand.rank()).filter(|dimension| !folded.contains(dimension)).collect();
    Ok(Operation::Reduce { kept, folded, body: scope.block(source.region(0)?)? })
}

/// Returns a slice as a view. The type of its result says how many elements it has; `check_view`
/// checks that they exist.
fn slice(source: &Source<'_, '_>, operand: &Type) -> Result<Operation> {
    let (limits, starts, steps) = (source.numbers(0)?, source.numbers(1)?, source.numbers(2)?);
    if [&limits, &starts, &steps].iter().any(|list| list.len() != operand.rank()) {
        return Err(source.wrong("a number for each dimension was expected"));
    }
    let strides = operand.strides();
    let first = starts.iter().zip(&strides).map(|(start, stride)| start.saturating_mul(*stride));
    let first = first.fold(0, usize::saturating_add);
    let strides = steps.iter().zip(&strides).map(|(step, stride)| step.saturating_mul(*stride));
    Ok(Operation::View { first, strides: strides.collect() })
}

/// Checks the types of an operation that was read.
pub fn check(
    source: &Source<'_, '_>,
    operation: &Operation,
    operands: &[Type],
    results: &[(usize, Type)],
) -> Result<()> {
    let results: Vec<&Type> = results.iter().map(|(_, of)| of).collect();
    let is_right = match (operation, operands, results.as_slice()) {
        // The results of these are compared with their types at run time.
        (Operation::While { .. } | Operation::Case(_) | Operation::Call(_), ..) => true,
        (Operation::Identity, operands, results) => operands.iter().eq(results.iter().copied()),
        (Operation::Reduce { kept, body, .. }, operands, results) => {
            check_reduce(kept, body, operands, results)
        }
        (operation, operands, [result]) => check_one(operation, operands, result),
        _ => false,
    };
    if is_right { Ok(()) } else { Err(source.wrong("its operands and results do not fit")) }
}

fn check_one(operation: &Operation, operands: &[Type], result: &Type) -> bool {
    let is_number = |of: &Type| of.rank() == 0 && !is_float(of.element);
    match (operation, operands) {
        (Operation::Constant(array), []) => array.of == *result,
        (Operation::Iota(dimension), []) => *dimension < result.rank(),
        (Operation::Unary(unary), [of]) => {
            let takes =
                if is_float(of.element) { unary.takes_floats() } else { unary.takes_integers() };
            let gives =
                if *unary == super::Unary::IsFinite { ElementType::Pred } else { of.element };
            takes && result.element == gives && result.dimensions == of.dimensions
        }
        (Operation::Binary(binary), [left, right]) => {
            let takes = match is_float(left.element) {
                true => binary.takes_floats(),
                false => binary.takes_integers(),
            };
            takes && left == right && left == result
        }
        (Operation::Compare(_), [left, right]) => {
            left == right && result.element == ElementType::Pred && same_sizes(left, result)
        }
        (Operation::Select, [which, left, right]) => {
            let fits = which.rank() == 0 || same_sizes(which, left);
            which.element == ElementType::Pred && fits && left == right && left == result
        }
        (Operation::Clamp, [low, of, high]) => {
            let fits = |limit: &Type| {
                limit.element == of.element && (limit.rank() == 0 || same_sizes(limit, of))
            };
            fits(low) && fits(high) && of == result
        }
        (Operation::Convert, [of]) => same_sizes(of, result),
        (Operation::Bitcast, [of]) => {
            of.element.bits() == result.element.bits() && same_sizes(of, result)
        }
        (Operation::Reshape, [of]) => {
            of.element == result.element && of.elements() == result.elements()
        }
        (Operation::Broadcast(dimensions), [of]) => {
            of.element == result.element
                && dimensions.len() == of.rank()
                && of.dimensions.iter().zip(dimensions).all(|(size, dimension)| {
                    *size == 1 || result.dimensions.get(*dimension) == Some(size)
                })
                && dimensions.iter().all(|dimension| *dimension < result.rank())
        }
        (Operation::View { first, strides }, [of]) => check_view(*first, strides, of, result),
        (Operation::DynamicSlice, [of, starts @ ..]) => {
            starts.len() == of.rank() && starts.iter().all(is_number) && fits_into(result, of)
        }
        (Operation::DynamicUpdateSlice, [of, update, starts @ ..]) => {
            let fits = fits_into(update, of) && of == result;
            fits && starts.len() == of.rank() && starts.iter().all(is_number)
        }
        (Operation::Pad { low, interior }, [of, value]) => {
            check_pad(low, interior, of, result) && value.rank() == 0 && value.element == of.element
        }
        (Operation::Concatenate(dimension), parts) => check_concatenate(*dimension, parts, result),
        (Operation::Dot(dot), [left, right]) => {
            let sizes = |of: &Type, dimensions: &[usize]| -> Vec<usize> {
                dimensions.iter().map(|dimension| of.dimensions[*dimension]).collect()
            };
            let parts = [&dot.left[0], &dot.left[1]].map(|part| sizes(left, part));
            let expected = [&parts[0][..], &parts[1], &sizes(right, &dot.right[1])].concat();
            let kinds = [left, right, result].map(|of| is_float(of.element));
            result.dimensions == expected && kinds.iter().all(|kind| *kind == kinds[0])
        }
        _ => false,
    }
}

fn same_sizes(left: &Type, right: &Type) -> bool {
    left.dimensions == right.dimensions
}

fn fits_into(part: &Type, whole: &Type) -> bool {
    let sizes = part.dimensions.iter().zip(&whole.dimensions);
    part.element == whole.element
        && part.rank() == whole.rank()
        && sizes.into_iter().all(|(part, whole)| part <= whole)
}

/// Returns true if a view lies inside its operand.
fn check_view(first: usize, strides: &[usize], of: &Type, result: &Type) -> bool {
    if of.element != result.element || strides.len() != result.rank() {
        return false;
    }
    let steps = result.dimensions.iter().zip(strides);
    let last = steps.fold(first, |last, (size, stride)| {
        last.saturating_add(size.saturating_sub(1).saturating_mul(*stride))
    });
    result.elements() == 0 || last < of.elements()
}

fn check_pad(low: &[usize], interior: &[usize], of: &Type, result: &Type) -> bool {
    let ranks = [low.len(), interior.len(), result.rank()];
    ranks.iter().all(|rank| *rank == of.rank())
        && of.element == result.element
        && (0..of.rank()).all(|at| {
            let size = of.dimensions[at];
            let between = size.saturating_sub(1).saturating_mul(interior[at]);
            low[at].saturating_add(size).saturating_add(between) <= result.dimensions[at]
        })
}

fn check_concatenate(dimension: usize, parts: &[Type], result: &Type) -> bool {
    let total: usize = parts.iter().filter_map(|part| part.dimensions.get(dimension)).sum();
    let expected = |part: &Type| {
        let mut sizes = result.dimensions.clone();
        sizes[dimension] = part.dimensions.get(dimension).copied().unwrap_or(0);
        part.element == result.element && part.dimensions == sizes
    };
    result.dimensions.get(dimension) == Some(&total) && parts.iter().all(expected)
}

/// Returns true if the types of a reduction fit: arrays in the first half of the operands, their
/// initial values in the second half, and a body with as many arguments as there are operands.
fn check_reduce(kept: &[usize], body: &super::Block, operands: &[Type], results: &[&Type]) -> bool {
    let count = results.len();
    if count == 0 || operands.len() != 2 * count || body.arguments.len() != 2 * count {
        return false;
    }
    let (arrays, starts) = operands.split_at(count);
    let fits = |of: &Type, start: &Type, result: &Type| {
        let sizes: Option<Vec<usize>> =
            kept.iter().map(|dimension| of.dimensions.get(*dimension).copied()).collect();
        same_sizes(of, &arrays[0])
            && start.rank() == 0
            && start.element == of.element
            && result.element == of.element
            && Some(&result.dimensions) == sizes.as_ref()
    };
    body.results.len() == count
        && arrays
            .iter()
            .zip(starts)
            .zip(results)
            .all(|((of, start), result)| fits(of, start, result))
}
