//! Writing a file with changes to its tables.
//!
//! The operations keep their numbers and bytes, because all changes are in the tables that they
//! refer to. Only an operation whose earlier form has no properties loses the number of its
//! properties.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    StableHloError, StableHloVersion,
    bytecode::{
        Bytecode, Entry, OperationName, SectionKind, write_section, write_varint, write_zigzag,
    },
    catalogue::{VHLO, attribute_code, builtin_code, type_code},
    change::What,
    mesh::ReplicaGroups,
    properties::attributes_of,
    regions::without_properties,
    sorts,
};

/// Usual limit on the bytes of a file outside the contents of its sections.
const MOST_BESIDE_SECTIONS: usize = 4096;

/// Returns the file with the changes, as a file of version `target`.
pub(super) fn write<'c>(
    file: &Bytecode<'_>,
    changes: impl Iterator<Item = &'c What>,
    target: StableHloVersion,
) -> Result<Vec<u8>, StableHloError> {
    let mut tables = Tables::of(file);
    let mut is_changed = false;
    let mut bare = BTreeSet::new();
    for change in changes {
        is_changed = true;
        match change {
            What::Rename { operation, to, .. } if to.has_no_properties() => {
                tables.rename(*operation, to.to);
                bare.insert(*operation);
            }
            What::Rename { operation, to, properties } => {
                tables.rename(*operation, to.to);
                for index in properties {
                    tables.leave_out(*index, to.left_out);
                }
            }
            What::List { attribute, groups } => tables.list(*attribute, groups),
            What::Stable { properties } => tables.make_stable(*properties),
        }
    }
    // A large program consists mostly of constants, so reserving its size avoids a second copy.
    let size: usize = file.sections.iter().map(|section| section.contents.rest().len()).sum();
    let mut out = Vec::with_capacity(size.saturating_add(MOST_BESIDE_SECTIONS));
    out.extend_from_slice(b"ML\xEFR");
    write_varint(&mut out, 6);
    out.extend_from_slice(format!("StableHLO_v{target}\0").as_bytes());
    for section in &file.sections {
        let kept = Cow::Borrowed(section.contents.rest());
        let contents = match section.kind {
            _ if !is_changed => kept,
            SectionKind::Strings => tables.strings().into(),
            SectionKind::Dialects => tables.dialects().into(),
            SectionKind::AttributesAndTypes => tables.entries().into(),
            SectionKind::Offsets => tables.offsets().into(),
            SectionKind::Properties => tables.properties().into(),
            SectionKind::Operations if !bare.is_empty() => {
                without_properties(file, section.contents, &bare)?.into()
            }
            _ => kept,
        };
        write_section(&mut out, section.kind, section.alignment, &contents);
    }
    Ok(out)
}

/// A rewritten attribute or type.
#[derive(Clone)]
struct Written<'a> {
    dialect: usize,
    is_encoded: bool,
    bytes: Cow<'a, [u8]>,
}

/// Returns the number of an entry, which is appended to its table if it is missing.
fn number_of(table: &mut Vec<Written<'_>>, dialect: usize, bytes: Vec<u8>) -> usize {
    let is_it = |entry: &Written<'_>| {
        entry.dialect == dialect && entry.is_encoded && *entry.bytes == *bytes
    };
    if let Some(number) = table.iter().position(is_it) {
        return number;
    }
    table.push(Written { dialect, is_encoded: true, bytes: bytes.into() });
    table.len() - 1
}

/// The tables of a file being changed.
struct Tables<'f, 'a> {
    file: &'f Bytecode<'a>,
    strings: Vec<&'a [u8]>,
    operation_names: Vec<OperationName>,
    attributes: Vec<Written<'a>>,
    types: Vec<Written<'a>>,
    properties: Vec<Cow<'a, [u8]>>,
}

