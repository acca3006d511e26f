//! The tables of a file: strings, dialects, operations, attributes, types, properties.

use super::{
    cursor::Cursor,
    operations::{Limits, Operation, walk},
    sections::{Section, SectionKind},
};
use crate::stablehlo::{StableHloError, StableHloVersion};

const MAGIC: &[u8] = b"ML\xEFR";
const ENCODING: u64 = 6;
const PRODUCER: &[u8] = b"StableHLO_v";
/// No producer of a portable artifact has a longer name.
const LONGEST_PRODUCER: usize = 64;

/// The name of an operation of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stablehlo) struct OperationName {
    pub(in crate::stablehlo) dialect: usize,
    /// Index of the string.
    pub(in crate::stablehlo) name: usize,
    pub(in crate::stablehlo) is_registered: bool,
}

/// An attribute or a type, as its dialect wrote it.
#[derive(Clone, Copy, Debug)]
pub(in crate::stablehlo) struct Entry<'a> {
    pub(in crate::stablehlo) dialect: usize,
    /// True if the dialect wrote it in an encoding of its own; else it is text.
    pub(in crate::stablehlo) is_encoded: bool,
    pub(in crate::stablehlo) contents: Cursor<'a>,
}

/// A file, its tables read.
#[derive(Clone, Debug)]
pub(in crate::stablehlo) struct Bytecode<'a> {
    pub(in crate::stablehlo) version: StableHloVersion,
    /// In the order of the file.
    pub(in crate::stablehlo) sections: Vec<Section<'a>>,
    /// Without the zero at the end of each.
    pub(in crate::stablehlo) strings: Vec<&'a [u8]>,
    /// Index of each dialect's name among the strings.
    pub(in crate::stablehlo) dialects: Vec<usize>,
    /// The bytes of the section of dialects before its operations.
    pub(in crate::stablehlo) dialect_names: &'a [u8],
    pub(in crate::stablehlo) operation_names: Vec<OperationName>,
    pub(in crate::stablehlo) attributes: Vec<Entry<'a>>,
    pub(in crate::stablehlo) types: Vec<Entry<'a>>,
    pub(in crate::stablehlo) properties: Vec<&'a [u8]>,
}

impl<'a> Bytecode<'a> {
    /// Reads everything but the operations themselves.
    pub(in crate::stablehlo) fn read(bytes: &'a [u8]) -> Result<Self, StableHloError> {
        let mut cursor = Cursor::new(bytes, 0);
        let version = read_head(&mut cursor)?;
        let mut sections = Vec::new();
        while !cursor.is_empty() {
            sections.push(Section::read(&mut cursor)?);
        }
        let mut file = Self {
            version,
            sections,
            strings: Vec::new(),
            dialects: Vec::new(),
            dialect_names: &[],
            operation_names: Vec::new(),
            attributes: Vec::new(),
            types: Vec::new(),
            properties: Vec::new(),
        };
        file.read_strings()?;
        file.read_dialects()?;
        file.read_entries()?;
        file.read_properties()?;
        Ok(file)
    }

