//! The walk over the operations of a file.

use super::{
    cursor::Cursor,
    sections::{Section, SectionKind},
};
use crate::stablehlo::StableHloError;

/// An operation, without its regions.
#[derive(Clone, Copy, Debug)]
pub(in crate::stablehlo) struct Operation {
    /// Index into the names of operations.
    pub(in crate::stablehlo) name: usize,
    /// The attributes beside the properties, as a dictionary.
    pub(in crate::stablehlo) attributes: Option<u64>,
    pub(in crate::stablehlo) properties: Option<u64>,
    pub(in crate::stablehlo) operands: u64,
    pub(in crate::stablehlo) regions: u64,
    /// True if the regions lie in a section of their own.
    pub(in crate::stablehlo) in_section: bool,
    /// Position in the file, in bytes.
    pub(in crate::stablehlo) at: usize,
    /// Position and value of the byte that says which parts there are.
    pub(in crate::stablehlo) mask: (usize, u8),
    /// Position of the number of the properties, if there are any.
    pub(in crate::stablehlo) properties_at: usize,
    /// Position behind it, where its regions begin.
    pub(in crate::stablehlo) end: usize,
}

impl Operation {
    /// The bit for properties in the byte that says which parts there are.
    pub(in crate::stablehlo) const HAS_PROPERTIES: u8 = has::PROPERTIES;
}

/// Number of entries of each table in the file; an operation refers to no others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) names: usize,
    pub(super) attributes: usize,
    pub(super) properties: usize,
}

/// Parts of an operation, as bits of a byte.
mod has {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 2;
    pub(super) const OPERANDS: u8 = 4;
    pub(super) const SUCCESSORS: u8 = 8;
    pub(super) const REGIONS: u8 = 0x10;
    pub(super) const ORDERS_OF_USES: u8 = 0x20;
    pub(super) const PROPERTIES: u8 = 0x40;
}

/// Nested parts that are left to read; the walk keeps its own stack, because a file's nesting has
/// no limit.
enum Open {
    Regions {
        left: u64,
    },
    Blocks {
        left: u64,
    },
    Operations {
        left: u64,
    },
    /// The section of an operation's regions ends here.
    Section {
        end: usize,
    },
}

/// Calls `visit` with every operation of the section.
pub(super) fn walk(
    mut cursor: Cursor<'_>,
    limits: Limits,
    mut visit: impl FnMut(&Operation),
) -> Result<(), StableHloError> {
    let mut open = vec![Open::Blocks { left: 1 }];
    while let Some(innermost) = open.last_mut() {
        match innermost {
            Open::Regions { left: 0 } | Open::Blocks { left: 0 } | Open::Operations { left: 0 } => {
                open.pop();
            }
            Open::Section { end } => {
                if cursor.at() != *end {
                    return cursor.error("the end of the regions where their section ends");
                }
                open.pop();
            }
            Open::Regions { left } => {
                *left -= 1;
                let blocks = cursor.varint()?;
                if blocks > 0 {
                    // The number of values in the region.
                    cursor.varint()?;
                    open.push(Open::Blocks { left: blocks });
                }
            }
            Open::Blocks { left } => {
                *left -= 1;
                let operations = read_block_head(&mut cursor)?;
                open.push(Open::Operations { left: operations });
            }
            Open::Operations { left } => {
                *left -= 1;
                let operation = read_operation(&mut cursor, limits)?;
                visit(&operation);
                if operation.regions > 0 && operation.in_section {
                    let end = section_end(&mut cursor)?;
                    open.push(Open::Section { end });
                }
                open.push(Open::Regions { left: operation.regions });
            }
        }
    }
    if cursor.is_empty() { Ok(()) } else { cursor.error("the end of the operations") }
}

/// Position of the end of the section of regions that begins here.
fn section_end(cursor: &mut Cursor<'_>) -> Result<usize, StableHloError> {
    let (kind, _, length) = Section::read_head(cursor)?;
    if kind != SectionKind::Operations || length > cursor.rest().len() {
        return cursor.error("a section of operations");
    }
    Ok(cursor.at() + length)
}

/// The arguments of a block; how many operations it has.
fn read_block_head(cursor: &mut Cursor<'_>) -> Result<u64, StableHloError> {
    let (operations, has_arguments) = cursor.flagged()?;
    if has_arguments {
        let arguments = cursor.varint()?;
        for _ in 0..arguments {
            let (_type, has_location) = cursor.flagged()?;
            if has_location {
                cursor.varint()?;
            }
        }
        if cursor.byte()? != 0 {
            skip_orders_of_uses(cursor, arguments)?;
        }
    }
    Ok(operations)
}

/// An operation, up to its regions.
fn read_operation(cursor: &mut Cursor<'_>, limits: Limits) -> Result<Operation, StableHloError> {
    let at = cursor.at();
    let name = cursor.count()?;
    if name >= limits.names {
        return cursor.error("the number of a name that the file has");
    }
    let mask_at = cursor.at();
    let mask = cursor.byte()?;
    let counted = |cursor: &mut Cursor<'_>, part: u8| -> Result<u64, StableHloError> {
        let count = if mask & part == 0 { 0 } else { cursor.varint()? };
        cursor.skip_varints(count)?;
        Ok(count)
    };
    let number = |cursor: &mut Cursor<'_>, part: u8, limit: usize| {
        if mask & part == 0 {
            return Ok(None);
        }
        match cursor.varint()? {
            number if number < limit as u64 => Ok(Some(number)),
            _ => cursor.error("the number of attributes or properties that the file has"),
        }
    };
    // The location.
    cursor.varint()?;
    let attributes = number(cursor, has::ATTRIBUTES, limits.attributes)?;
    let properties_at = cursor.at();
    let properties = number(cursor, has::PROPERTIES, limits.properties)?;
    let results = counted(cursor, has::RESULTS)?;
    let operands = counted(cursor, has::OPERANDS)?;
    counted(cursor, has::SUCCESSORS)?;
    if mask & has::ORDERS_OF_USES != 0 {
        skip_orders_of_uses(cursor, results)?;
    }
    let (regions, in_section) =
        if mask & has::REGIONS == 0 { (0, false) } else { cursor.flagged()? };
    let (mask, end) = ((mask_at, mask), cursor.at());
    Ok(Operation {
        name,
        attributes,
        properties,
        operands,
        regions,
        in_section,
        at,
        mask,
        properties_at,
        end,
    })
}

/// In which order the uses of `values` values are.
fn skip_orders_of_uses(cursor: &mut Cursor<'_>, values: u64) -> Result<(), StableHloError> {
    let ordered = if values > 1 { cursor.varint()? } else { 1 };
    for _ in 0..ordered {
        if values > 1 {
            cursor.varint()?;
        }
        let (places, _are_pairs) = cursor.flagged()?;
        cursor.skip_varints(places)?;
    }
    Ok(())
}
