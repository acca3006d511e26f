//! Runs the steps of a program.

mod elements;
mod products;
mod shapes;

use serdes_plugin::{Result, Status};

use crate::{
    array::{Array, Data, Type},
    compile::{Block, Function, Module, Operation, Step},
};

/// Limit on the nesting of functions and loops. A thread of the SDK has a stack of 1 MiB.
const DEEPEST: usize = 64;
/// Limit on the operations on single elements in a run, which take minutes.
const MOST_WORK: usize = 1 << 38;
/// Limit on the elements in the values of all active functions.
const MOST_ELEMENTS: usize = 1 << 29;

/// Runs a program.
pub fn run(module: &Module, arguments: Vec<Array>) -> Result<Vec<Array>> {
    let mut run = Run { module, depth: 0, work: MOST_WORK, room: MOST_ELEMENTS };
    run.call(module.main(), arguments)
}

/// One run of a program, with the work and elements that remain of its limits.
struct Run<'a> {
    module: &'a Module,
    depth: usize,
    work: usize,
    room: usize,
}

/// The values of a function that is being called.
type Slots = [Option<Array>];

fn get(slots: &Slots, slot: usize) -> Result<Array> {
    let value = slots.get(slot).and_then(Option::as_ref);
    value.cloned().ok_or_else(|| Status::internal("a value is used before it is computed"))
}

fn all(slots: &Slots, numbers: &[usize]) -> Result<Vec<Array>> {
    numbers.iter().map(|slot| get(slots, *slot)).collect()
}

fn truth(values: &[Array]) -> Result<bool> {
    let value = values.first().and_then(Array::scalar);
    value.map(|value| value != 0).ok_or_else(|| Status::internal("a condition without a value"))
}

impl Run<'_> {
    fn call(&mut self, function: &Function, arguments: Vec<Array>) -> Result<Vec<Array>> {
        let too_large =
            || Status::resource_exhausted("the functions that are called are too large");
        self.room = self.room.checked_sub(function.elements).ok_or_else(too_large)?;
        let mut slots = vec![None; function.slots];
        let results = self.block(&function.body, &mut slots, arguments)?;
        self.room += function.elements;
        Ok(results)
    }

    fn block(
        &mut self,
        block: &Block,
        slots: &mut Slots,
        arguments: Vec<Array>,
    ) -> Result<Vec<Array>> {
        if self.depth >= DEEPEST {
            return Err(Status::resource_exhausted(format!(
                "functions and loops are {DEEPEST} deep in one another"
            )));
        }
        self.depth += 1;
        for (slot, value) in block.arguments.iter().zip(arguments) {
            slots[*slot] = Some(value);
        }
        for step in &block.steps {
            let operands = all(slots, &step.operands)?;
            let results = self.step(step, slots, &operands)?;
            for ((slot, of), value) in step.results.iter().zip(results) {
                if value.of != *of {
                    return Err(Status::invalid_argument("a value is not of its type"));
                }
                slots[*slot] = Some(value);
            }
        }
        self.depth -= 1;
        all(slots, &block.results)
    }

    /// Subtracts work from the limit of the run.
    fn spend(&mut self, work: usize) -> Result<()> {
        let left = self.work.checked_sub(work.saturating_add(1));
        self.work = left.ok_or_else(|| {
            Status::resource_exhausted(format!("the program takes more than {MOST_WORK} steps"))
        })?;
        Ok(())
    }

    fn step(&mut self, step: &Step, slots: &mut Slots, operands: &[Array]) -> Result<Vec<Array>> {
        match (&step.operation, step.results.as_slice()) {
            (Operation::Identity, _) => Ok(operands.to_vec()),
            (Operation::Call(place), _) => {
                let function = self.module.functions.get(*place);
                let function = function.ok_or_else(|| Status::internal("no such function"))?;
                self.call(function, operands.to_vec())
            }
            (Operation::While { condition, body }, _) => {
                self.repeat(condition, body, slots, operands.to_vec())
            }
            (Operation::Case(branches), _) => {
                let chosen = operands.first().and_then(Array::scalar);
                let chosen = chosen.and_then(|chosen| branches.get(usize::try_from(chosen).ok()?));
                let branch = chosen.or(branches.last());
                let branch = branch.ok_or_else(|| Status::internal("a case without branches"))?;
                self.block(branch, slots, Vec::new())
            }
            (Operation::Reduce { kept, folded, body }, _) => {
                self.reduce((kept, folded), body, slots, operands)
            }
            (operation, [(_, of)]) => {
                self.spend(products::work(operation, operands).unwrap_or(of.elements()))?;
                Ok(vec![value(operation, operands, of)?])
            }
            _ => Err(Status::internal("an operation of several results")),
        }
    }

    fn repeat(
        &mut self,
        condition: &Block,
        body: &Block,
        slots: &mut Slots,
        mut values: Vec<Array>,
    ) -> Result<Vec<Array>> {
        while truth(&self.block(condition, slots, values.clone())?)? {
            self.spend(1)?;
            let before: Vec<Type> = values.iter().map(|value| value.of.clone()).collect();
            values = self.block(body, slots, values)?;
            if !values.iter().map(|value| &value.of).eq(&before) {
                return Err(Status::invalid_argument("a loop whose values change their types"));
            }
        }
        Ok(values)
    }

    /// Folds dimensions, from the first elements to the last.
    fn reduce(
        &mut self,
        (kept, folded): (&[usize], &[usize]),
        body: &Block,
        slots: &mut Slots,
        operands: &[Array],
    ) -> Result<Vec<Array>> {
        let (arrays, starts) = operands.split_at(operands.len() / 2);
        let order = [kept, folded].concat();
        let rows: usize =
            kept.iter().map(|dimension| arrays[0].of.dimensions[*dimension]).product();
        let columns: usize =
            folded.iter().map(|dimension| arrays[0].of.dimensions[*dimension]).product();
        self.spend(arrays[0].of.elements())?;
        let sizes: Vec<usize> =
            kept.iter().map(|dimension| arrays[0].of.dimensions[*dimension]).collect();
        if let (Some(binary), [array], [start]) = (plain(body), arrays, starts) {
            let data =
                elements::fold(binary, &shapes::ordered(array, &order), start, rows, columns);
            return Ok(vec![Array::new(array.of.with_dimensions(sizes)?, data)]);
        }
        let ordered: Vec<Data> =
            arrays.iter().map(|array| shapes::ordered(array, &order)).collect();
        let scalar = |which: usize, place: usize| -> Result<Array> {
            let of = arrays[which].of.with_dimensions(Vec::new())?;
            Ok(Array::new(of, ordered[which].take(&[place])))
        };
        let mut results: Vec<Data> = starts.iter().map(|start| start.data.take(&[])).collect();
        for row in 0..rows {
            let mut folded = starts.to_vec();
            for column in 0..columns {
                for which in 0..arrays.len() {
                    folded.push(scalar(which, row * columns + column)?);
                }
                folded = self.block(body, slots, folded)?;
            }
            results.iter_mut().zip(&folded).for_each(|(result, value)| result.extend(&value.data));
        }
        let of = |array: &Array| array.of.with_dimensions(sizes.clone());
        arrays.iter().zip(results).map(|(array, data)| Ok(Array::new(of(array)?, data))).collect()
    }
}

