//! The sections of a file.

use super::cursor::{Cursor, write_varint};
use crate::stablehlo::StableHloError;

/// The kinds of sections that are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stablehlo) enum SectionKind {
    Strings,
    Dialects,
    AttributesAndTypes,
    Offsets,
    Operations,
    Properties,
    /// Kept as it is.
    Other(u8),
}

impl SectionKind {
    /// The section of resources, which has large constants.
    pub(in crate::stablehlo) const RESOURCES: Self = Self::Other(5);

    fn of(number: u8) -> Self {
        match number {
            0 => Self::Strings,
            1 => Self::Dialects,
            2 => Self::AttributesAndTypes,
            3 => Self::Offsets,
            4 => Self::Operations,
            8 => Self::Properties,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Strings => 0,
            Self::Dialects => 1,
            Self::AttributesAndTypes => 2,
            Self::Offsets => 3,
            Self::Operations => 4,
            Self::Properties => 8,
            Self::Other(number) => number,
        }
    }
}

/// A section: what it is, how it lies, and its contents.
#[derive(Clone, Copy, Debug)]
pub(in crate::stablehlo) struct Section<'a> {
    pub(in crate::stablehlo) kind: SectionKind,
    /// Its contents begin at a multiple of that many bytes.
    pub(in crate::stablehlo) alignment: Option<usize>,
    pub(in crate::stablehlo) contents: Cursor<'a>,
}

/// The byte between what is aligned.
const PADDING: u8 = 0xCB;
const IS_ALIGNED: u8 = 0x80;
/// More than any real section asks for.
const LARGEST_ALIGNMENT: u64 = 1 << 16;

impl<'a> Section<'a> {
    /// Reads one section, whole.
    pub(in crate::stablehlo) fn read(cursor: &mut Cursor<'a>) -> Result<Self, StableHloError> {
        let (kind, alignment, length) = Self::read_head(cursor)?;
        let at = cursor.at();
        let contents = Cursor::new(cursor.bytes(length)?, at);
        Ok(Self { kind, alignment, contents })
    }

    /// Reads up to the contents: kind, alignment and length.
    pub(in crate::stablehlo) fn read_head(
        cursor: &mut Cursor<'a>,
    ) -> Result<(SectionKind, Option<usize>, usize), StableHloError> {
        let number = cursor.byte()?;
        let length = cursor.count()?;
        if number & IS_ALIGNED == 0 {
            return Ok((SectionKind::of(number), None, length));
        }
        let alignment = cursor.varint()?;
        if !alignment.is_power_of_two() || alignment > LARGEST_ALIGNMENT {
            return cursor.error("an alignment that is a power of two up to 65536");
        }
        // Not more than the limit, which fits.
        let alignment = alignment as usize;
        while !cursor.at().is_multiple_of(alignment) {
            if cursor.byte()? != PADDING {
                return cursor.error("padding up to the alignment of the section");
            }
        }
        Ok((SectionKind::of(number & !IS_ALIGNED), Some(alignment), length))
    }
}

/// Writes a section with these contents at the end of the file.
pub(in crate::stablehlo) fn write_section(
    file: &mut Vec<u8>,
    kind: SectionKind,
    alignment: Option<usize>,
    contents: &[u8],
) {
    let is_aligned = if alignment.is_some() { IS_ALIGNED } else { 0 };
    file.push(kind.number() | is_aligned);
    write_varint(file, contents.len() as u64);
    if let Some(alignment) = alignment {
        write_varint(file, alignment as u64);
        file.resize(file.len().next_multiple_of(alignment.max(1)), PADDING);
    }
    file.extend_from_slice(contents);
}
