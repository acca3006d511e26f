//! Compiles programs to steps over numbered values. Refuses every operation and type that is
//! unknown or too large, and names it.

mod operation;
mod operations;
mod source;

use std::collections::HashMap;

use serdes_plugin::{Result, Status};
use serdes_stablehlo::{self as stablehlo, Program, Region, Value};

pub use self::operation::{Binary, Block, Direction, Dot, Function, Operation, Step, Unary};
use self::source::Source;
use crate::{array::Type, number};

/// Most elements of all values of a function.
const MOST_ELEMENTS: usize = 1 << 28;

/// Most values of a function.
const MOST_VALUES: usize = 1 << 20;

/// A program.
pub struct Module {
    pub name: String,
    pub functions: Vec<Function>,
    main: usize,
}

impl Module {
    /// Compiles a portable artifact of StableHLO.
    pub fn compile(code: &[u8]) -> Result<Self> {
        let malformed = |error: serdes_stablehlo::StableHloError| {
            Status::invalid_argument(format!("the program: {error}"))
        };
        let program = Program::read(code).map_err(malformed)?;
        let root = program.tree().map_err(malformed)?;
        let module = root.operations.first().filter(|operation| operation.name == "module");
        let module = module.and_then(|module| module.regions.first());
        let module =
            module.ok_or_else(|| Status::invalid_argument("a program without a module"))?;
        let mut sources = Vec::new();
        let mut names = HashMap::new();
        // A mesh of devices does not affect a program for one device.
        let is_mesh = |operation: &&stablehlo::Operation<'_>| {
            (operation.dialect, operation.name) == ("sdy", "mesh")
        };
        for operation in module.operations.iter().filter(|operation| !is_mesh(operation)) {
            let source = Source::new(&program, operation);
            if source.name() != "func" {
                return Err(source.unknown());
            }
            names.insert(source.text(SYMBOL)?, sources.len());
            sources.push(source);
        }
        let main = *names
            .get("main")
            .ok_or_else(|| Status::invalid_argument("a program without a function main"))?;
        let functions = sources.iter().map(|source| function(&program, &names, source));
        let functions = functions.collect::<Result<Vec<_>>>()?;
        Ok(Self { name: "main".to_owned(), functions, main })
    }

    pub fn main(&self) -> &Function {
        &self.functions[self.main]
    }
}

/// The place of a function's name among its attributes.
const SYMBOL: usize = 3;

fn function(
    program: &Program<'_>,
    names: &HashMap<&str, usize>,
    source: &Source<'_, '_>,
) -> Result<Function> {
    let mut scope = Scope { program, names, types: Vec::new(), elements: 0 };
    let body = scope.block(source.region(0)?)?;
    let of = |slots: &[usize]| -> Result<Vec<Type>> {
        slots.iter().map(|slot| scope.type_of(*slot).cloned()).collect()
    };
    Ok(Function {
        parameters: of(&body.arguments)?,
        outputs: of(&body.results)?,
        slots: scope.types.len(),
        elements: scope.elements,
        body,
    })
}

/// The values of a function while it is compiled.
struct Scope<'p, 'a> {
    program: &'p Program<'a>,
    names: &'p HashMap<&'p str, usize>,
    /// Types of the values by their numbers.
    types: Vec<Option<Type>>,
    elements: usize,
}

impl Scope<'_, '_> {
    fn type_of(&self, slot: usize) -> Result<&Type> {
        let of = self.types.get(slot).and_then(Option::as_ref);
        of.ok_or_else(|| Status::invalid_argument("a value is used before it is computed"))
    }

    /// Returns the type with a number of the program.
    fn tensor(&self, type_number: usize) -> Result<Type> {
        let of = self.program.tensor_type(type_number).ok_or_else(|| {
            Status::unimplemented("a value that is no tensor of known dimensions")
        })?;
        let element = number::TYPES.iter().find(|(name, _)| *name == of.element);
        let (_, element) = element.ok_or_else(|| {
            let known: Vec<&str> = number::TYPES.iter().map(|(name, _)| *name).collect();
            Status::unimplemented(format!("elements of {}; known are {known:?}", of.element))
        })?;
        let sizes = of.dimensions.iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX));
        Type::new(*element, sizes.collect())
    }

    fn define(&mut self, value: Value) -> Result<(usize, Type)> {
        let of = self.tensor(value.type_number)?;
        self.elements = self.elements.saturating_add(of.elements());
        if self.elements > MOST_ELEMENTS || value.number >= MOST_VALUES {
            return Err(Status::resource_exhausted(format!(
                "a function of more than {MOST_VALUES} values or {MOST_ELEMENTS} elements in them"
            )));
        }
        if self.types.len() <= value.number {
            self.types.resize(value.number + 1, None);
        }
        self.types[value.number] = Some(of.clone());
        Ok((value.number, of))
    }

    /// Compiles a region: its arguments, its operations, and the values that the last one returns.
    fn block(&mut self, region: &Region<'_>) -> Result<Block> {
        let arguments = region.arguments.iter().map(|value| Ok(self.define(*value)?.0));
        let arguments = arguments.collect::<Result<_>>()?;
        let mut steps = Vec::new();
        for operation in &region.operations {
            let source = Source::new(self.program, operation);
            if source.name() == "return" {
                operation.operands.iter().try_for_each(|slot| self.type_of(*slot).map(drop))?;
                return Ok(Block { arguments, steps, results: operation.operands.clone() });
            }
            let operands = operation.operands.iter().map(|slot| self.type_of(*slot).cloned());
            let operands = operands.collect::<Result<Vec<_>>>()?;
            let compiled = operations::compile(self, &source, &operands)?;
            let results = operation.results.iter().map(|value| self.define(*value));
            let results = results.collect::<Result<Vec<_>>>()?;
            operations::check(&source, &compiled, &operands, &results)?;
            steps.push(Step { operation: compiled, operands: operation.operands.clone(), results });
        }
        Err(Status::invalid_argument("a region without an end"))
    }
}