/// Returns the operation of a body that consists of one operation on its two arguments.
fn plain(body: &Block) -> Option<crate::compile::Binary> {
    match body.steps.as_slice() {
        [Step { operation: Operation::Binary(binary), operands, results }]
            if *operands == body.arguments
                && results.iter().map(|(slot, _)| slot).eq(&body.results) =>
        {
            Some(*binary)
        }
        _ => None,
    }
}

/// Returns the value of an operation that has no regions.
fn value(operation: &Operation, operands: &[Array], of: &Type) -> Result<Array> {
    let data = match (operation, operands) {
        (Operation::Constant(array), _) => return Ok(array.clone()),
        (Operation::Reshape, [array]) => {
            return Ok(Array { of: of.clone(), data: array.data.clone() });
        }
        (Operation::Unary(unary), [array]) => elements::unary(*unary, array),
        (Operation::Binary(binary), [left, right]) => elements::binary(*binary, left, right),
        (Operation::Compare(direction), [left, right]) => {
            elements::compare(*direction, left, right)
        }
        (Operation::Select, [which, left, right]) => elements::select(which, left, right),
        (Operation::Clamp, [low, array, high]) => elements::clamp(low, array, high),
        (Operation::Convert, [array]) => elements::convert(array, of.element),
        (Operation::Bitcast, [array]) => {
            let mut bytes = vec![0; array.of.elements() * array.of.element.bits() / 8];
            array.write(&mut bytes);
            return Array::read(of, &bytes);
        }
        (Operation::Iota(dimension), []) => shapes::iota(of, *dimension),
        (Operation::Broadcast(dimensions), [array]) => shapes::broadcast(array, dimensions, of),
        (Operation::View { first, strides }, [array]) => shapes::view(array, *first, strides, of),
        (Operation::DynamicSlice, [array, starts @ ..]) => shapes::dynamic_slice(array, starts, of),
        (Operation::DynamicUpdateSlice, [array, update, starts @ ..]) => {
            shapes::dynamic_update_slice(array, update, starts)
        }
        (Operation::Pad { low, interior }, [array, value]) => {
            shapes::pad(array, value, low, interior, of)
        }
        (Operation::Concatenate(dimension), parts) => shapes::concatenate(parts, *dimension, of),
        (Operation::Dot(dot), [left, right]) => products::dot(dot, left, right, of.element),
        _ => return Err(Status::internal("an operation without its operands")),
    };
    Ok(Array::new(of.clone(), data))
}
