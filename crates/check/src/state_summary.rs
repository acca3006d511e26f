//! Summary of the devices, meshes and specs with which a device state was saved.

use std::collections::{BTreeMap, HashMap};

use serdes::ifrt::{HloSharding, Sharding};
use serdes_device_state::{Reader, Tensor};

use super::mesh_names::{AxisSummary, MeshNames};

/// The devices of a state, and the placement of its arrays on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StateSummary {
    /// The distinct shardings of its arrays, in the order of the arrays.
    pub shardings: Vec<ShardingSummary>,
    /// The distinct meshes of these shardings.
    pub meshes: Vec<MeshSummary>,
    /// The devices whose pieces it has, by id.
    pub devices: Vec<DeviceSummary>,
    /// Number of its pieces: an array has one, or one per shard.
    pub pieces: u64,
    /// Payload of all arrays in bytes.
    pub data_bytes: u64,
    /// Length in bytes, including parts.
    pub file_bytes: u64,
    /// Number of bytes under one checksum.
    pub chunk_bytes: u32,
    /// The metadata from the saving program, by key.
    pub metadata: BTreeMap<String, String>,
    /// Number of parts that several processes saved; 0 for a state in one file.
    pub parts: u32,
    /// The part, if the file is a part and not a complete state.
    pub part: Option<PartSummary>,
}

/// A sharding that arrays of a state have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardingSummary {
    /// The kind of IFRT's sharding: `single_device`, `opaque`, `concrete`, `concrete_even`,
    /// `sharding_param` or `hlo`.
    pub kind: String,
    /// The sharding as text.
    pub sharding: String,
    /// The ids of its devices, in the order of the shards.
    pub devices: Vec<i32>,
    /// The memory kind; `None` if not recorded.
    pub memory_kind: Option<String>,
    /// True if each device holds the whole array.
    pub replicated: bool,
    /// The index of its mesh among the meshes; `None` if it has none.
    pub mesh: Option<u64>,
    /// Number of arrays with this sharding.
    pub tensors: u64,
}

/// A mesh of devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MeshSummary {
    /// Its axes, in the order in which the sharding lists them.
    pub axes: Vec<AxisSummary>,
    /// The ids of its devices, in the order of the sharding.
    pub devices: Vec<i32>,
}

/// A device of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeviceSummary {
    /// Its id.
    pub id: i32,
    /// Number of pieces saved from it: data that several devices hold is saved from one of them.
    pub pieces: u64,
    /// Number of bytes of its pieces.
    pub bytes: u64,
}

/// The position of a part within a save.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PartSummary {
    /// The id of the save.
    pub id: String,
    /// The number of the part, counted from 0.
    pub number: u32,
    /// Number of parts.
    pub count: u32,
}

/// A summary under construction.
pub(super) struct Summing {
    summary: StateSummary,
    names: MeshNames,
    /// The number of each sharding, by the mesh whose axes have names, if there is one; the number
    /// of a mesh in the summary is in its sharding's summary.
    shardings: HashMap<Option<usize>, HashMap<Sharding, u64>>,
    meshes: HashMap<MeshSummary, u64>,
    devices: BTreeMap<i32, DeviceSummary>,
}

impl Summing {
    /// Starts the summary of a state, before its tensors are read.
    pub(super) fn of(reader: &Reader) -> Self {
        let metadata = reader.metadata().unwrap_or_default().iter().cloned().collect();
        let part = reader.part().map(|part| PartSummary {
            id: part.save().to_string(),
            number: part.number(),
            count: part.count(),
        });
        let summary = StateSummary {
            data_bytes: reader.data_bytes(),
            file_bytes: reader.file_bytes(),
            chunk_bytes: reader.chunk_bytes(),
            metadata,
            parts: reader.parts(),
            part,
            ..StateSummary::default()
        };
        let names = MeshNames::of(reader.metadata().unwrap_or_default());
        let (shardings, meshes) = (HashMap::new(), HashMap::new());
        Self { summary, names, shardings, meshes, devices: BTreeMap::new() }
    }

