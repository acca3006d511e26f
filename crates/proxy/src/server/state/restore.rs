//! Restores the arrays of a state to the devices of the server.

use std::{
    io::Read as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::Status,
    ifrt::{ArraySpec, DType, DeviceList, HloSharding, IndexDomain, MemoryKind, Shape},
    proto::xla::ifrt::proto::StringArrayContents,
};
use serdes_device_state::{Contents, Tensor};

use super::{kept_array::NameReservation, names::Owner};
use crate::{
    ProxyError,
    server::{
        arrays::{
            Array, Buffer, Devices, Item, Kind, Memory, MemorySpace, Region, Shard, contents_of,
            item_size, pick_strings, zeroed,
        },
        budget::{Budget, Budgets, Share},
        metrics::Gauges,
    },
};

/// Budgets that restored arrays count for.
///
/// They are restored before any client connects, and none is left out: if they exceed a limit, they
/// take all of it.
#[derive(Debug)]
pub(crate) struct RestoreBudget {
    arrays: Budget,
    pinned: Budget,
    /// Bytes of names in the header of the state's file.
    pub(super) name_bytes: Budget,
    is_full: AtomicBool,
}

impl RestoreBudget {
    /// Creates budgets from those for arrays, pinned memory and names of all sessions.
    pub(crate) fn new(all: &Budgets) -> Self {
        Self {
            arrays: all.arrays.clone(),
            pinned: all.pinned.clone(),
            name_bytes: all.name_bytes.clone(),
            is_full: AtomicBool::new(false),
        }
    }

    fn share(&self, kind: Kind, bytes: u64) -> Share {
        let take = |budget: &Budget| {
            let (held, is_all) = budget.take_what_is_there(bytes);
            if !is_all {
                self.is_full.store(true, Ordering::Relaxed);
            }
            held
        };
        Share {
            _arrays: take(&self.arrays),
            _pinned: (kind != Kind::Device).then(|| take(&self.pinned)),
        }
    }

    /// Takes a permit for an array's name in the header of the file.
    pub(super) fn name(&self, name: &str, owner: &Owner) -> Arc<NameReservation> {
        let (reservation, is_all) = NameReservation::of_all(&self.name_bytes, name, owner);
        if !is_all {
            self.is_full.store(true, Ordering::Relaxed);
        }
        reservation
    }

    /// Logs if a limit is too low for the restored arrays.
    pub(crate) fn report(&self) {
        if self.is_full.load(Ordering::Relaxed) {
            tracing::warn!(
                "the restored arrays are more than the limits `array-bytes`, `pinned-bytes` and `handles` allow; clients can make none until some \
                 are deleted, or the limit is raised"
            );
        }
    }
}

/// Restores an array of a file to the devices of its sharding, or to the first device if these are
/// missing.
pub(crate) fn restore(
    tensor: &Tensor,
    devices: &Devices,
    gauges: &Arc<Gauges>,
    budget: &RestoreBudget,
) -> Result<Array, ProxyError> {
    let Layout { spec, spaces, domains } = Layout::of(tensor, devices)?;
    let shard = |space, shape: &Shape, memory| {
        let buffer = Buffer::known(Ok(Arc::new(memory)));
        Shard { space, shape: shape.clone(), buffer }
    };
    if let [space] = spaces[..]
        && space.kind == Kind::Device
        && spec.dtype() != DType::String
    {
        // Directly from the file to the device.
        let share = budget.share(space.kind, tensor.bytes());
        let memory = Memory::restore(tensor, devices.at(space)?, share, gauges)?;
        let shards = vec![shard(space, spec.shape(), memory)];
        return Ok(Array { spec, shards });
    }
    let elements = Elements::read(tensor, spec.shape())?;
    let mut shards = Vec::with_capacity(spaces.len());
    for (space, domain) in spaces.into_iter().zip(domains) {
        let bytes = elements.part(&domain)?;
        let device = devices.at(space)?;
        let contents = match spec.dtype() {
            DType::String => Contents::of_bytes(bytes.len() as u64),
            dtype => contents_of(dtype, domain.shape())?,
        };
        let share = budget.share(space.kind, contents.bytes());
        let memory = Memory::write(device, space.kind, &contents, [&bytes[..]], share, gauges)?;
        shards.push(shard(space, domain.shape(), memory));
    }
    Ok(Array { spec, shards })
}

/// Memories and index domains of a restored array's shards.
struct Layout {
    spec: ArraySpec,
    spaces: Vec<MemorySpace>,
    domains: Vec<IndexDomain>,
}

impl Layout {
    fn of(tensor: &Tensor, devices: &Devices) -> Result<Self, ProxyError> {
        let spec = tensor.spec().clone();
        let spaces = devices.spaces(spec.sharding()).ok();
        let fits = spaces.zip(spec.sharding().index_domains(spec.shape()).ok());
        if let Some((spaces, domains)) = fits.filter(|(spaces, parts)| spaces.len() == parts.len())
        {
            return Ok(Self { spec, spaces, domains });
        }
        let list = DeviceList::from(devices.id(0));
        let sharding = HloSharding::replicated(list, MemoryKind::new(Kind::Device.name()))?;
        let domains = vec![IndexDomain::whole(spec.shape().clone())];
        let spec = ArraySpec::new(spec.dtype(), spec.shape().clone(), sharding);
        Ok(Self { spec, spaces: vec![MemorySpace { device: 0, kind: Kind::Device }], domains })
    }
}

/// All elements of an array, on the host.
enum Elements {
    Bytes { whole: Vec<u8>, region: Region },
    Strings { strings: Vec<Bytes>, shape: Shape },
}

impl Elements {
    fn read(tensor: &Tensor, shape: &Shape) -> Result<Self, ProxyError> {
        match item_size(tensor.spec().dtype())? {
            Item::Strings => {
                let strings = tensor.strings()?.into_iter().map(Bytes::from).collect();
                Ok(Self::Strings { strings, shape: shape.clone() })
            }
            Item::Bytes(item) => {
                let mut whole = Vec::new();
                let read = tensor.read()?.read_to_end(&mut whole);
                read.map_err(|error| ProxyError::System { doing: "reading the state", error })?;
                Ok(Self::Bytes { whole, region: Region::dense(shape.dims(), item)? })
            }
        }
    }

    /// Returns a part of them, in the layout of a shard's memory.
    fn part(&self, domain: &IndexDomain) -> Result<Vec<u8>, Status> {
        match self {
            Self::Bytes { whole, region } => {
                let shape = domain.shape().dims();
                let target = Region::dense(shape, region.item())?;
                let mut bytes = zeroed(target.bytes())?;
                let (from, to) = (domain.origin().elements(), vec![0; shape.len()]);
                region.copy_block(whole, from, &target, &mut bytes, &to, shape)?;
                Ok(bytes)
            }
            Self::Strings { strings, shape } => {
                let strings = pick_strings(strings, shape, domain)?;
                Ok(StringArrayContents { strings }.encode_to_vec())
            }
        }
    }
}
