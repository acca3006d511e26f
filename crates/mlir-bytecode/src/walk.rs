//! The walk over the operations of a file, in the order in which MLIR's readers visit them.
//!
//! The walk keeps its own stack instead of recursing. Values are numbered as in MLIR's readers: a
//! used value must be defined, and no more values may be defined than were announced.

use crate::{
    cursor::{Cursor, Result},
    references::{Nesting, References, Stop, Wanted},
    sections::{Section, SectionKind},
    tables::{OperationName, Tables},
};

/// Limit on the nesting of regions: real readers recurse, and crash beyond it.
const DEEPEST: usize = 4096;

/// The parts that an operation has, as bits of a byte.
mod has {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 2;
    pub(super) const OPERANDS: u8 = 4;
    pub(super) const SUCCESSORS: u8 = 8;
    pub(super) const REGIONS: u8 = 0x10;
    pub(super) const ORDERS_OF_USES: u8 = 0x20;
    pub(super) const PROPERTIES: u8 = 0x40;
    /// The parts that come after the operands.
    pub(super) const RARE: u8 = SUCCESSORS | REGIONS | ORDERS_OF_USES;
}

/// An operation, without its regions.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// The index of its name.
    pub name: usize,
    /// Its name.
    pub operation: OperationName,
    /// The number of the dictionary with its attributes that are not properties.
    pub attributes: Option<usize>,
    /// The bytes of its properties.
    pub properties: Option<Cursor<'a>>,
    /// The number of its properties.
    pub properties_number: Option<u64>,
    /// True if it has properties, or an attribute in place of them.
    pub has_properties: bool,
    /// The type numbers of its results.
    pub results: Cursor<'a>,
    /// Number of its results.
    pub result_count: u64,
    /// Number of its operands.
    pub operands: u64,
    /// The value numbers of its operands.
    pub operand_numbers: Cursor<'a>,
    /// The number of its first result among the values of its scope, if it has one.
    pub first_result: u64,
    /// Number of regions around it.
    pub depth: usize,
    /// Number of its regions.
    pub regions: u64,
    /// True if its regions lie in a section of their own.
    pub is_isolated: bool,
    /// Position in the file, in bytes.
    pub at: usize,
    /// Position and value of the byte that encodes which parts exist.
    pub mask: (usize, u8),
    /// Position of the number of its properties, if there are any.
    pub properties_at: usize,
    /// Position after the properties, where its regions begin.
    pub end: usize,
}

impl Operation<'_> {
    /// The bit for properties in the byte that encodes which parts exist.
    pub const HAS_PROPERTIES: u8 = has::PROPERTIES;
}

/// The regions of an operation during the walk.
#[derive(Debug)]
struct Level<'a> {
    regions_left: u64,
    blocks_left: u64,
    operations_left: u64,
    blocks: u64,
    /// Number of values that the current region announced.
    values: u64,
    /// The bytes after the section of the regions, if they have a section of their own.
    outside: Option<Cursor<'a>>,
    is_isolated: bool,
    is_in_region: bool,
}

/// The values of nested regions that can refer to each other.
#[derive(Debug, Default)]
struct Scope {
    /// 1 for a value that was defined, 2 for one that was used before its definition.
    states: Vec<u8>,
    /// Number of values that the open regions announced.
    announced: u64,
    /// The number of the next value, for each open region.
    next: Vec<u64>,
}

/// Walks over the operations.
#[derive(Debug)]
pub struct Walk<'w, 't, 'a, R> {
    tables: &'t Tables<'a>,
    entries: &'w mut R,
    cursor: Cursor<'a>,
    levels: Vec<Level<'a>>,
    scopes: Vec<Scope>,
    /// Number of values that were used but are not defined yet.
    forward: u64,
    /// Number of further values that may be defined: each definition takes a byte.
    values_left: usize,
}

