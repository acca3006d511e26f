//! The sections of a file.

use super::cursor::{Cursor, Result};

/// The kinds of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SectionKind {
    Strings,
    Dialects,
    AttributesAndTypes,
    Offsets,
    Operations,
    Resources,
    ResourceOffsets,
    DialectVersion,
    Properties,
}

impl SectionKind {
    pub(super) const ALL: [Self; 9] = [
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

/// The byte between what is aligned.
const PADDING: u8 = 0xCB;
const IS_ALIGNED: u8 = 0x80;

/// Reads one section: its kind and its contents.
pub(super) fn read_section<'a>(cursor: &mut Cursor<'a>) -> Result<(SectionKind, Cursor<'a>)> {
    let at_kind = *cursor;
    let number = cursor.byte()?;
    let length = cursor.count()?;
    let Some(kind) = SectionKind::ALL.get(usize::from(number & !IS_ALIGNED)) else {
        return at_kind.damage("a kind of section, 0 to 8");
    };
    if number & IS_ALIGNED != 0 {
        let alignment = cursor.count()?;
        if !alignment.is_power_of_two() {
            return cursor.damage("an alignment that is a power of two");
        }
        while !cursor.at().is_multiple_of(alignment) {
            if cursor.byte()? != PADDING {
                return cursor.damage("padding up to the alignment of the section");
            }
        }
    }
    let at = cursor.at();
    Ok((*kind, Cursor::new(cursor.bytes(length)?, at)))
}

/// The sections of a file, each of a kind.
#[derive(Debug, Default)]
pub(super) struct Sections<'a>([Option<Cursor<'a>>; 9]);

impl<'a> Sections<'a> {
    /// Reads all sections up to the end of the file.
    pub(super) fn read(mut cursor: Cursor<'a>, version: u64) -> Result<Self> {
        let mut sections = Self::default();
        while !cursor.is_empty() {
            let at = cursor;
            let (kind, contents) = read_section(&mut cursor)?;
            if let Some(place) = sections.0.get_mut(kind as usize)
                && place.replace(contents).is_some()
            {
                return at.damage("one section of each kind");
            }
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

    pub(super) fn get(&self, kind: SectionKind) -> Option<Cursor<'a>> {
        self.0.get(kind as usize).copied().flatten()
    }

    /// The contents of a section that is there.
    pub(super) fn contents(&self, kind: SectionKind) -> Cursor<'a> {
        self.get(kind).unwrap_or(Cursor::new(&[], 0))
    }
}