    /// The contents of the section of that kind.
    fn section(&self, kind: SectionKind) -> Result<Option<Cursor<'a>>, StableHloError> {
        let mut of_kind = self.sections.iter().filter(|section| section.kind == kind);
        let first = of_kind.next().map(|section| section.contents);
        match of_kind.next() {
            Some(second) => second.contents.error("one section of each kind"),
            None => Ok(first),
        }
    }

    fn required(&self, kind: SectionKind) -> Result<Cursor<'a>, StableHloError> {
        let end = Cursor::new(&[], 0);
        match self.section(kind)? {
            Some(contents) => Ok(contents),
            None => end.error("sections of strings, dialects, attributes, offsets and operations"),
        }
    }

    fn read_strings(&mut self) -> Result<(), StableHloError> {
        let mut cursor = self.required(SectionKind::Strings)?;
        let count = cursor.count()?;
        let mut lengths = Vec::new();
        for _ in 0..count {
            lengths.push(cursor.count()?);
        }
        // Lengths come last to first, the strings first to last.
        for length in lengths.into_iter().rev() {
            match cursor.bytes(length)? {
                [string @ .., 0] => self.strings.push(string),
                _ => return cursor.error("a string that ends with a zero"),
            }
        }
        if !cursor.is_empty() {
            return cursor.error("the end of the strings");
        }
        Ok(())
    }

    fn read_dialects(&mut self) -> Result<(), StableHloError> {
        let mut cursor = self.required(SectionKind::Dialects)?;
        let whole = cursor;
        for _ in 0..cursor.count()? {
            let (name, is_versioned) = cursor.flagged()?;
            if is_versioned {
                Section::read(&mut cursor)?;
            }
            self.dialects.push(self.index(name, self.strings.len(), &cursor)?);
        }
        let names = cursor.at() - whole.at();
        self.dialect_names = whole.rest().get(..names).unwrap_or_default();
        let announced = cursor.count()?;
        while !cursor.is_empty() {
            let dialect = cursor.varint()?;
            let dialect = self.index(dialect, self.dialects.len(), &cursor)?;
            for _ in 0..cursor.count()? {
                let (name, is_registered) = cursor.flagged()?;
                let name = self.index(name, self.strings.len(), &cursor)?;
                self.operation_names.push(OperationName { dialect, name, is_registered });
            }
        }
        if self.operation_names.len() != announced {
            return cursor.error("as many names of operations as were announced");
        }
        Ok(())
    }

    fn read_entries(&mut self) -> Result<(), StableHloError> {
        let mut offsets = self.required(SectionKind::Offsets)?;
        let mut contents = self.required(SectionKind::AttributesAndTypes)?;
        let attributes = offsets.count()?;
        let types = offsets.count()?;
        self.attributes = self.entries(attributes, &mut offsets, &mut contents)?;
        self.types = self.entries(types, &mut offsets, &mut contents)?;
        if !offsets.is_empty() || !contents.is_empty() {
            return offsets.error("the end of the attributes and types");
        }
        Ok(())
    }

    fn entries(
        &self,
        count: usize,
        offsets: &mut Cursor<'a>,
        contents: &mut Cursor<'a>,
    ) -> Result<Vec<Entry<'a>>, StableHloError> {
        let mut entries = Vec::new();
        while entries.len() < count {
            let dialect = offsets.varint()?;
            let dialect = self.index(dialect, self.dialects.len(), offsets)?;
            let of_dialect = offsets.count()?;
            if of_dialect > count - entries.len() {
                return offsets.error("at most as many attributes and types as were announced");
            }
            for _ in 0..of_dialect {
                let (length, is_encoded) = offsets.flagged()?;
                let at = contents.at();
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let contents = Cursor::new(contents.bytes(length)?, at);
                entries.push(Entry { dialect, is_encoded, contents });
            }
        }
        Ok(entries)
    }

    fn read_properties(&mut self) -> Result<(), StableHloError> {
        let Some(mut cursor) = self.section(SectionKind::Properties)? else { return Ok(()) };
        for _ in 0..cursor.count()? {
            self.properties.push(cursor.stretch()?);
        }
        if !cursor.is_empty() {
            return cursor.error("the end of the properties");
        }
        Ok(())
    }

    /// Calls `visit` with every operation.
    pub(in crate::stablehlo) fn walk(
        &self,
        visit: impl FnMut(&Operation),
    ) -> Result<(), StableHloError> {
        let limits = Limits {
            names: self.operation_names.len(),
            attributes: self.attributes.len(),
            properties: self.properties.len(),
        };
        walk(self.required(SectionKind::Operations)?, limits, visit)
    }

    /// The index, if it is one of `count`.
    fn index(
        &self,
        index: u64,
        count: usize,
        cursor: &Cursor<'_>,
    ) -> Result<usize, StableHloError> {
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => cursor.error("the number of something that the file has"),
        }
    }

    /// The name of a dialect; empty if it is no text.
    pub(in crate::stablehlo) fn dialect(&self, dialect: usize) -> &'a str {
        let name = self.dialects.get(dialect).and_then(|name| self.strings.get(*name));
        name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// The dialect and the name of an operation; empty if they are no text.
    pub(in crate::stablehlo) fn operation_name(&self, operation: usize) -> (&'a str, &'a str) {
        let Some(entry) = self.operation_names.get(operation) else { return ("", "") };
        let name = self.strings.get(entry.name).and_then(|name| std::str::from_utf8(name).ok());
        (self.dialect(entry.dialect), name.unwrap_or_default())
    }

    /// Code and rest of an attribute, if `dialect` wrote it in its own encoding.
    pub(in crate::stablehlo) fn attribute(
        &self,
        index: u64,
        dialect: &str,
    ) -> Option<(u64, Cursor<'a>)> {
        let entry = usize::try_from(index).ok().and_then(|index| self.attributes.get(index))?;
        self.code(entry, dialect)
    }

    /// Code and rest of an entry, if `dialect` wrote it in its own encoding.
    pub(in crate::stablehlo) fn code(
        &self,
        entry: &Entry<'a>,
        dialect: &str,
    ) -> Option<(u64, Cursor<'a>)> {
        if !entry.is_encoded || self.dialect(entry.dialect) != dialect {
            return None;
        }
        let mut contents = entry.contents;
        Some((contents.varint().ok()?, contents))
    }
}

/// Magic, encoding and producer.
fn read_head(cursor: &mut Cursor<'_>) -> Result<StableHloVersion, StableHloError> {
    let no_artifact = |found: &str| StableHloError::NoArtifact { found: found.to_owned() };
    if cursor.bytes(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(no_artifact("is no MLIR bytecode"));
    }
    let encoding = cursor.varint()?;
    let window = cursor.rest().get(..LONGEST_PRODUCER).unwrap_or(cursor.rest());
    let producer = window.iter().position(|byte| *byte == 0).and_then(|end| window.get(..end));
    let version = producer.and_then(|producer| producer.strip_prefix(PRODUCER));
    let (Some(producer), Some(version)) = (producer, version) else {
        return Err(no_artifact("is MLIR bytecode of another producer"));
    };
    cursor.bytes(producer.len() + 1)?;
    if encoding != ENCODING {
        return Err(StableHloError::UnknownEncoding { found: encoding });
    }
    String::from_utf8_lossy(version).parse()
}
