//! Groups of devices given by the axes of a mesh, expanded to lists.
//!
//! The rule is that of StableHLO (`ReplicaGroupUtils.cpp`): the axes that do not communicate
//! enumerate the groups; those that do enumerate the devices of a group, in the order in which they
//! are named.

use std::collections::HashMap;

use super::{
    bytecode::{Bytecode, Cursor, Operation},
    catalogue::{VHLO, attribute_code, builtin_code},
    properties::{attributes_of, string},
};

/// MLIR's own dialect.
const BUILTIN: &str = "builtin";
/// The key under which an operation records its mesh for readers that know only StableHLO.
const MESH_KEY: &[u8] = b"stablehlo.mesh";
/// Limit on the axes of a mesh, and on the entries of its description.
const MOST_AXES: usize = 64;
/// Limit on the devices that are listed for one program.
const MOST_DEVICES: i64 = 1 << 20;

/// Groups of devices of equal size, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReplicaGroups {
    pub(super) count: i64,
    pub(super) size: i64,
    pub(super) devices: Vec<i64>,
}

#[derive(Clone, Debug)]
struct Mesh<'a> {
    axes: Vec<Axis<'a>>,
    /// The devices in the order of the mesh; `None` for 0 to n - 1.
    devices: Option<Vec<i64>>,
}

#[derive(Clone, Copy, Debug)]
struct Axis<'a> {
    name: &'a [u8],
    size: i64,
}

/// The meshes of a program by their names.
pub(super) struct MeshSymbols<'f, 'a> {
    file: &'f Bytecode<'a>,
    /// The attributes of the operation with that name; `None` if several have it.
    by_name: HashMap<&'a [u8], Option<u64>>,
    devices_left: i64,
}

impl<'f, 'a> MeshSymbols<'f, 'a> {
    /// Creates the table of the meshes that these operations define.
    pub(super) fn new(file: &'f Bytecode<'a>, operations: &[Operation]) -> Self {
        let mut by_name = HashMap::new();
        for operation in operations {
            let properties = operation
                .properties
                .and_then(|index| file.properties.get(usize::try_from(index).ok()?))
                .and_then(|properties| attributes_of(properties))
                .unwrap_or_default();
            // The name is the only string among the properties.
            let name = properties.iter().find_map(|attribute| string(file, *attribute));
            if let (Some(name), Some(attributes)) = (name, operation.attributes) {
                let of_name = by_name.entry(name).or_insert(Some(attributes));
                if *of_name != Some(attributes) {
                    *of_name = None;
                }
            }
        }
        Self { file, by_name, devices_left: MOST_DEVICES }
    }

    /// Returns the groups that an attribute describes; `None` if it splits axes, if its mesh cannot
    /// be read, or if there are too many devices.
    pub(super) fn replica_groups(&mut self, mut contents: Cursor<'a>) -> Option<ReplicaGroups> {
        let mesh = contents.varint().ok()?;
        let axes = contents.varint().ok()?;
        contents.is_empty().then_some(())?;
        let mesh = self.mesh(mesh)?;
        let mut named = Vec::new();
        for reference in self.elements(axes)? {
            let (code, mut reference) = self.file.attribute(reference, VHLO)?;
            let name = reference.varint().ok()?;
            let is_whole = reference.varint().ok()? == 0;
            (code == attribute_code::AXIS_REFERENCE && is_whole).then_some(())?;
            let name = string(self.file, name)?;
            let axis = mesh.axes.iter().position(|axis| axis.name == name)?;
            (!named.contains(&axis)).then(|| named.push(axis))?;
        }
        let groups = groups(&mesh, &named, self.devices_left)?;
        self.devices_left -= groups.count * groups.size;
        Some(groups)
    }

