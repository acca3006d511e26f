//! The operations of a program as a tree, for compilers and interpreters.

use serdes_mlir_bytecode::{
    Cursor, Nesting, Operation as Found, References, Stop, Walk, Wanted, vhlo::type_name,
};

use super::{
    Program, StableHloError,
    bytecode::Bytecode,
    catalogue::{VHLO, attribute_code, type_code},
};

/// Limit on the nesting of regions, so that a tree can be walked by recursion.
const DEEPEST: usize = 256;

/// A region of one block: arguments, and operations, the last of which is the terminator.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Region<'a> {
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// Its operations, in order.
    pub operations: Vec<Operation<'a>>,
}

/// An operation of a [`Region`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// Its dialect, usually `vhlo`.
    pub dialect: &'a str,
    /// Its name, with the version of its form: `add_v1`.
    pub name: &'a str,
    /// The numbers of its operands.
    pub operands: Vec<usize>,
    /// Its results.
    pub results: Vec<Value>,
    /// Its regions.
    pub regions: Vec<Region<'a>>,
    /// Its attributes, sorted by name.
    properties: Option<Cursor<'a>>,
}

/// A value: an argument of a region, or a result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Value {
    /// Number of the value in its function: one more than the largest number of a value that is
    /// defined earlier and in scope. Sibling regions use the same numbers.
    pub number: usize,
    /// Number of its type in the program: see [`Program::tensor_type`].
    pub type_number: usize,
}

/// The type of a tensor with known dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorType {
    /// Type of the elements, as StableHLO prints it: `f32`, `ui8`, `i1`.
    pub element: &'static str,
    /// Number of elements in each dimension.
    pub dimensions: Vec<i64>,
}

/// An attribute of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Attribute<'a> {
    /// True or false.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// The number of a value of an enumeration, in the order of StableHLO's specification.
    Enumeration(u64),
    /// Text.
    String(&'a str),
    /// A constant: the number of its type, and its elements in little-endian order, or a single
    /// element that stands for all of them. Elements of `i1` may be packed, eight in a byte.
    Tensor {
        /// Number of its type.
        type_number: usize,
        /// Bytes of the elements.
        data: &'a [u8],
    },
    /// Any other attribute, by its code.
    Other(u64),
}

impl<'a> Program<'a> {
    /// Returns the operations of the program as a tree: the region around its module.
    ///
    /// ```
    /// use serdes_stablehlo::{Program, StableHloError};
    ///
    /// fn print(program: &Program<'_>) -> Result<(), StableHloError> {
    ///     let mut open: Vec<_> = program.tree()?.operations;
    ///     while let Some(operation) = open.pop() {
    ///         println!("{} of {} values", operation.name, operation.operands.len());
    ///         open.extend(operation.regions.into_iter().flat_map(|region| region.operations));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`StableHloError::Malformed`] for damaged bytes, regions of several blocks, and more than
    /// 256 nested regions.
    pub fn tree(&self) -> Result<Region<'a>, StableHloError> {
        let file = self.file();
        let mut builder = Builder::new(file);
        let walked =
            Walk::new(&file.tables, &mut builder).run(|operation, builder| builder.add(operation));
        match walked {
            Err(Stop::Damaged(damage)) => Err(damage.into()),
            // Attributes and types by number have no codes.
            Ok(()) | Err(Stop::UnknownCode(_)) => Ok(builder.root.unwrap_or_default()),
        }
    }

    /// Returns the attribute of an operation at an index in the alphabetical order of attribute
    /// names; `None` if there is none.
    pub fn attribute(&self, operation: &Operation<'a>, place: usize) -> Option<Attribute<'a>> {
        let mut numbers = operation.properties?;
        for _ in 0..place {
            numbers.varint().ok()?;
        }
        self.read_attribute(numbers.varint().ok()?)
    }

    fn read_attribute(&self, number: u64) -> Option<Attribute<'a>> {
        let (code, mut parts) = self.file().attribute(number, VHLO)?;
        Some(match code {
            attribute_code::BOOLEAN => Attribute::Boolean(parts.varint().ok()? != 0),
            attribute_code::INTEGER => {
                let of = parts.varint().ok()?;
                let element = self.element(usize::try_from(of).ok()?)?;
                Attribute::Integer(match element {
                    "i4" | "i8" | "ui4" | "ui8" | "i1" => i64::from(parts.byte().ok()?),
                    _ => parts.zigzag().ok()?,
                })
            }
            attribute_code::STRING => {
                let string = usize::try_from(parts.varint().ok()?).ok()?;
                Attribute::String(std::str::from_utf8(self.file().tables.string(string)).ok()?)
            }
            attribute_code::TENSOR => {
                let type_number = usize::try_from(parts.varint().ok()?).ok()?;
                Attribute::Tensor { type_number, data: parts.stretch().ok()? }
            }
            code if attribute_code::ENUMERATIONS.contains(&code) => {
                Attribute::Enumeration(parts.varint().ok()?)
            }
            code => Attribute::Other(code),
        })
    }

    /// Returns the type with that number, if it is a tensor type with known dimensions.
    pub fn tensor_type(&self, number: usize) -> Option<TensorType> {
        let entry = self.file().types.get(number)?;
        let (code, mut parts) = self.file().code(entry, VHLO)?;
        if code != type_code::RANKED_TENSOR {
            return None;
        }
        let mut dimensions = Vec::new();
        for _ in 0..parts.varint().ok()? {
            dimensions.push(parts.zigzag().ok().filter(|dimension| *dimension >= 0)?);
        }
        let element = self.element(usize::try_from(parts.varint().ok()?).ok()?)?;
        Some(TensorType { element, dimensions })
    }

    fn element(&self, number: usize) -> Option<&'static str> {
        let entry = self.file().types.get(number)?;
        let (code, _) = self.file().code(entry, VHLO)?;
        type_name(code)
    }
}

