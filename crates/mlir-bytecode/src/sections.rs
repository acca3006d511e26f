//! The sections of a file.

use crate::cursor::{Cursor, Result, write_varint};

/// The kinds of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SectionKind {
    /// Strings that other sections refer to.
    Strings,
    /// Dialects, and the names of their operations.
    Dialects,
    /// Attributes, followed by types.
    AttributesAndTypes,
    /// The length of each attribute and type.
    Offsets,
    /// Operations, nested.
    Operations,
    /// Large constants.
    Resources,
    /// The length of each resource.
    ResourceOffsets,
    /// The version of a dialect.
    DialectVersion,
    /// The properties of operations.
    Properties,
}

impl SectionKind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Strings,
        Self::Dialects,
        Self::AttributesAndTypes,
        Self::Offsets,
        Self::Operations,
        Self::Resources,
        Self::ResourceOffsets,
        Self::DialectVersion,
        Self::Properties,
    ];
}

/// The byte used for padding before aligned contents.
const PADDING: u8 = 0xCB;
const IS_ALIGNED: u8 = 0x80;

/// A section: its kind, alignment and contents.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Its kind.
    pub kind: SectionKind,
    /// The alignment of the contents, in bytes, if they are aligned.
    pub alignment: Option<usize>,
    /// Its contents, without the head.
    pub contents: Cursor<'a>,
}

impl<'a> Section<'a> {
    /// Reads one whole section.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let (kind, alignment, length) = Self::read_head(cursor)?;
        let at = cursor.at();
        let contents = Cursor::new(cursor.bytes(length)?, at);
        Ok(Self { kind, alignment, contents })
    }

    /// Reads up to the contents: kind, alignment and length.
    ///
    /// # Errors
    /// [`Damage`](crate::Damage) if the bytes are not a section.
    pub fn read_head(cursor: &mut Cursor<'a>) -> Result<(SectionKind, Option<usize>, usize)> {
        let at_kind = *cursor;
        let number = cursor.byte()?;
        let length = cursor.count()?;
        let Some(kind) = SectionKind::ALL.get(usize::from(number & !IS_ALIGNED)) else {
            return at_kind.damage("a kind of section, 0 to 8");
        };
        if number & IS_ALIGNED == 0 {
            return Ok((*kind, None, length));
        }
        let alignment = cursor.count()?;
        if !alignment.is_power_of_two() {
            return cursor.damage("an alignment that is a power of two");
        }
        while !cursor.at().is_multiple_of(alignment) {
            if cursor.byte()? != PADDING {
                return cursor.damage("padding up to the alignment of the section");
            }
        }
        Ok((*kind, Some(alignment), length))
    }
}

/// Writes a section with these contents at the end of the file.
pub fn write_section(
    file: &mut Vec<u8>,
    kind: SectionKind,
    alignment: Option<usize>,
    contents: &[u8],
) {
    let is_aligned = if alignment.is_some() { IS_ALIGNED } else { 0 };
    file.push(kind as u8 | is_aligned);
    write_varint(file, contents.len() as u64);
    if let Some(alignment) = alignment {
        write_varint(file, alignment as u64);
        file.resize(file.len().next_multiple_of(alignment.max(1)), PADDING);
    }
    file.extend_from_slice(contents);
}

/// The sections of a file, one of each kind.
#[derive(Clone, Debug, Default)]
pub struct Sections<'a> {
    by_kind: [Option<Section<'a>>; 9],
    /// The kinds in the order of the file.
    order: Vec<SectionKind>,
}

impl<'a> Sections<'a> {
    /// Reads all sections up to the end of the file.
    ///
    /// # Errors
    /// [`Damage`](crate::Damage) if a section is damaged, duplicate or missing.
    pub fn read(mut cursor: Cursor<'a>, version: u64) -> Result<Self> {
        let mut sections = Self::default();
        while !cursor.is_empty() {
            let at = cursor;
            let section = Section::read(&mut cursor)?;
            if let Some(place) = sections.by_kind.get_mut(section.kind as usize)
                && place.replace(section).is_some()
            {
                return at.damage("one section of each kind");
            }
            sections.order.push(section.kind);
        }
        let needed = [
            SectionKind::Strings,
            SectionKind::Dialects,
            SectionKind::AttributesAndTypes,
            SectionKind::Offsets,
            SectionKind::Operations,
        ];
        let has_all = needed.iter().all(|kind| sections.get(*kind).is_some());
        if !has_all || (version >= 5 && sections.get(SectionKind::Properties).is_none()) {
            return cursor.damage(
                "sections of strings, dialects, attributes, offsets, operations and properties",
            );
        }
        let resources = sections.get(SectionKind::Resources).is_some();
        if resources != sections.get(SectionKind::ResourceOffsets).is_some() {
            return cursor.damage("resources together with their offsets");
        }
        Ok(sections)
    }

    /// Returns the sections in the order of the file.
    pub fn in_order(&self) -> impl Iterator<Item = Section<'a>> + '_ {
        self.order.iter().filter_map(|kind| self.by_kind.get(*kind as usize).copied().flatten())
    }

    pub(crate) fn get(&self, kind: SectionKind) -> Option<Cursor<'a>> {
        self.by_kind.get(kind as usize).copied().flatten().map(|section| section.contents)
    }

    /// Returns the contents of a section that must exist.
    pub(crate) fn contents(&self, kind: SectionKind) -> Cursor<'a> {
        self.get(kind).unwrap_or(Cursor::new(&[], 0))
    }
}
