//! Arrays of a state onto the devices of the server.

use std::{
    io::Read as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use prost::Message as _;

use crate::{
    device_state::Tensor,
    ifrt::{ArraySpec, DType, DeviceId, DeviceList, HloSharding, IndexDomain, MemoryKind},
    proto::xla::ifrt::proto::StringArrayContents,
    proxy::{
        ProxyError,
        server::{
            arrays::{
                Array, Buffer, Devices, Item, Kind, Memory, MemorySpace, Region, Shard, item_size,
                pick_strings, zeroed,
            },
            budget::{Budget, Share},
            metrics::Gauges,
        },
    },
};

/// Where restored arrays are counted.
///
/// They are there before any client, and nothing of them is left out: those that are more than a limit allows take all that it has.
#[derive(Debug)]
pub(crate) struct Room {
    arrays: Budget,
    pinned: Budget,
    is_full: AtomicBool,
}

impl Room {
    /// Counts for what all sessions may have of arrays, and of those in pinned memory.
    pub(crate) const fn new(arrays: Budget, pinned: Budget) -> Self {
        Self { arrays, pinned, is_full: AtomicBool::new(false) }
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
            _pinned: (kind == Kind::PinnedHost).then(|| take(&self.pinned)),
        }
    }

    /// Says if a limit is too low for what was restored.
    pub(crate) fn report(&self) {
        if self.is_full.load(Ordering::Relaxed) {
            tracing::warn!(
                "the restored arrays are more than the limits `array-bytes` and `pinned-bytes` allow; clients can make none until some \
                 are deleted, or the limit is raised"
            );
        }
    }
}

/// Puts an array of a file where its sharding says; where these devices are not there, on the first one.
pub(crate) fn restore(
    tensor: &Tensor,
    devices: &Devices,
    gauges: &Arc<Gauges>,
    room: &Room,
) -> Result<Array, ProxyError> {
    let spec = tensor.spec().clone();
    let fits =
        devices.spaces(spec.sharding()).ok().zip(spec.sharding().index_domains(spec.shape()).ok());
    let (spec, spaces, domains) = match fits {
        Some((spaces, domains)) if spaces.len() == domains.len() => (spec, spaces, domains),
        _ => {
            let list = DeviceList::from(DeviceId(0));
            let sharding = HloSharding::replicated(list, MemoryKind::new(Kind::Device.name()))?;
            let whole = IndexDomain::whole(spec.shape().clone());
            let spec = ArraySpec::new(spec.dtype(), spec.shape().clone(), sharding);
            (spec, vec![MemorySpace { device: 0, kind: Kind::Device }], vec![whole])
        }
    };
    let item = item_size(spec.dtype())?;
    let first = devices.at(MemorySpace {
        device: spaces.first().map_or(0, |space| space.device),
        kind: Kind::Device,
    })?;
    let mut shards = Vec::with_capacity(spaces.len());
    if let ([space], Item::Bytes(_)) = (&spaces[..], item)
        && space.kind == Kind::Device
    {
        // Straight from the file to the device.
        let restored = tensor.restore(first)?;
        let share = room.share(space.kind, restored.size());
        let memory = Memory::of_device(restored, share, gauges);
        shards.push(Shard {
            space: *space,
            shape: spec.shape().clone(),
            buffer: Buffer::known(Ok(Arc::new(memory))),
        });
        return Ok(Array { spec, shards });
    }
    let strings = match spec.dtype() {
        DType::String => tensor.strings()?.into_iter().map(bytes::Bytes::from).collect(),
        _ => Vec::new(),
    };
    let mut whole = Vec::new();
    if item != Item::Strings {
        tensor
            .read()?
            .read_to_end(&mut whole)
            .map_err(|error| ProxyError::System { doing: "reading the state", error })?;
    }
    for (space, domain) in spaces.into_iter().zip(domains) {
        let bytes = match item {
            Item::Bytes(item) => {
                let source = Region::dense(spec.shape().dims(), item)?;
                let shape = domain.shape().dims();
                let target = Region::dense(shape, item)?;
                let mut bytes = zeroed(target.bytes())?;
                let zero = vec![0; shape.len()];
                source.copy_block(
                    &whole,
                    domain.origin().elements(),
                    &target,
                    &mut bytes,
                    &zero,
                    shape,
                )?;
                bytes
            }
            Item::Strings => {
                let strings = pick_strings(&strings, spec.shape(), &domain)?;
                StringArrayContents { strings }.encode_to_vec()
            }
        };
        let device = devices.at(space)?;
        let size = bytes.len() as u64;
        let share = room.share(space.kind, size);
        let memory = Memory::write(device, space.kind, size, [&bytes[..]], share, gauges)?;
        shards.push(Shard {
            space,
            shape: domain.shape().clone(),
            buffer: Buffer::known(Ok(Arc::new(memory))),
        });
    }
    Ok(Array { spec, shards })
}