impl<'w, 't, 'a, R: References<'a>> Walk<'w, 't, 'a, R> {
    /// Creates a walk over the operations of a file.
    pub fn new(tables: &'t Tables<'a>, entries: &'w mut R) -> Self {
        let cursor = tables.operations;
        let values_left = cursor.rest().len();
        Self {
            tables,
            entries,
            cursor,
            levels: Vec::new(),
            scopes: Vec::new(),
            forward: 0,
            values_left,
        }
    }

    /// Calls `visit` with every operation.
    ///
    /// # Errors
    /// [`Stop`] where reading ends, or the error that `visit` returns.
    pub fn run(
        mut self,
        mut visit: impl FnMut(&Operation<'a>, &mut R) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.begin()?;
        while let Some(level) = self.levels.last_mut() {
            if !level.is_in_region {
                if level.regions_left == 0 {
                    self.end_regions();
                    self.entries.nest(Nesting::EndOfRegions)?;
                    continue;
                }
                level.regions_left = level.regions_left.saturating_sub(1);
                self.begin_region()?;
            } else if level.operations_left > 0 {
                level.operations_left = level.operations_left.saturating_sub(1);
                self.read_operation(&mut visit)?;
            } else if level.blocks_left > 0 {
                level.blocks_left = level.blocks_left.saturating_sub(1);
                self.begin_block()?;
            } else {
                self.end_region();
                self.entries.nest(Nesting::EndOfRegion)?;
            }
        }
        if self.forward > 0 {
            return Ok(self.cursor.damage("a definition of each value that is used")?);
        }
        Ok(())
    }

    /// Enters the outermost block, which has no region of its own.
    fn begin(&mut self) -> Result<(), Stop> {
        self.scopes.push(Scope { next: vec![0], ..Scope::default() });
        self.levels.push(Level {
            regions_left: 0,
            blocks_left: 1,
            operations_left: 0,
            blocks: 1,
            values: 0,
            outside: None,
            is_isolated: true,
            is_in_region: true,
        });
        Ok(())
    }

    fn begin_region(&mut self) -> Result<(), Stop> {
        let blocks = self.cursor.varint()?;
        if blocks == 0 {
            return Ok(());
        }
        let values = self.cursor.varint()?;
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        scope.next.push(scope.announced);
        scope.announced = scope.announced.saturating_add(values);
        if let Some(level) = self.levels.last_mut() {
            level.is_in_region = true;
            level.blocks_left = blocks;
            level.blocks = blocks;
            level.values = values;
            level.operations_left = 0;
        }
        Ok(())
    }

    fn end_region(&mut self) {
        let Some(level) = self.levels.last_mut() else { return };
        level.is_in_region = false;
        let values = level.values;
        if let Some(scope) = self.scopes.last_mut() {
            scope.next.pop();
            scope.announced = scope.announced.saturating_sub(values);
            let kept = usize::try_from(scope.announced).unwrap_or(usize::MAX);
            let kept = kept.min(scope.states.len());
            self.values_left =
                self.values_left.saturating_add(scope.states.len().saturating_sub(kept));
            scope.states.truncate(kept);
        }
    }

    fn end_regions(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        if level.is_isolated
            && let Some(scope) = self.scopes.pop()
        {
            self.values_left = self.values_left.saturating_add(scope.states.len());
        }
        if let Some(outside) = level.outside {
            self.cursor = outside;
        }
    }

    fn begin_block(&mut self) -> Result<(), Stop> {
        let (operations, has_arguments) = self.cursor.flagged()?;
        if let Some(level) = self.levels.last_mut() {
            level.operations_left = operations;
        }
        let first_argument = self.next_value();
        if !has_arguments {
            let types = self.cursor;
            return self.entries.nest(Nesting::Block { first_argument, arguments: 0, types });
        }
        let arguments = self.cursor.varint()?;
        let types = self.cursor;
        for _ in 0..arguments {
            let at = self.cursor;
            let (of, has_location) = if self.tables.version < 4 {
                (self.cursor.varint()?, true)
            } else {
                self.cursor.flagged()?
            };
            self.entries.type_of(of, &at)?;
            if has_location {
                self.entries.attribute(&mut self.cursor, Wanted::Location)?;
            }
        }
        self.define(arguments)?;
        self.entries.nest(Nesting::Block { first_argument, arguments, types })?;
        if self.tables.version >= 3 && self.cursor.byte()? != 0 {
            self.skip_orders_of_uses(arguments)?;
        }
        Ok(())
    }

    fn read_operation(
        &mut self,
        visit: &mut impl FnMut(&Operation<'a>, &mut R) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let tables = self.tables;
        let mut cursor = self.cursor;
        let at = cursor;
        let name = tables.index(cursor.varint()?, tables.operation_names.len(), &at)?;
        let Some(operation) = tables.operation_names.get(name).copied() else { return Ok(()) };
        let mask_at = cursor.at();
        let mask = cursor.byte()?;
        self.entries.attribute(&mut cursor, Wanted::Location)?;
        let mut attributes = None;
        if mask & has::ATTRIBUTES != 0 {
            attributes = Some(self.entries.attribute(&mut cursor, Wanted::Dictionary)?);
        }
        let properties_at = cursor.at();
        let mut properties = None;
        if mask & has::PROPERTIES != 0 {
            properties = self.read_properties(&mut cursor, operation)?;
        }
        let result_count = count(&mut cursor, mask, has::RESULTS)?;
        let results = cursor;
        for _ in 0..result_count {
            let at = cursor;
            self.entries.type_of(cursor.varint()?, &at)?;
        }
        let operands = count(&mut cursor, mask, has::OPERANDS)?;
        let operand_numbers = cursor;
        for _ in 0..operands {
            let at = cursor;
            self.use_value(cursor.varint()?, &at)?;
        }
        let mut regions = (0, false);
        if mask & has::RARE != 0 {
            self.cursor = cursor;
            regions = self.read_rare_parts(mask, result_count)?;
            cursor = self.cursor;
        }
        let (regions, is_isolated) = regions;
        let (properties_number, properties) = properties.unzip();
        self.cursor = cursor;
        visit(
            &Operation {
                name,
                operation,
                attributes,
                properties,
                properties_number,
                has_properties: mask & has::PROPERTIES != 0,
                results,
                result_count,
                operands,
                operand_numbers,
                first_result: self.next_value(),
                depth: self.levels.len(),
                regions,
                is_isolated,
                at: at.at(),
                mask: (mask_at, mask),
                properties_at,
                end: cursor.at(),
            },
            &mut *self.entries,
        )?;
        if result_count > 0 && self.levels.last().is_some_and(|level| level.values > 0) {
            self.define(result_count)?;
        }
        if regions > 0 { self.begin_regions(regions, is_isolated) } else { Ok(()) }
    }

    /// Reads the number of an operation's properties and finds them, or the attribute used instead.
    fn read_properties(
        &mut self,
        cursor: &mut Cursor<'a>,
        operation: OperationName,
    ) -> Result<Option<(u64, Cursor<'a>)>, Stop> {
        match operation.was_registered {
            None => Ok(cursor.damage("no properties in this encoding")?),
            Some(true) => {
                let at = *cursor;
                let number = cursor.varint()?;
                Ok(Some((number, self.tables.properties(number, &at)?)))
            }
            Some(false) => {
                self.entries.attribute(cursor, Wanted::Anything)?;
                Ok(None)
            }
        }
    }

    /// Reads the parts of an operation after its operands, which most operations do not have.
    /// Returns the number of its regions, and true if they have a section of their own.
    fn read_rare_parts(&mut self, mask: u8, results: u64) -> Result<(u64, bool), Stop> {
        for _ in 0..count(&mut self.cursor, mask, has::SUCCESSORS)? {
            let at = self.cursor;
            let block = self.cursor.varint()?;
            if self.levels.last().is_none_or(|level| block >= level.blocks) {
                return Ok(at.damage("the number of a block of the region")?);
            }
        }
        if self.tables.version >= 3 && mask & has::ORDERS_OF_USES != 0 {
            self.skip_orders_of_uses(results)?;
        }
        if mask & has::REGIONS == 0 { Ok((0, false)) } else { Ok(self.cursor.flagged()?) }
    }

    fn begin_regions(&mut self, regions: u64, is_isolated: bool) -> Result<(), Stop> {
        if self.levels.len() >= DEEPEST {
            return Ok(self.cursor.damage("at most 4096 regions in one another")?);
        }
        let mut outside = None;
        if is_isolated {
            self.scopes.push(Scope::default());
            if self.tables.version >= 2 {
                let at = self.cursor;
                let section = Section::read(&mut self.cursor)?;
                if section.kind != SectionKind::Operations {
                    return Ok(at.damage("a section of operations")?);
                }
                outside = Some(std::mem::replace(&mut self.cursor, section.contents));
            }
        }
        self.levels.push(Level {
            regions_left: regions,
            blocks_left: 0,
            operations_left: 0,
            blocks: 0,
            values: 0,
            outside,
            is_isolated,
            is_in_region: false,
        });
        Ok(())
    }

    /// Returns the number of the next value to be defined.
    fn next_value(&self) -> u64 {
        self.scopes.last().and_then(|scope| scope.next.last()).copied().unwrap_or_default()
    }

    /// Defines `count` new values.
    fn define(&mut self, count: u64) -> Result<(), Stop> {
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        let announced = scope.announced;
        let Some(next) = scope.next.last_mut() else { return Ok(()) };
        let begin = *next;
        let end = begin.saturating_add(count);
        if end > announced {
            return Ok(self.cursor.damage("at most as many values as the region announced")?);
        }
        *next = end;
        let at = self.cursor;
        (begin..end).try_for_each(|value| self.mark(value, 1, &at))
    }

    fn use_value(&mut self, value: u64, at: &Cursor<'a>) -> Result<(), Stop> {
        let Some(scope) = self.scopes.last().filter(|scope| value < scope.announced) else {
            return Ok(at.damage("the number of a value that was announced")?);
        };
        match usize::try_from(value).ok().and_then(|index| scope.states.get(index)) {
            Some(1 | 2) => Ok(()),
            _ => self.mark(value, 2, at),
        }
    }

    /// Records that a value is defined (1) or used (2).
    fn mark(&mut self, value: u64, state: u8, at: &Cursor<'a>) -> Result<(), Stop> {
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        let index = usize::try_from(value).unwrap_or(usize::MAX);
        if index >= scope.states.len() {
            let grown = index.saturating_sub(scope.states.len()).saturating_add(1);
            if grown > self.values_left {
                return Ok(at.damage("at most as many values as the file has room for")?);
            }
            self.values_left = self.values_left.saturating_sub(grown);
            if grown == 1 {
                scope.states.push(0);
            } else {
                scope.states.resize(index.saturating_add(1), 0);
            }
        }
        if let Some(place) = scope.states.get_mut(index) {
            match (*place, state) {
                (0, 2) => self.forward = self.forward.saturating_add(1),
                (2, 1) => self.forward = self.forward.saturating_sub(1),
                (_, 1) => {}
                _ => return Ok(()),
            }
            *place = state;
        }
        Ok(())
    }

    /// Skips the use-list orders of `values` values.
    fn skip_orders_of_uses(&mut self, values: u64) -> Result<(), Stop> {
        let ordered = if values > 1 { self.cursor.varint()? } else { 1 };
        for _ in 0..ordered {
            if values > 1 {
                self.cursor.varint()?;
            }
            let (places, _are_pairs) = self.cursor.flagged()?;
            self.cursor.skip_varints(places)?;
        }
        Ok(())
    }
}

/// Reads the number of parts of an operation; 0 where its mask has none.
#[inline]
fn count(cursor: &mut Cursor<'_>, mask: u8, part: u8) -> Result<u64> {
    if mask & part == 0 { Ok(0) } else { cursor.varint() }
}
