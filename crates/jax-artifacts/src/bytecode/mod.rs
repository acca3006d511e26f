//! StableHLO portable artifacts: MLIR bytecode in the dialect VHLO.
//!
//! Reads the whole file once and keeps the facts that verdicts depend on: operations, codes of
//! attributes and types, dialects. Bytes that no reader accepts are a [`Stop`]. Does not depend on
//! releases.

mod attribute_names;
mod entries;
mod layouts;
mod texts;

use std::collections::BTreeMap;

use serdes_mlir_bytecode::{
    Cursor, MAGIC, Operation, OperationName, References as _, Result, Sections, Stop, Tables, Walk,
    Wanted, vhlo,
};

pub(crate) use self::layouts::{
    SDY_REDUCTION_SINCE, SDY_SHARDING_WITH_REDUCTION, vhlo_attribute_name, vhlo_attribute_since,
    vhlo_type_since,
};
use self::{attribute_names::AttributeNames, entries::Entries};
use crate::{release::StableHlo, vocabulary};

/// The prefix of the producer of a portable artifact.
const PRODUCER: &[u8] = b"StableHLO_v";
/// The newest version of the bytecode that any release reads.
pub(crate) const NEWEST_BYTECODE: u64 = 6;
/// The code of the future type, the type of the result of an asynchronous operation.
const FUTURE: u64 = 42;
/// Limit on the functions and targets that are listed by name; further ones are only counted.
const MOST_NAMES: usize = 10_000;

/// The uses of an operation in a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) count: u64,
    /// True if an operation of arith has fewer than two properties.
    pub(crate) has_one_property: bool,
}

/// A function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// Its name.
    pub name: String,
    /// True if it may be called from outside the module.
    pub is_public: bool,
    /// The types of its inputs, as StableHLO prints them.
    pub inputs: Vec<String>,
    /// The types of its outputs.
    pub outputs: Vec<String>,
}

/// The facts about a module that decide which releases read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub(crate) bytes: usize,
    pub(crate) bytecode_version: Option<u64>,
    pub(crate) producer: String,
    /// The reason why no release reads all of it.
    pub(crate) stop: Option<Stop>,
    pub(crate) is_too_new: bool,
    /// The operations, by dialect and name.
    pub(crate) operations: BTreeMap<(String, String), Use>,
    /// The dialects of its operations, attributes and types.
    pub(crate) dialects: Vec<String>,
    /// Dialects with their own version, which no reader understands.
    pub(crate) versioned_dialects: Vec<String>,
    pub(crate) vhlo_attributes: Vec<u8>,
    pub(crate) vhlo_types: Vec<u8>,
    pub(crate) sdy_attributes: Vec<u8>,
    pub(crate) custom_calls: BTreeMap<String, u64>,
    /// True if custom calls return futures.
    pub(crate) has_futures_of_custom_calls: bool,
    pub(crate) functions: Vec<Function>,
    pub(crate) constant_bytes: u64,
}

