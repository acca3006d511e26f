//! The tables of a file: strings, dialects, names of operations, attributes, types, properties.
//!
//! A table keeps the offsets of its entries, four bytes each, and no copy of the entries.

use crate::{
    cursor::{Cursor, Damage, Result},
    sections::{Section, SectionKind, Sections},
};

/// Limits on the number of dialects and names of operations that are kept: MLIR has fewer.
const MOST_DIALECTS: usize = 1 << 10;
const MOST_OPERATION_NAMES: usize = 1 << 16;

/// The name of an operation of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationName {
    /// The number of the dialect.
    pub dialect: usize,
    /// The index of the string.
    pub name: usize,
    /// True if the dialect was registered with the writer; `None` where the encoding does not
    /// record it.
    pub was_registered: Option<bool>,
}

/// Attributes or types: the start and the dialect of each.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The start of each entry in the section, and the end. The highest bit is set if the dialect
    /// wrote the entry in its own encoding.
    starts: Vec<u32>,
    /// The first entry of each dialect, in the order of the file.
    groups: Vec<(u32, u16)>,
}

const IS_ENCODED: u32 = 1 << 31;

/// An attribute or a type, as its dialect wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The number of the dialect.
    pub dialect: usize,
    /// True if the dialect wrote it in its own encoding; false for text.
    pub is_encoded: bool,
    /// Its bytes.
    pub contents: Cursor<'a>,
}

/// The tables of a file.
#[derive(Clone, Debug)]
pub struct Tables<'a> {
    /// The version of the encoding.
    pub version: u64,
    data: Cursor<'a>,
    strings_section: Cursor<'a>,
    properties_section: Cursor<'a>,
    /// The start of each string in its section, and the end.
    strings: Vec<u32>,
    /// The index of the string that names each dialect.
    pub dialects: Vec<usize>,
    /// The bytes of the section of dialects before the names of operations.
    pub dialect_names: &'a [u8],
    /// The dialects whose entry has a version.
    pub versioned: Vec<usize>,
    /// The names of the operations.
    pub operation_names: Vec<OperationName>,
    /// The attributes.
    pub attributes: Entries,
    /// The types.
    pub types: Entries,
    /// The start of each set of properties in its section.
    properties: Vec<u32>,
    pub(crate) operations: Cursor<'a>,
}

impl<'a> Tables<'a> {
    /// Reads the tables of a file in this version of the encoding.
    ///
    /// # Errors
    /// [`Damage`] if the tables are inconsistent.
    pub fn read(sections: &Sections<'a>, version: u64) -> Result<Self> {
        let mut tables = Self {
            version,
            data: sections.contents(SectionKind::AttributesAndTypes),
            strings_section: sections.contents(SectionKind::Strings),
            properties_section: sections.contents(SectionKind::Properties),
            strings: Vec::new(),
            dialects: Vec::new(),
            dialect_names: &[],
            versioned: Vec::new(),
            operation_names: Vec::new(),
            attributes: Entries::default(),
            types: Entries::default(),
            properties: Vec::new(),
            operations: sections.contents(SectionKind::Operations),
        };
        tables.read_strings()?;
        tables.read_properties()?;
        tables.read_dialects(sections.contents(SectionKind::Dialects))?;
        tables.read_entries(sections.contents(SectionKind::Offsets))?;
        Ok(tables)
    }

    fn read_strings(&mut self) -> Result<()> {
        let mut cursor = self.strings_section;
        let size = cursor.rest().len();
        let count = cursor.count()?;
        // Each string takes a length and a zero.
        if count > size / 2 {
            return cursor.damage("at most as many strings as the section has room for");
        }
        let mut start = offset(size, &cursor)?;
        self.strings.reserve_exact(count.saturating_add(1));
        self.strings.push(start);
        // Lengths are stored in reverse order.
        for _ in 0..count {
            let length = u32::try_from(cursor.count()?).unwrap_or(u32::MAX);
            match start.checked_sub(length) {
                Some(before) if length > 0 => start = before,
                _ => return cursor.damage("the length of a string of the section"),
            }
            self.strings.push(start);
        }
        self.strings.reverse();
        let read = size.saturating_sub(cursor.rest().len());
        if usize::try_from(start) != Ok(read) {
            return cursor.damage("the strings behind their lengths");
        }
        Ok(())
    }