impl<'f, 'a> Tables<'f, 'a> {
    fn of(file: &'f Bytecode<'a>) -> Self {
        let written = |entry: &Entry<'a>| Written {
            dialect: entry.dialect,
            is_encoded: entry.is_encoded,
            bytes: entry.contents.rest().into(),
        };
        Self {
            file,
            strings: file.strings.clone(),
            operation_names: file.tables.operation_names.clone(),
            attributes: file.attributes.iter().map(written).collect(),
            types: file.types.iter().map(written).collect(),
            properties: file.properties.iter().map(|bytes| Cow::Borrowed(*bytes)).collect(),
        }
    }

    fn rename(&mut self, operation: usize, to: &'static str) {
        let Some(old) = self.operation_names.get(operation).map(|entry| entry.name) else { return };
        let name = match self.strings.iter().position(|string| *string == to.as_bytes()) {
            Some(name) => name,
            // Replaced in place, as the real writer does, if nothing else uses the string.
            None if self.is_only_a_name(old) => {
                if let Some(string) = self.strings.get_mut(old) {
                    *string = to.as_bytes();
                }
                old
            }
            None => {
                self.strings.push(to.as_bytes());
                self.strings.len() - 1
            }
        };
        if let Some(entry) = self.operation_names.get_mut(operation) {
            entry.name = name;
        }
    }

    /// Returns true if a string is the name of one operation and certainly has no other use.
    fn is_only_a_name(&self, string: usize) -> bool {
        let file = self.file;
        let names = self.operation_names.iter().filter(|entry| entry.name == string).count();
        let has_resources = file
            .sections
            .iter()
            .any(|section| section.kind == SectionKind::Resources && !section.contents.is_empty());
        let may_name_it = |entry: &Entry<'_>| {
            match (file.code(entry, VHLO), file.code(entry, "builtin")) {
                (Some((attribute_code::STRING, contents)), _)
                | (_, Some((builtin_code::STRING | builtin_code::TYPED_STRING, contents))) => {
                    { contents }.count() == Ok(string)
                }
                (_, Some((builtin_code::DENSE_STRINGS, _))) => true,
                (Some(_), _) | (_, Some(_)) => false,
                // Entries encoded by another dialect cannot be read here; text entries do not refer
                // to strings.
                (None, None) => entry.is_encoded,
            }
        };
        names == 1
            && !has_resources
            && !file.tables.dialects.contains(&string)
            && !file.attributes.iter().any(may_name_it)
    }

    /// Removes the attributes with these indices from the properties.
    fn leave_out(&mut self, properties: usize, places: &[usize]) {
        let Some(bytes) = self.properties.get_mut(properties) else { return };
        let mut out = Vec::with_capacity(bytes.len());
        for (place, attribute) in attributes_of(bytes).unwrap_or_default().iter().enumerate() {
            if !places.contains(&place) {
                write_varint(&mut out, *attribute);
            }
        }
        *bytes = out.into();
    }

    /// Sets the sorts with these properties to stable.
    fn make_stable(&mut self, properties: usize) {
        let Some(bytes) = self.properties.get(properties) else { return };
        let mut attributes = attributes_of(bytes).unwrap_or_default();
        let Some(stable) = attributes.get_mut(sorts::STABLE) else { return };
        let old = usize::try_from(*stable).ok().and_then(|old| self.attributes.get(old));
        let Some(dialect) = old.map(|old| old.dialect) else { return };
        let mut bytes = Vec::new();
        write_varint(&mut bytes, attribute_code::BOOLEAN);
        write_varint(&mut bytes, 1);
        *stable = number_of(&mut self.attributes, dialect, bytes) as u64;
        let mut out = Vec::new();
        attributes.iter().for_each(|attribute| write_varint(&mut out, *attribute));
        if let Some(bytes) = self.properties.get_mut(properties) {
            *bytes = out.into();
        }
    }

    /// Replaces the attribute by a tensor of the groups.
    fn list(&mut self, attribute: usize, groups: &ReplicaGroups) {
        let Some(dialect) = self.attributes.get(attribute).map(|entry| entry.dialect) else {
            return;
        };
        let mut element = Vec::new();
        write_varint(&mut element, type_code::SIGNED_64);
        let element = number_of(&mut self.types, dialect, element);
        let mut tensor = Vec::new();
        write_varint(&mut tensor, type_code::RANKED_TENSOR);
        write_varint(&mut tensor, 2);
        write_zigzag(&mut tensor, groups.count);
        write_zigzag(&mut tensor, groups.size);
        write_varint(&mut tensor, element as u64);
        let tensor = number_of(&mut self.types, dialect, tensor);
        let mut out = Vec::with_capacity(16 + groups.devices.len() * 8);
        write_varint(&mut out, attribute_code::TENSOR);
        write_varint(&mut out, tensor as u64);
        write_varint(&mut out, groups.devices.len() as u64 * 8);
        out.extend(groups.devices.iter().flat_map(|device| device.to_le_bytes()));
        if let Some(entry) = self.attributes.get_mut(attribute) {
            *entry = Written { dialect, is_encoded: true, bytes: out.into() };
        }
    }

    fn strings(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, self.strings.len() as u64);
        for string in self.strings.iter().rev() {
            write_varint(&mut out, string.len() as u64 + 1);
        }
        for string in &self.strings {
            out.extend_from_slice(string);
            out.push(0);
        }
        out
    }

    fn dialects(&self) -> Vec<u8> {
        let mut out = self.file.tables.dialect_names.to_vec();
        write_varint(&mut out, self.operation_names.len() as u64);
        for group in self.operation_names.chunk_by(|one, other| one.dialect == other.dialect) {
            let dialect = group.first().map_or(0, |entry| entry.dialect);
            write_varint(&mut out, dialect as u64);
            write_varint(&mut out, group.len() as u64);
            for entry in group {
                write_varint(
                    &mut out,
                    (entry.name as u64) << 1 | u64::from(entry.was_registered == Some(true)),
                );
            }
        }
        out
    }

    fn entries(&self) -> Vec<u8> {
        let entries = self.attributes.iter().chain(&self.types);
        let entries: Vec<&[u8]> = entries.map(|entry| &*entry.bytes).collect();
        entries.concat()
    }

    fn offsets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, self.attributes.len() as u64);
        write_varint(&mut out, self.types.len() as u64);
        for table in [&self.attributes, &self.types] {
            for group in table.chunk_by(|one, other| one.dialect == other.dialect) {
                let dialect = group.first().map_or(0, |entry| entry.dialect);
                write_varint(&mut out, dialect as u64);
                write_varint(&mut out, group.len() as u64);
                for entry in group {
                    let length = (entry.bytes.len() as u64) << 1;
                    write_varint(&mut out, length | u64::from(entry.is_encoded));
                }
            }
        }
        out
    }

    fn properties(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, self.properties.len() as u64);
        for properties in &self.properties {
            write_varint(&mut out, properties.len() as u64);
            out.extend_from_slice(properties);
        }
        out
    }
}
