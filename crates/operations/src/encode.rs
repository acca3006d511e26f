//! Writes the compact form of the releases' registries, and of custom lists of operations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serdes_wire::varint;

use super::{
    ArgumentDefinition, ArgumentType, AttributeDefinition, OperationDefinition, ValueDefinition,
    table::{AGGREGATE, COMMUTATIVE, DEPRECATED, MAGIC, NAME_ALONE, STATEFUL, UNINITIALIZED},
};

/// One release of a [`History`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleaseRecord {
    /// `MAJOR.MINOR`.
    pub name: String,
    /// The release that was read, `MAJOR.MINOR.PATCH`.
    pub measured: String,
    /// Its GraphDef version.
    pub graph_def_version: i32,
    /// The numbers of the element types that the release knows, all below 64.
    pub types: BTreeSet<i32>,
    /// Its operations by name.
    pub operations: BTreeMap<String, OperationDefinition>,
    /// Operations without a shape function.
    pub without_shape_function: BTreeSet<String>,
    /// Operations without a kernel for the CPU, for any type.
    pub without_cpu_kernel: BTreeSet<String>,
    /// Operations that are registered only once the Python package is imported.
    pub python_only: BTreeSet<String>,
}

/// The registries of several releases, oldest first, at most 16.
///
/// Used to make the built-in table; a program that only looks operations up needs
/// [`Registry`](super::Registry).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The releases.
    pub releases: Vec<ReleaseRecord>,
}

