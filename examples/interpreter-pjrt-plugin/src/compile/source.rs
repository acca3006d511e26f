//! Reading the name, operands, attributes and regions of an operation of a program.

use serdes_plugin::{Result, Status};
use serdes_stablehlo::{Attribute, Operation, Program, Region};

use super::operation::{BINARY, OTHERS, UNARY};

pub struct Source<'p, 'a> {
    program: &'p Program<'a>,
    operation: &'p Operation<'a>,
}

impl<'p, 'a> Source<'p, 'a> {
    pub fn new(program: &'p Program<'a>, operation: &'p Operation<'a>) -> Self {
        Self { program, operation }
    }

    /// Returns the name without the version of its form: `dot_general` for `dot_general_v2`.
    pub fn name(&self) -> &'a str {
        let name = self.operation.name;
        name.rsplit_once("_v").map_or(name, |(name, _)| name)
    }

    /// Returns true if the operation has its first form.
    pub fn is_v1(&self) -> bool {
        self.operation.name.ends_with("_v1")
    }

    /// Returns an error that begins with the operation's name.
    pub fn wrong(&self, why: &str) -> Status {
        Status::invalid_argument(format!("the operation {}: {why}", self.operation.name))
    }

    pub fn unimplemented(&self, what: &str) -> Status {
        Status::unimplemented(format!("the operation {}: {what}", self.operation.name))
    }

    /// Returns the error for an operation that the interpreter does not have.
    pub fn unknown(&self) -> Status {
        let target = match (self.name(), self.program.attribute(self.operation, 2)) {
            ("custom_call", Some(Attribute::String(target))) => format!(" of {target:?}"),
            _ => String::new(),
        };
        let unary = UNARY.iter().map(|(name, _)| *name);
        let known = unary.chain(BINARY.iter().map(|(name, _)| *name)).chain(OTHERS.iter().copied());
        Status::unimplemented(format!(
            "the operation {}.{}{target}; the interpreter has {}",
            self.operation.dialect,
            self.operation.name,
            known.collect::<Vec<_>>().join(", ")
        ))
    }

    pub fn region(&self, place: usize) -> Result<&'p Region<'a>> {
        self.operation.regions.get(place).ok_or_else(|| self.wrong("a region is missing"))
    }

    pub fn regions(&self) -> &'p [Region<'a>] {
        &self.operation.regions
    }

    /// Returns the attribute at a place in the alphabetical order of the names.
    pub fn attribute(&self, place: usize) -> Result<Attribute<'a>> {
        let attribute = self.program.attribute(self.operation, place);
        attribute.ok_or_else(|| self.wrong("an attribute is missing"))
    }

    pub fn text(&self, place: usize) -> Result<&'a str> {
        match self.attribute(place)? {
            Attribute::String(text) => Ok(text),
            _ => Err(self.wrong("found another attribute, expected text")),
        }
    }

    /// Returns a dimension below a limit.
    pub fn dimension(&self, place: usize, limit: usize) -> Result<usize> {
        match self.attribute(place)? {
            Attribute::Integer(number) => usize::try_from(number)
                .ok()
                .filter(|number| *number < limit)
                .ok_or_else(|| self.wrong("a dimension that is not there")),
            _ => Err(self.wrong("found another attribute, expected a number")),
        }
    }

    /// Returns numbers, none of which is negative.
    pub fn numbers(&self, place: usize) -> Result<Vec<usize>> {
        let Attribute::Tensor { type_number, data } = self.attribute(place)? else {
            return Err(self.wrong("found another attribute, expected a list of numbers"));
        };
        let of = self.program.tensor_type(type_number).filter(|of| of.element == "i64");
        let count = match of.as_ref().map(|of| of.dimensions.as_slice()) {
            Some([count @ 0..=256]) => *count as usize,
            _ => return Err(self.wrong("found another attribute, expected a list of numbers")),
        };
        // One number may stand for all.
        let chunks = data.chunks_exact(8).cycle().take(count);
        let number = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_le_bytes);
        let numbers = chunks.map(|bytes| usize::try_from(number(bytes)?).ok());
        let numbers: Option<Vec<usize>> = numbers.collect();
        let numbers = numbers.filter(|numbers| numbers.len() == count);
        numbers.ok_or_else(|| self.unimplemented("negative numbers in an attribute"))
    }

    /// Returns dimensions below a limit, without duplicates.
    pub fn dimensions(&self, place: usize, limit: usize) -> Result<Vec<usize>> {
        let numbers = self.numbers(place)?;
        let is_new = |(at, number): (usize, &usize)| !numbers[..at].contains(number);
        if numbers.iter().all(|number| *number < limit) && numbers.iter().enumerate().all(is_new) {
            return Ok(numbers);
        }
        Err(self.wrong("dimensions that are not there, or are there twice"))
    }
}