    fn read_properties(&mut self) -> Result<()> {
        let mut cursor = self.properties_section;
        if cursor.is_empty() {
            return if self.version >= 5 {
                cursor.damage("a number of properties")
            } else {
                Ok(())
            };
        }
        let count = cursor.count()?;
        // Each set takes a length.
        self.properties.reserve_exact(count.min(cursor.rest().len()));
        for _ in 0..count {
            self.properties.push(offset(cursor.at(), &cursor)?);
            let length = cursor.count()?;
            cursor.bytes(length)?;
        }
        if cursor.is_empty() { Ok(()) } else { cursor.damage("the end of the properties") }
    }

    fn read_dialects(&mut self, mut cursor: Cursor<'a>) -> Result<()> {
        let section = cursor;
        let count = cursor.count()?;
        if count > MOST_DIALECTS {
            return cursor.damage("at most 1024 dialects");
        }
        for dialect in 0..count {
            let (name, is_versioned) =
                if self.version < 1 { (cursor.varint()?, false) } else { cursor.flagged()? };
            if is_versioned {
                let at = cursor;
                if Section::read(&mut cursor)?.kind != SectionKind::DialectVersion {
                    return at.damage("the version of a dialect");
                }
                self.versioned.push(dialect);
            }
            let name = self.index(name, self.string_count(), &cursor)?;
            self.dialects.push(name);
        }
        let names = cursor.at().saturating_sub(section.at());
        self.dialect_names = section.rest().get(..names).unwrap_or_default();
        if self.version >= 4 {
            // The announced number of names is ignored: the names that exist are counted.
            cursor.varint()?;
        }
        while !cursor.is_empty() {
            let dialect = cursor.varint()?;
            let dialect = self.index(dialect, self.dialects.len(), &cursor)?;
            for _ in 0..cursor.varint()? {
                let (name, was_registered) = if self.version < 5 {
                    (cursor.varint()?, None)
                } else {
                    let (name, was_registered) = cursor.flagged()?;
                    (name, Some(was_registered))
                };
                let name = self.index(name, self.string_count(), &cursor)?;
                if self.operation_names.len() >= MOST_OPERATION_NAMES {
                    return cursor.damage("at most 65536 names of operations");
                }
                self.operation_names.push(OperationName { dialect, name, was_registered });
            }
        }
        Ok(())
    }

    fn read_entries(&mut self, mut offsets: Cursor<'a>) -> Result<()> {
        let attributes = offsets.count()?;
        let types = offsets.count()?;
        // Each entry takes a size, and most have contents.
        let most = offsets.rest().len().saturating_add(self.data.rest().len()) / 2;
        if attributes.saturating_add(types) > most.saturating_add(1) {
            return offsets.damage("at most as many attributes and types as there is room for");
        }
        let mut start = 0;
        self.attributes = self.entries(attributes, &mut offsets, &mut start)?;
        self.types = self.entries(types, &mut offsets, &mut start)?;
        if offsets.is_empty() {
            Ok(())
        } else {
            offsets.damage("the end of the offsets of attributes and types")
        }
    }

    fn entries(
        &self,
        count: usize,
        offsets: &mut Cursor<'a>,
        start: &mut usize,
    ) -> Result<Entries> {
        let mut entries = Entries::default();
        entries.starts.reserve_exact(count.saturating_add(1));
        while entries.starts.len() < count {
            let dialect = offsets.varint()?;
            let dialect = self.index(dialect, self.dialects.len(), offsets)?;
            let of_dialect = offsets.count()?;
            if of_dialect > count.saturating_sub(entries.starts.len()) {
                return offsets.damage("at most as many attributes and types as were announced");
            }
            // The casts are lossless: there are fewer dialects and entries.
            entries.groups.push((entries.starts.len() as u32, dialect as u16));
            for _ in 0..of_dialect {
                let (length, is_encoded) = offsets.flagged()?;
                let encoded = if is_encoded { IS_ENCODED } else { 0 };
                entries.starts.push(offset(*start, offsets)? | encoded);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                match start.checked_add(length) {
                    Some(end) if end <= self.data.rest().len() => *start = end,
                    _ => {
                        return offsets.damage("the size of an attribute or a type of the section");
                    }
                }
            }
        }
        entries.starts.push(offset(*start, offsets)?);
        Ok(entries)
    }