impl Module {
    /// Reads a module.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut module = Self { bytes: bytes.len(), ..Self::default() };
        if let Err(stop) = module.fill(bytes) {
            module.stop = Some(stop);
        }
        module
    }

    /// Returns the version of StableHLO in the producer's name, which readers ignore.
    pub(crate) fn stablehlo(&self) -> Option<StableHlo> {
        self.producer.strip_prefix("StableHLO_v")?.parse().ok()
    }

    fn fill(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let mut cursor = Cursor::new(bytes, 0);
        if bytes.is_empty() {
            return Ok(cursor.damage("MLIR bytecode")?);
        }
        if !bytes.starts_with(MAGIC) {
            return Ok(cursor.damage("MLIR bytecode, which begins with the bytes 4d 4c ef 52")?);
        }
        cursor.bytes(MAGIC.len())?;
        let version = cursor.varint()?;
        self.bytecode_version = Some(version);
        let Some(end) = cursor.rest().iter().position(|byte| *byte == 0) else {
            return Ok(cursor.damage("the name of a producer with a zero at its end")?);
        };
        let producer = cursor.bytes(end)?;
        cursor.byte()?;
        self.producer = shortened(producer);
        if version > NEWEST_BYTECODE {
            self.is_too_new = true;
            return Ok(());
        }
        let sections = Sections::read(cursor, version)?;
        let tables = Tables::read(&sections, version)?;
        let mut entries = Entries::new(&tables);
        let mut uses = Uses::new(&tables);
        let walked = Walk::new(&tables, &mut entries)
            .run(|operation, entries| uses.visit(&tables, operation, entries));
        let mut used = std::mem::take(&mut entries.used_dialects);
        let counted = tables.operation_names.iter().zip(&uses.of_names);
        let counted = counted.filter(|(_, of_name)| of_name.count > 0);
        for dialect in counted.map(|(name, _)| name.dialect).chain(uses.stopped_at) {
            if let Some(used) = used.get_mut(dialect) {
                *used = true;
            }
        }
        self.take(&tables, &entries, &used, uses);
        walked
    }

    fn take(&mut self, tables: &Tables<'_>, entries: &Entries<'_, '_>, used: &[bool], uses: Uses) {
        for (dialect, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            let name = shortened(tables.dialect(dialect));
            if tables.versioned.contains(&dialect) {
                self.versioned_dialects.push(name.clone());
            }
            if !self.dialects.contains(&name) {
                self.dialects.push(name);
            }
        }
        for (name, used) in tables.operation_names.iter().zip(uses.of_names) {
            if used.count == 0 {
                continue;
            }
            let key =
                (shortened(tables.dialect(name.dialect)), shortened(tables.string(name.name)));
            let total = self.operations.entry(key).or_default();
            total.count = total.count.saturating_add(used.count);
            total.has_one_property |= used.has_one_property;
        }
        self.vhlo_attributes = codes(&entries.vhlo_attributes);
        self.vhlo_types = codes(&entries.vhlo_types);
        self.sdy_attributes = codes(&entries.sdy_attributes);
        self.custom_calls = uses.custom_calls;
        self.has_futures_of_custom_calls = uses.has_futures;
        self.functions = uses.functions;
        self.constant_bytes = entries.constant_bytes;
    }
}

/// Returns true if bytes begin like a portable artifact.
pub(crate) fn is_artifact(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(MAGIC) else { return false };
    let mut cursor = Cursor::new(rest, 0);
    cursor.varint().is_ok() && cursor.rest().starts_with(PRODUCER)
}

fn codes(used: &[bool]) -> Vec<u8> {
    // The cast is lossless: tables of codes have fewer than 256 rows.
    used.iter().enumerate().filter(|(_, used)| **used).map(|(code, _)| code as u8).collect()
}

/// Returns bytes as text of limited length.
fn shortened(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..256).unwrap_or(bytes)).into_owned()
}

/// The facts known about an operation from its name.
#[derive(Clone, Copy)]
enum Known {
    /// An operation of VHLO, with the number of attributes in its properties.
    Vhlo(u8),
    /// The function operation of VHLO, whose properties are read as well.
    Function(u8),
    /// The custom call of VHLO, whose properties are read as well.
    CustomCall(u8),
    Module,
    /// An operation of shardy, with the number of attributes in its properties.
    Shardy(u8),
    /// An operation of arith, whose properties are counted.
    Arithmetic,
    Other,
}

impl Known {
    fn of(tables: &Tables<'_>, name: OperationName) -> Self {
        let text = std::str::from_utf8(tables.string(name.name)).unwrap_or_default();
        match tables.dialect(name.dialect) {
            b"vhlo" => vhlo::operation(text).map_or(Self::Other, |operation| {
                let properties = operation.properties;
                match text {
                    "func_v1" => Self::Function(properties),
                    _ if text.starts_with("custom_call_v") => Self::CustomCall(properties),
                    _ => Self::Vhlo(properties),
                }
            }),
            b"builtin" if text == "module" => Self::Module,
            b"sdy" => vocabulary::shardy(text).flatten().map_or(Self::Other, Self::Shardy),
            b"arith" if vocabulary::has_rounding_mode(text) => Self::Arithmetic,
            _ => Self::Other,
        }
    }
}