    fn mesh(&self, attribute: u64) -> Option<Mesh<'a>> {
        if let Some((attribute_code::MESH, mut contents)) = self.file.attribute(attribute, VHLO) {
            let axes = contents.varint().ok()?;
            let devices = match contents.flagged().ok()? {
                (devices, true) => Some(self.tensor(devices)?),
                (_, false) => None,
            };
            let axis = |axis| {
                let (code, mut contents) = self.file.attribute(axis, VHLO)?;
                let name = string(self.file, contents.varint().ok()?)?;
                let size = contents.zigzag().ok()?;
                (code == attribute_code::MESH_AXIS).then_some(Axis { name, size })
            };
            let axes = self.elements(axes)?.into_iter().map(axis).collect::<Option<_>>()?;
            return Some(Mesh { axes, devices });
        }
        let name = match self.file.attribute(attribute, BUILTIN) {
            Some((builtin_code::SYMBOL, mut contents)) => contents.varint().ok()?,
            _ => attribute,
        };
        let of_name = self.by_name.get(string(self.file, name)?)?;
        self.mesh_of_dictionary(find(&self.dictionary((*of_name)?)?, MESH_KEY)?)
    }

    /// Reads a mesh of the form `{axes = [{name = "x", size = 2}], device_ids = dense<…>}`.
    fn mesh_of_dictionary(&self, dictionary: u64) -> Option<Mesh<'a>> {
        let entries = self.dictionary(dictionary)?;
        let (code, contents) = self.file.attribute(find(&entries, b"axes")?, BUILTIN)?;
        (code == builtin_code::ARRAY).then_some(())?;
        let axis = |axis| {
            let entries = self.dictionary(axis)?;
            let name = string(self.file, find(&entries, b"name")?)?;
            let size = self.integer(find(&entries, b"size")?)?;
            Some(Axis { name, size })
        };
        let axes = list(contents)?.into_iter().map(axis).collect::<Option<_>>()?;
        let devices = match find(&entries, b"device_ids") {
            Some(devices) => Some(self.tensor(devices)?),
            None => None,
        };
        Some(Mesh { axes, devices })
    }

    fn dictionary(&self, attribute: u64) -> Option<Vec<(&'a [u8], u64)>> {
        let (code, mut contents) = self.file.attribute(attribute, BUILTIN)?;
        let count = contents.count().ok().filter(|count| *count <= MOST_AXES)?;
        (code == builtin_code::DICTIONARY).then_some(())?;
        let entry = |_| {
            let name = string(self.file, contents.varint().ok()?)?;
            Some((name, contents.varint().ok()?))
        };
        (0..count).map(entry).collect()
    }

    /// Returns the elements of an array of VHLO.
    fn elements(&self, attribute: u64) -> Option<Vec<u64>> {
        let (code, contents) = self.file.attribute(attribute, VHLO)?;
        (code == attribute_code::ARRAY).then(|| list(contents))?
    }

    /// Returns an integer of 64 bits.
    fn integer(&self, attribute: u64) -> Option<i64> {
        let (code, mut contents) = self.file.attribute(attribute, BUILTIN)?;
        (code == builtin_code::INTEGER).then_some(())?;
        self.is_of_64_bits(contents.varint().ok()?).then_some(())?;
        contents.zigzag().ok()
    }

    fn is_of_64_bits(&self, number: u64) -> bool {
        let entry = usize::try_from(number).ok().and_then(|number| self.file.types.get(number));
        let code = entry.and_then(|entry| self.file.code(entry, BUILTIN));
        code.is_some_and(|(code, mut contents)| {
            // The signedness is in the two lowest bits.
            code == builtin_code::INTEGER_TYPE
                && contents.varint().is_ok_and(|width| width >> 2 == 64)
        })
    }

    /// Returns the elements of a tensor of integers of 64 bits, in either dialect.
    fn tensor(&self, attribute: u64) -> Option<Vec<i64>> {
        let of_vhlo = self.file.attribute(attribute, VHLO);
        let of_builtin = self.file.attribute(attribute, BUILTIN);
        let mut contents = match (of_vhlo, of_builtin) {
            (Some((attribute_code::TENSOR, contents)), _)
            | (_, Some((builtin_code::DENSE_ELEMENTS, contents))) => contents,
            _ => return None,
        };
        // Skips the type: the number of devices shows that the elements have 64 bits.
        contents.varint().ok()?;
        let (values, rest) = contents.stretch().ok()?.as_chunks::<8>();
        let fits = rest.is_empty() && contents.is_empty();
        (fits && values.len() as i64 <= MOST_DEVICES)
            .then(|| values.iter().map(|value| i64::from_le_bytes(*value)).collect())
    }
}

fn find(entries: &[(&[u8], u64)], name: &[u8]) -> Option<u64> {
    entries.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
}

/// Reads a count, and that many numbers.
fn list(mut contents: Cursor<'_>) -> Option<Vec<u64>> {
    let count = contents.count().ok().filter(|count| *count <= MOST_AXES)?;
    let list = (0..count).map(|_| contents.varint().ok()).collect::<Option<_>>();
    list.filter(|_| contents.is_empty())
}

/// Returns the groups in which the axes with these indices communicate.
fn groups(mesh: &Mesh<'_>, communicating: &[usize], most: i64) -> Option<ReplicaGroups> {
    let sizes: Vec<i64> = mesh.axes.iter().map(|axis| axis.size).collect();
    let multiplied = |product: i64, size: &i64| {
        (*size >= 1).then(|| product.checked_mul(*size))?.filter(|product| *product <= most)
    };
    let total = sizes.iter().try_fold(1, multiplied)?;
    let of_group = communicating.iter().filter_map(|axis| sizes.get(*axis));
    let size = of_group.copied().try_fold(1, |product, size| multiplied(product, &size))?;
    if let Some(devices) = &mesh.devices {
        (devices.len() as i64 == total).then_some(())?;
    }
    // The distance to the next device along each axis, in the order of the mesh.
    let mut distance = 1;
    let mut distances = vec![0; sizes.len()];
    for (place, size) in distances.iter_mut().zip(&sizes).rev() {
        *place = distance;
        distance *= size;
    }
    let others = (0..sizes.len()).filter(|axis| !communicating.contains(axis));
    let order: Vec<(i64, i64)> = others
        .chain(communicating.iter().copied())
        .filter_map(|axis| Some((*sizes.get(axis)?, *distances.get(axis)?)))
        .collect();
    let mut devices = Vec::new();
    for place in 0..total {
        let mut rest = place;
        let mut position = 0;
        for (size, distance) in order.iter().rev() {
            position += rest % size * distance;
            rest /= size;
        }
        devices.push(match &mesh.devices {
            Some(devices) => *devices.get(usize::try_from(position).ok()?)?,
            None => position,
        });
    }
    Some(ReplicaGroups { count: total / size, size, devices })
}