/// Nests operations as they are read.
#[derive(Debug)]
struct Builder<'f, 'a> {
    file: &'f Bytecode<'a>,
    /// Operations whose regions are being read, and true for those whose regions cannot use values
    /// from outside.
    open: Vec<(Operation<'a>, bool)>,
    /// Regions that are being read, each with the length of `open` at its start.
    regions: Vec<(usize, Region<'a>)>,
    root: Option<Region<'a>>,
    scopes: Vec<Scope>,
}

/// The numbers of values that are visible to each other; the file counts them from zero.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    /// The number of its first value in the function.
    first: usize,
    /// One more than the largest number defined.
    next: usize,
}

impl<'f, 'a> Builder<'f, 'a> {
    fn new(file: &'f Bytecode<'a>) -> Self {
        let scopes = vec![Scope::default()];
        Self { file, open: Vec::new(), regions: Vec::new(), root: None, scopes }
    }

    /// Returns the number in the function of a used value of the innermost scope.
    fn used(&self, number: u64, cursor: &Cursor<'_>) -> Result<usize, Stop> {
        let first = self.scopes.last().map_or(0, |scope| scope.first);
        match place(number, cursor)?.checked_add(first) {
            Some(number) => Ok(number),
            None => Ok(cursor.damage("a number that fits memory")?),
        }
    }

    /// Like [`Self::used`], for a value that is being defined.
    fn defined(&mut self, number: u64, cursor: &Cursor<'_>) -> Result<usize, Stop> {
        let number = self.used(number, cursor)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.next = scope.next.max(number.saturating_add(1));
        }
        Ok(number)
    }

    fn add(&mut self, found: &Found<'a>) -> Result<(), Stop> {
        let (dialect, name) = self.file.operation_name(found.name);
        let mut operands = Vec::new();
        let mut numbers = found.operand_numbers;
        for _ in 0..found.operands {
            let at = numbers;
            operands.push(self.used(numbers.varint()?, &at)?);
        }
        let mut results = Vec::new();
        let mut types = found.results;
        for number in (found.first_result..).take(usize::try_from(found.result_count).unwrap_or(0))
        {
            let number = self.defined(number, &types)?;
            results.push(Value { number, type_number: types.count()? });
        }
        let (properties, regions) = (found.properties, Vec::new());
        let operation = Operation { dialect, name, operands, results, regions, properties };
        if found.regions > 0 {
            self.open.push((operation, found.is_isolated));
            if found.is_isolated {
                let next = self.scopes.last().map_or(0, |scope| scope.next);
                self.scopes.push(Scope { first: next, next });
            }
        } else {
            self.keep(operation);
        }
        Ok(())
    }

    fn keep(&mut self, operation: Operation<'a>) {
        if let Some((_, region)) = self.regions.last_mut() {
            region.operations.push(operation);
        }
    }

    fn begin(&mut self, first: u64, arguments: u64, mut types: Cursor<'a>) -> Result<(), Stop> {
        if self.regions.last().is_some_and(|(open, _)| *open == self.open.len()) {
            return Ok(types.damage("regions of one block")?);
        }
        if self.regions.len() >= DEEPEST {
            return Ok(types.damage("at most 256 regions in one another")?);
        }
        let mut region = Region::default();
        for number in (first..).take(usize::try_from(arguments).unwrap_or(0)) {
            let number = self.defined(number, &types)?;
            let (of, has_location) = types.flagged()?;
            region.arguments.push(Value { number, type_number: place(of, &types)? });
            if has_location {
                types.varint()?;
            }
        }
        self.regions.push((self.open.len(), region));
        Ok(())
    }
}

/// Returns a number as a `usize`.
fn place(number: u64, cursor: &Cursor<'_>) -> Result<usize, Stop> {
    match usize::try_from(number) {
        Ok(number) => Ok(number),
        Err(_) => Ok(cursor.damage("a number that fits memory")?),
    }
}

impl<'a> References<'a> for Builder<'_, 'a> {
    fn attribute(&mut self, cursor: &mut Cursor<'a>, wanted: Wanted) -> Result<usize, Stop> {
        self.file.numbers().attribute(cursor, wanted)
    }

    fn type_of(&mut self, index: u64, cursor: &Cursor<'a>) -> Result<usize, Stop> {
        self.file.numbers().type_of(index, cursor)
    }

    fn nest(&mut self, step: Nesting<'a>) -> Result<(), Stop> {
        match step {
            Nesting::Block { first_argument, arguments, types } => {
                return self.begin(first_argument, arguments, types);
            }
            Nesting::EndOfRegion => {
                let region = self.regions.pop().map(|(_, region)| region);
                match self.open.last_mut() {
                    Some((operation, _)) => operation.regions.extend(region),
                    None => self.root = region,
                }
            }
            Nesting::EndOfRegions => {
                if let Some((operation, is_isolated)) = self.open.pop() {
                    if is_isolated {
                        self.scopes.pop();
                    }
                    self.keep(operation);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