impl History {
    /// Returns the compact form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        let mut releases = Vec::new();
        for release in &self.releases {
            releases.extend(out.string(&release.name).to_le_bytes());
            releases.extend(out.string(&release.measured).to_le_bytes());
            releases.extend(release.graph_def_version.to_le_bytes());
            let types = release.types.iter().filter_map(|number| 1_u64.checked_shl(*number as u32));
            releases.extend(types.fold(0, |mask, bit| mask | bit).to_le_bytes());
        }
        let names: BTreeSet<&String> =
            self.releases.iter().flat_map(|release| release.operations.keys()).collect();
        let mut operations = Vec::new();
        for name in &names {
            let entry = self.operation(name, &mut out);
            operations.extend(out.string(name).to_le_bytes());
            operations.extend((out.data.len() as u32).to_le_bytes());
            out.data.extend(entry);
        }
        let counts = [self.releases.len(), out.ends.len(), names.len(), out.text.len()];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(counts.iter().flat_map(|count| (*count as u32).to_le_bytes()));
        bytes.extend(releases);
        bytes.extend(out.ends.iter().flat_map(|end| end.to_le_bytes()));
        bytes.extend(operations);
        bytes.extend(out.text.as_bytes());
        bytes.extend(out.data);
        bytes
    }

    /// Writes what the entry of one operation refers to, and returns the entry.
    fn operation(&self, name: &str, out: &mut Encoder) -> Vec<u8> {
        let mask = |is_in: &dyn Fn(&ReleaseRecord) -> bool| {
            let bits = self.releases.iter().enumerate().filter(|(_, release)| is_in(release));
            bits.fold(0_u64, |mask, (index, _)| mask | 1 << index)
        };
        let mut entry = Vec::new();
        varint::push(&mut entry, mask(&|release| release.without_shape_function.contains(name)));
        varint::push(&mut entry, mask(&|release| release.without_cpu_kernel.contains(name)));
        varint::push(&mut entry, mask(&|release| release.python_only.contains(name)));
        let mut definitions: Vec<&OperationDefinition> = Vec::new();
        for definition in self.releases.iter().filter_map(|release| release.operations.get(name)) {
            if !definitions.contains(&definition) {
                definitions.push(definition);
            }
        }
        varint::push(&mut entry, definitions.len() as u64);
        for definition in definitions {
            varint::push(
                &mut entry,
                mask(&|release| release.operations.get(name) == Some(definition)),
            );
            let bytes = out.definition(definition);
            let at = out.apart(bytes);
            varint::push(&mut entry, at);
        }
        entry
    }
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    varint::push(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn put_list(out: &mut Vec<u8>, list: &[u8]) {
    varint::push(out, list.len() as u64);
    out.extend(list);
}

/// The text and the data under construction; equal strings and equal ranges of data are stored
/// once.
#[derive(Default)]
struct Encoder {
    strings: HashMap<String, u32>,
    ends: Vec<u32>,
    text: String,
    known: HashMap<Vec<u8>, u64>,
    data: Vec<u8>,
}

impl Encoder {
    fn string(&mut self, text: &str) -> u32 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        self.strings.insert(text.to_owned(), index);
        index
    }

    /// Returns the offset of these bytes in the data; equal bytes are stored once.
    fn apart(&mut self, bytes: Vec<u8>) -> u64 {
        let at = self.data.len() as u64;
        let data = &mut self.data;
        *self.known.entry(bytes).or_insert_with_key(|bytes| {
            data.extend(bytes);
            at
        })
    }

    fn definition(&mut self, definition: &OperationDefinition) -> Vec<u8> {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let mut out = Vec::new();
        varint::push(
            &mut out,
            flag(definition.is_stateful, STATEFUL)
                | flag(definition.is_commutative, COMMUTATIVE)
                | flag(definition.is_aggregate, AGGREGATE)
                | flag(definition.allows_uninitialized_input, UNINITIALIZED)
                | flag(definition.is_name_alone, NAME_ALONE)
                | flag(definition.deprecated_since.is_some(), DEPRECATED),
        );
        if let Some(version) = definition.deprecated_since {
            put_signed(&mut out, version.into());
        }
        for arguments in [&definition.inputs, &definition.outputs] {
            let list: Vec<u8> =
                arguments.iter().flat_map(|argument| self.argument(argument)).collect();
            put_list(&mut out, &list);
        }
        let attributes = &definition.attributes;
        let list: Vec<u8> =
            attributes.iter().flat_map(|attribute| self.attribute(attribute)).collect();
        put_list(&mut out, &list);
        out
    }

    fn argument(&mut self, argument: &ArgumentDefinition) -> Vec<u8> {
        let mut out = Vec::new();
        varint::push(&mut out, self.string(&argument.name).into());
        let (source, value) = match &argument.element {
            ArgumentType::Fixed(number) => (0, *number as u32),
            ArgumentType::Attribute(name) => (1, self.string(name)),
            ArgumentType::List(name) => (2, self.string(name)),
        };
        let is_numbered = argument.number_attribute.is_some();
        out.push(source | u8::from(argument.is_reference) << 2 | u8::from(is_numbered) << 3);
        varint::push(&mut out, value.into());
        if let Some(name) = &argument.number_attribute {
            varint::push(&mut out, self.string(name).into());
        }
        out
    }

    fn attribute(&mut self, attribute: &AttributeDefinition) -> Vec<u8> {
        let mut out = Vec::new();
        varint::push(&mut out, self.string(&attribute.name).into());
        let kind = attribute.kind.element.number() | u8::from(attribute.kind.is_list) << 3;
        let is_set = |is_set: bool, bit: u8| u8::from(is_set) << bit;
        out.push(
            kind | is_set(attribute.minimum.is_some(), 4)
                | is_set(attribute.default.is_some(), 5)
                | is_set(attribute.allowed.is_some(), 6),
        );
        if let Some(minimum) = attribute.minimum {
            put_signed(&mut out, minimum);
        }
        let allowed = attribute.allowed.as_ref().map(|list| ValueDefinition::List(list.clone()));
        for value in [&attribute.default, &allowed].into_iter().flatten() {
            let bytes = self.value(value);
            let at = self.apart(bytes);
            varint::push(&mut out, at);
        }
        out
    }

    fn value(&mut self, value: &ValueDefinition) -> Vec<u8> {
        let mut out = Vec::new();
        match value {
            ValueDefinition::String(bytes) => {
                out.push(0);
                put_list(&mut out, bytes);
            }
            ValueDefinition::Int(number) => {
                out.push(1);
                put_signed(&mut out, *number);
            }
            ValueDefinition::Float(bits) => {
                out.push(2);
                varint::push(&mut out, (*bits).into());
            }
            ValueDefinition::Bool(flag) => out.extend([3, u8::from(*flag)]),
            ValueDefinition::Type(number) => {
                out.push(4);
                put_signed(&mut out, (*number).into());
            }
            ValueDefinition::Shape(None) => out.push(5),
            ValueDefinition::Shape(Some(dimensions)) => {
                out.push(6);
                let mut list = Vec::new();
                dimensions.iter().for_each(|dimension| put_signed(&mut list, *dimension));
                put_list(&mut out, &list);
            }
            ValueDefinition::Tensor(bytes) => {
                out.push(7);
                put_list(&mut out, bytes);
            }
            ValueDefinition::Function(name) => {
                out.push(8);
                varint::push(&mut out, self.string(name).into());
            }
            ValueDefinition::List(values) => {
                out.push(9);
                let list: Vec<u8> = values.iter().flat_map(|value| self.value(value)).collect();
                put_list(&mut out, &list);
            }
        }
        out
    }
}
