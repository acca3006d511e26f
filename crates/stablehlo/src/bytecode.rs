//! MLIR bytecode, with what rewriting it needs: the sections, and the tables as lists.
//!
//! The container is read by `serdes-mlir-bytecode`.

pub(super) use serdes_mlir_bytecode::{
    Cursor, Entry, OperationName, Section, SectionKind, write_section, write_varint, write_zigzag,
};
use serdes_mlir_bytecode::{
    Damage, Entries, MAGIC, Operation as Found, References, Sections, Stop, Tables, Walk, Wanted,
};

use super::{StableHloError, StableHloVersion};

const ENCODING: u64 = 6;
const PRODUCER: &[u8] = b"StableHLO_v";
/// Limit on the length of a producer's name: no producer of a portable artifact has a longer one.
const LONGEST_PRODUCER: usize = 64;

impl From<Damage> for StableHloError {
    fn from(damage: Damage) -> Self {
        Self::Malformed { at: damage.at, expected: damage.expected }
    }
}

/// The sections and tables of a file.
#[derive(Clone, Debug)]
pub(super) struct Bytecode<'a> {
    pub(super) version: StableHloVersion,
    /// The sections in the order of the file.
    pub(super) sections: Vec<Section<'a>>,
    /// The strings, without their final zero bytes.
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) attributes: Vec<Entry<'a>>,
    pub(super) types: Vec<Entry<'a>>,
    pub(super) properties: Vec<&'a [u8]>,
    pub(super) tables: Tables<'a>,
}

/// An operation, without its regions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Index into the names of operations.
    pub(super) name: usize,
    /// The attributes beside the properties, as a dictionary.
    pub(super) attributes: Option<u64>,
    pub(super) properties: Option<u64>,
    pub(super) operands: u64,
    /// The numbers of its first two operands, as far as they exist.
    pub(super) first_operands: [Option<u64>; 2],
    /// The number of its first result, if it has one.
    pub(super) first_result: u64,
    /// Number of regions around it.
    pub(super) depth: usize,
    pub(super) regions: u64,
    /// True if the regions lie in a section of their own.
    pub(super) in_section: bool,
    /// Position in the file, in bytes.
    pub(super) at: usize,
    /// Position and value of the byte that encodes which parts exist.
    pub(super) mask: (usize, u8),
    /// Position of the number of the properties, if there are any.
    pub(super) properties_at: usize,
    /// Position after the properties, where its regions begin.
    pub(super) end: usize,
}

impl Operation {
    /// The bit for properties in the byte that encodes which parts exist.
    pub(super) const HAS_PROPERTIES: u8 = Found::HAS_PROPERTIES;
}

impl From<&Found<'_>> for Operation {
    fn from(found: &Found<'_>) -> Self {
        let mut numbers = found.operand_numbers;
        let first_operands =
            [0, 1].map(|place| (place < found.operands).then(|| numbers.varint().ok())?);
        Self {
            name: found.name,
            attributes: found.attributes.map(|number| number as u64),
            properties: found.properties_number,
            operands: found.operands,
            first_operands,
            first_result: found.first_result,
            depth: found.depth,
            regions: found.regions,
            in_section: found.is_isolated,
            at: found.at,
            mask: found.mask,
            properties_at: found.properties_at,
            end: found.end,
        }
    }
}

/// Attributes and types by number only; their contents are read from the tables.
pub(super) struct Numbers {
    attributes: usize,
    types: usize,
}

impl<'a> References<'a> for Numbers {
    fn attribute(&mut self, cursor: &mut Cursor<'a>, _wanted: Wanted) -> Result<usize, Stop> {
        let at = *cursor;
        match cursor.count()? {
            number if number < self.attributes => Ok(number),
            _ => Ok(at.damage("the number of an attribute that the file has")?),
        }
    }

    fn type_of(&mut self, index: u64, cursor: &Cursor<'a>) -> Result<usize, Stop> {
        match usize::try_from(index) {
            Ok(number) if number < self.types => Ok(number),
            _ => Ok(cursor.damage("the number of a type that the file has")?),
        }
    }
}

impl<'a> Bytecode<'a> {
    /// Reads everything but the operations themselves.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, StableHloError> {
        let mut cursor = Cursor::new(bytes, 0);
        let version = read_head(&mut cursor)?;
        let sections = Sections::read(cursor, ENCODING)?;
        let tables = Tables::read(&sections, ENCODING)?;
        let entries = |of: &Entries| -> Vec<Entry<'a>> {
            (0..of.count()).filter_map(|index| tables.entry(of, index)).collect()
        };
        let (attributes, types) = (entries(&tables.attributes), entries(&tables.types));
        let strings = (0..tables.string_count()).map(|index| tables.string(index)).collect();
        let end = Cursor::new(&[], 0);
        let properties = (0..tables.property_count() as u64)
            .map(|number| Ok(tables.properties(number, &end)?.rest()))
            .collect::<Result<_, StableHloError>>()?;
        let sections = sections.in_order().collect();
        Ok(Self { version, sections, strings, attributes, types, properties, tables })
    }

    /// Returns the counts of attributes and types.
    pub(super) fn numbers(&self) -> Numbers {
        Numbers { attributes: self.attributes.len(), types: self.types.len() }
    }

    /// Calls `visit` with every operation.
    pub(super) fn walk(&self, mut visit: impl FnMut(&Operation)) -> Result<(), StableHloError> {
        let mut numbers = self.numbers();
        let walked = Walk::new(&self.tables, &mut numbers).run(|operation, _| {
            visit(&operation.into());
            Ok(())
        });
        match walked {
            Err(Stop::Damaged(damage)) => Err(damage.into()),
            // Attributes and types by number have no codes.
            Ok(()) | Err(Stop::UnknownCode(_)) => Ok(()),
        }
    }

    /// Returns the name of a dialect; empty if it is not UTF-8.
    pub(super) fn dialect(&self, dialect: usize) -> &'a str {
        std::str::from_utf8(self.tables.dialect(dialect)).unwrap_or_default()
    }

    /// Returns the dialect and the name of an operation; empty if they are not UTF-8.
    pub(super) fn operation_name(&self, operation: usize) -> (&'a str, &'a str) {
        let Some(entry) = self.tables.operation_names.get(operation) else { return ("", "") };
        let name = std::str::from_utf8(self.tables.string(entry.name)).unwrap_or_default();
        (self.dialect(entry.dialect), name)
    }

    /// Returns the code and the remaining bytes of an attribute, if `dialect` wrote it in its own
    /// encoding.
    pub(super) fn attribute(&self, index: u64, dialect: &str) -> Option<(u64, Cursor<'a>)> {
        let entry = usize::try_from(index).ok().and_then(|index| self.attributes.get(index))?;
        self.code(entry, dialect)
    }

    /// Returns the code and the remaining bytes of an entry, if `dialect` wrote it in its own
    /// encoding.
    pub(super) fn code(&self, entry: &Entry<'a>, dialect: &str) -> Option<(u64, Cursor<'a>)> {
        if !entry.is_encoded || self.dialect(entry.dialect) != dialect {
            return None;
        }
        let mut contents = entry.contents;
        Some((contents.varint().ok()?, contents))
    }
}

/// Reads the magic number, the encoding and the producer.
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