/// The uses of an operation name.
struct OfName {
    known: Known,
    count: u64,
    has_one_property: bool,
}

/// A cache of properties that were read for an operation name; it keeps the latest of those that
/// share a slot. Equal operations have the same properties.
struct CheckedProperties {
    /// Each slot: the number of the properties in the high bits, the number of the name in the low
    /// ones.
    places: Box<[u64; 1 << 10]>,
}

impl CheckedProperties {
    fn new() -> Self {
        Self { places: Box::new([u64::MAX; 1 << 10]) }
    }

    /// Returns the slot of a pair, and the encoded pair: there are at most 2^16 names and 2^31
    /// properties.
    fn pair(name: usize, number: u64) -> (usize, u64) {
        let pair = number << 16 | name as u64;
        ((pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize, pair)
    }

    fn has(&self, name: usize, number: u64) -> bool {
        let (place, pair) = Self::pair(name, number);
        self.places.get(place) == Some(&pair)
    }

    fn add(&mut self, name: usize, number: u64) {
        let (place, pair) = Self::pair(name, number);
        if let Some(place) = self.places.get_mut(place) {
            *place = pair;
        }
    }
}

/// The features that the operations of a module use.
struct Uses {
    of_names: Vec<OfName>,
    /// The dialect of the operation at which reading stopped.
    stopped_at: Option<usize>,
    checked: CheckedProperties,
    custom_calls: BTreeMap<String, u64>,
    has_futures: bool,
    functions: Vec<Function>,
    /// Number of arguments and results of functions that may still be listed.
    signature_room: u64,
    names: AttributeNames,
}

impl Uses {
    fn new(tables: &Tables<'_>) -> Self {
        let names = tables.operation_names.iter();
        let of_name = |name: &OperationName| OfName {
            known: Known::of(tables, *name),
            count: 0,
            has_one_property: false,
        };
        Self {
            of_names: names.map(of_name).collect(),
            stopped_at: None,
            checked: CheckedProperties::new(),
            custom_calls: BTreeMap::new(),
            has_futures: false,
            functions: Vec::new(),
            signature_room: MOST_NAMES as u64,
            names: AttributeNames::default(),
        }
    }

    #[inline]
    fn visit<'a>(
        &mut self,
        tables: &Tables<'a>,
        operation: &Operation<'a>,
        entries: &mut Entries<'_, 'a>,
    ) -> Result<(), Stop> {
        let Some(of_name) = self.of_names.get_mut(operation.name) else { return Ok(()) };
        of_name.count = of_name.count.saturating_add(1);
        // Most operations of a large module have no properties, or share those of an earlier one.
        match (of_name.known, operation.properties_number) {
            (Known::Vhlo(0), _) if !operation.has_properties => Ok(()),
            (Known::Vhlo(_), Some(number)) if self.checked.has(operation.name, number) => Ok(()),
            (known, _) => self.look_into_counted(tables, operation, known, entries),
        }
    }