    /// Returns the number of strings.
    pub fn string_count(&self) -> usize {
        self.strings.len().saturating_sub(1)
    }

    /// Returns the index, if it is below `count`.
    ///
    /// # Errors
    /// [`Damage`] at the cursor if it is not.
    #[inline]
    pub fn index(&self, index: u64, count: usize, cursor: &Cursor<'_>) -> Result<usize> {
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => cursor.damage("the number of something that the file has"),
        }
    }

    /// Returns the index of a string.
    ///
    /// # Errors
    /// [`Damage`] at the cursor if there is no such string.
    #[inline]
    pub fn string_index(&self, index: u64, cursor: &Cursor<'_>) -> Result<usize> {
        self.index(index, self.string_count(), cursor)
    }

    /// Returns a string without its final zero byte; empty if there is none.
    #[inline]
    pub fn string(&self, index: usize) -> &'a [u8] {
        let start = self.strings.get(index).map(|start| *start as usize);
        let end = self.strings.get(index.saturating_add(1)).map(|end| *end as usize);
        match (start, end) {
            (Some(start), Some(end)) => {
                self.strings_section.rest().get(start..end.saturating_sub(1)).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Returns the name of a dialect.
    #[inline]
    pub fn dialect(&self, dialect: usize) -> &'a [u8] {
        self.dialects.get(dialect).map(|name| self.string(*name)).unwrap_or_default()
    }

    /// Returns the number of sets of properties.
    pub fn property_count(&self) -> usize {
        self.properties.len()
    }

    /// Returns the bytes of properties.
    ///
    /// # Errors
    /// [`Damage`] at the cursor if there are no properties of that number.
    #[inline]
    pub fn properties(&self, index: u64, cursor: &Cursor<'_>) -> Result<Cursor<'a>> {
        let index = self.index(index, self.properties.len(), cursor)?;
        let start = self.properties.get(index).map_or(0, |start| *start as usize);
        let section = self.properties_section;
        let rest = section.rest().get(start.saturating_sub(section.at())..).unwrap_or_default();
        let mut cursor = Cursor::new(rest, start);
        let length = cursor.count()?;
        let at = cursor.at();
        Ok(Cursor::new(cursor.bytes(length)?, at))
    }

    /// Returns an attribute or a type, whose number must be one of the table's.
    #[inline]
    pub fn entry(&self, entries: &Entries, index: usize) -> Option<Entry<'a>> {
        let start = *entries.starts.get(index)?;
        let end = *entries.starts.get(index.checked_add(1)?)? & !IS_ENCODED;
        let is_encoded = start & IS_ENCODED != 0;
        let start = (start & !IS_ENCODED) as usize;
        let group = entries.groups.partition_point(|(first, _)| *first as usize <= index);
        let (_, dialect) = entries.groups.get(group.checked_sub(1)?)?;
        let contents = self.data.rest().get(start..end as usize)?;
        let contents = Cursor::new(contents, self.data.at().saturating_add(start));
        Some(Entry { dialect: usize::from(*dialect), is_encoded, contents })
    }
}

impl Entries {
    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

/// Returns an offset in the file as a 32-bit number below 2^31.
fn offset(at: usize, cursor: &Cursor<'_>) -> Result<u32> {
    u32::try_from(at)
        .ok()
        .filter(|at| at & IS_ENCODED == 0)
        .ok_or(Damage { at: cursor.at(), expected: "a file below 2 GiB" })
}