    /// Adds a tensor; returns the number of its sharding.
    pub(super) fn add(&mut self, tensor: &Tensor) -> u64 {
        for piece in tensor.piece_devices() {
            self.summary.pieces += 1;
            let new = DeviceSummary { id: piece.device, pieces: 0, bytes: 0 };
            let device = self.devices.entry(piece.device).or_insert(new);
            device.pieces += 1;
            device.bytes = device.bytes.saturating_add(piece.bytes);
        }
        let sharding = tensor.spec().sharding();
        let named = self.names.mesh(tensor.name(), sharding.devices().ids().len());
        let known = self.shardings.get(&named).and_then(|shardings| shardings.get(sharding));
        let number = match known {
            Some(number) => *number,
            None => self.add_sharding(sharding, named),
        };
        let known = usize::try_from(number).ok();
        if let Some(known) = known.and_then(|at| self.summary.shardings.get_mut(at)) {
            known.tensors += 1;
        }
        number
    }

    fn add_sharding(&mut self, sharding: &Sharding, named: Option<usize>) -> u64 {
        let mesh = named
            .map(|mesh| MeshSummary { axes: self.names.axes(mesh), devices: ids_of(sharding) });
        let mesh = mesh.or_else(|| mesh_of(sharding)).map(|mesh| {
            let next = self.meshes.len() as u64;
            *self.meshes.entry(mesh.clone()).or_insert_with(|| {
                self.summary.meshes.push(mesh);
                next
            })
        });
        let number = self.summary.shardings.len() as u64;
        self.summary.shardings.push(ShardingSummary {
            kind: kind_of(sharding).to_owned(),
            sharding: sharding.to_string(),
            devices: ids_of(sharding),
            memory_kind: sharding.memory_kind().name().map(str::to_owned),
            replicated: sharding.is_fully_replicated(),
            mesh,
            tensors: 0,
        });
        self.shardings.entry(named).or_default().insert(sharding.clone(), number);
        number
    }

    /// Returns the finished summary.
    pub(super) fn finish(self) -> StateSummary {
        StateSummary { devices: self.devices.into_values().collect(), ..self.summary }
    }
}

fn ids_of(sharding: &Sharding) -> Vec<i32> {
    sharding.devices().ids().iter().map(|id| id.0).collect()
}

fn kind_of(sharding: &Sharding) -> &'static str {
    match sharding {
        Sharding::SingleDevice(_) => "single_device",
        Sharding::Opaque(_) => "opaque",
        Sharding::Concrete(_) => "concrete",
        Sharding::ConcreteEven(_) => "concrete_even",
        Sharding::ShardingParam(_) => "sharding_param",
        Sharding::Hlo(_) => "hlo",
        _ => "other",
    }
}

/// Returns the mesh of a sharding, as far as it has one.
fn mesh_of(sharding: &Sharding) -> Option<MeshSummary> {
    let axes: Vec<AxisSummary> = match sharding {
        Sharding::ShardingParam(sharding) => {
            let sizes = sharding.param().axis_sizes().iter();
            sizes.map(|size| AxisSummary { name: None, size: (*size).into() }).collect()
        }
        Sharding::Hlo(sharding) => axes_of_hlo(sharding)?,
        _ => return None,
    };
    (!axes.is_empty()).then(|| MeshSummary { axes, devices: ids_of(sharding) })
}

fn axes_of_hlo(sharding: &HloSharding) -> Option<Vec<AxisSummary>> {
    let words = sharding.op_sharding();
    if let Some(mesh) = words.named_sharding().and_then(|named| named.mesh.as_ref()) {
        let axes = mesh.axes.iter();
        let axes = axes.map(|axis| AxisSummary { name: Some(axis.name.clone()), size: axis.size });
        return Some(axes.collect());
    }
    let tiles = words.tile_assignment()?;
    // An iota is over the axes of the mesh, as far as they were distinguished.
    let sizes = tiles.iota_parts().map_or_else(|| tiles.dimensions(), |(sizes, _)| sizes);
    Some(sizes.iter().map(|size| AxisSummary { name: None, size: *size }).collect())
}