    /// Examines an operation that was counted; undoes the count if reading stops there.
    fn look_into_counted<'a>(
        &mut self,
        tables: &Tables<'a>,
        operation: &Operation<'a>,
        known: Known,
        entries: &mut Entries<'_, 'a>,
    ) -> Result<(), Stop> {
        let looked = self.look_into(tables, operation, known, entries);
        if looked.is_err() {
            self.stopped_at = Some(operation.operation.dialect);
            if let Some(of_name) = self.of_names.get_mut(operation.name) {
                of_name.count = of_name.count.saturating_sub(1);
            }
        } else if let (Known::Vhlo(_), Some(number)) = (known, operation.properties_number) {
            self.checked.add(operation.name, number);
        }
        looked
    }

    fn look_into<'a>(
        &mut self,
        tables: &Tables<'a>,
        operation: &Operation<'a>,
        known: Known,
        entries: &mut Entries<'_, 'a>,
    ) -> Result<(), Stop> {
        match known {
            Known::Vhlo(count) | Known::Function(count) | Known::CustomCall(count) => {
                self.visit_vhlo(tables, operation, (known, count), entries)?;
            }
            Known::Module => {
                read_optional(operation, entries)?;
                if let Some(attributes) = operation.attributes {
                    self.names.check_module(tables, attributes, operation)?;
                }
            }
            Known::Shardy(properties) => drop(read_numbers(operation, properties, entries)?),
            Known::Arithmetic => {
                let has_two = operation.properties.is_some_and(has_two);
                if let Some(of_name) = self.of_names.get_mut(operation.name) {
                    of_name.has_one_property |= !has_two;
                }
            }
            Known::Other => {}
        }
        Ok(())
    }

    fn visit_vhlo<'a>(
        &mut self,
        tables: &Tables<'a>,
        operation: &Operation<'a>,
        (known, properties): (Known, u8),
        entries: &mut Entries<'_, 'a>,
    ) -> Result<(), Stop> {
        if tables.version >= 5 && operation.has_properties != (properties > 0) {
            return Ok(operation.results.damage("properties where the operation has some")?);
        }
        let numbers = read_numbers(operation, properties, entries)?;
        if matches!(known, Known::Vhlo(_)) {
            return Ok(());
        }
        let attribute = |at: usize| numbers.get(at).copied().flatten();
        let text = |at: usize| attribute(at).and_then(|at| texts::string_of(tables, at));
        if let Known::CustomCall(_) = known {
            let target = text(2).map(shortened).unwrap_or_default();
            if self.custom_calls.len() < MOST_NAMES || self.custom_calls.contains_key(&target) {
                let count = self.custom_calls.entry(target).or_default();
                *count = count.saturating_add(1);
            }
            let mut results = operation.results;
            for _ in 0..operation.result_count {
                let of = usize::try_from(results.varint()?).unwrap_or(usize::MAX);
                let code = texts::vhlo(tables, of, true).map(|(code, _)| code);
                self.has_futures |= code == Some(FUTURE);
            }
        } else if self.functions.len() < MOST_NAMES {
            let signature =
                attribute(1).and_then(|at| texts::signature(tables, at, self.signature_room));
            let (inputs, outputs) = signature.unwrap_or_default();
            let parts = inputs.len().saturating_add(outputs.len()) as u64;
            self.signature_room = self.signature_room.saturating_sub(parts);
            let name = text(3).map(shortened).unwrap_or_default();
            for attributes in [attribute(0), attribute(2)].into_iter().flatten() {
                self.names.check_values(tables, attributes, operation)?;
            }
            let visibility = text(4).unwrap_or_default();
            if !matches!(visibility, b"" | b"public" | b"private" | b"nested") {
                return Ok(operation.results.damage("a visibility of the function")?);
            }
            let is_public = visibility != b"private";
            self.functions.push(Function { name, is_public, inputs, outputs });
        }
        Ok(())
    }
}

/// Returns true if properties have two or more numbers.
fn has_two(mut properties: Cursor<'_>) -> bool {
    properties.varint().and_then(|_| properties.varint()).is_ok()
}

/// Number of leading properties that are returned; they include all that matter for functions and
/// custom calls.
const MOST_LOOKED_INTO: usize = 5;

/// Reads as many numbers of attributes as an operation has properties; further ones are ignored.
/// Returns the first ones.
fn read_numbers<'a>(
    operation: &Operation<'a>,
    count: u8,
    entries: &mut Entries<'_, 'a>,
) -> Result<[Option<usize>; MOST_LOOKED_INTO], Stop> {
    let mut numbers = [None; MOST_LOOKED_INTO];
    if let Some(mut properties) = operation.properties {
        for at in 0..usize::from(count) {
            let number = entries.attribute(&mut properties, Wanted::Anything)?;
            if let Some(place) = numbers.get_mut(at) {
                *place = Some(number);
            }
        }
    }
    Ok(numbers)
}

/// Reads the optional name and visibility of a module.
fn read_optional<'a>(operation: &Operation<'a>, entries: &mut Entries<'_, 'a>) -> Result<(), Stop> {
    let Some(mut properties) = operation.properties else { return Ok(()) };
    for _ in 0..2 {
        let at = properties;
        let (index, is_there) = properties.flagged()?;
        if is_there {
            entries.attribute_of(index, &at, Wanted::Text)?;
        }
    }
    Ok(())
}
