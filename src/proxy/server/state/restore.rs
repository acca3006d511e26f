//! Arrays of a state onto the devices of the server.

use std::{io::Read as _, sync::Arc};

use prost::Message as _;

use super::super::{
    array::{Array, Shard},
    devices::Devices,
    element::{Item, item_size, zeroed},
    memory::{Buffer, Kind, Memory, Place},
    metrics::Gauges,
    region::Region,
    strings::pick_strings,
};
use crate::{
    device_state::Tensor,
    ifrt::{ArraySpec, DType, DeviceId, DeviceList, HloSharding, IndexDomain, MemoryKind},
    proto::xla::ifrt::proto::StringArrayContents,
    proxy::ProxyError,
};

/// Puts an array of a file where its sharding says; where these devices are not there, on the first one.
pub(super) fn restore(
    tensor: &Tensor,
    devices: &Devices,
    gauges: &Arc<Gauges>,
) -> Result<Array, ProxyError> {
    let spec = tensor.spec().clone();
    let fits =
        devices.places(spec.sharding()).ok().zip(spec.sharding().index_domains(spec.shape()).ok());
    let (spec, places, domains) = match fits {
        Some((places, domains)) if places.len() == domains.len() => (spec, places, domains),
        _ => {
            let list = DeviceList::from(DeviceId(0));
            let sharding = HloSharding::replicated(list, MemoryKind::new(Kind::Device.name()))?;
            let whole = IndexDomain::whole(spec.shape().clone());
            let spec = ArraySpec::new(spec.dtype(), spec.shape().clone(), sharding);
            (spec, vec![Place { device: 0, kind: Kind::Device }], vec![whole])
        }
    };
    let item = item_size(spec.dtype())?;
    let first = devices
        .at(Place { device: places.first().map_or(0, |place| place.device), kind: Kind::Device })?;
    let mut shards = Vec::with_capacity(places.len());
    if let ([place], Item::Bytes(_)) = (&places[..], item)
        && place.kind == Kind::Device
    {
        // Straight from the file to the device.
        let memory = Memory::of_device(tensor.restore(first)?, gauges);
        shards.push(Shard {
            place: *place,
            shape: spec.shape().clone(),
            buffer: Buffer::ready(Arc::new(memory)),
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
    for (place, domain) in places.into_iter().zip(domains) {
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
        let device = devices.at(place)?;
        let memory =
            Memory::write(device, place.kind, bytes.len() as u64, [&bytes[..]], None, gauges)?;
        shards.push(Shard {
            place,
            shape: domain.shape().clone(),
            buffer: Buffer::ready(Arc::new(memory)),
        });
    }
    Ok(Array { spec, shards })
}
