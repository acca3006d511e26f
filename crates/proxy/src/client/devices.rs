//! Devices of a server and their memories.

use std::collections::HashMap;

use serdes::{
    codec::{DeserializeOptions, FromProto as _},
    ifrt::{AttributeMap, DeviceId, MemoryKind},
    proto::xla::ifrt::{AttributeMapProto, proxy::InitResponse},
};

use crate::ProxyError;

/// A device of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RemoteDevice {
    /// Id of the device.
    pub id: DeviceId,
    /// Kind of the device.
    pub kind: String,
    /// Display name of the device.
    pub name: String,
    /// Id of the memory that arrays use by default.
    pub default_memory: Option<i32>,
    /// Ids of the device's memories.
    pub memories: Vec<i32>,
    /// Further attributes.
    pub attributes: AttributeMap,
}

/// A memory of a server's devices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteMemory {
    /// Id of the memory.
    pub id: i32,
    /// Kind of the memory.
    pub kind: MemoryKind,
    /// Devices that use the memory.
    pub devices: Vec<DeviceId>,
}

/// Decodes an optional attribute map.
///
/// # Errors
/// [`ProxyError::Decode`].
pub(super) fn attributes(proto: Option<&AttributeMapProto>) -> Result<AttributeMap, ProxyError> {
    Ok(match proto {
        Some(proto) => AttributeMap::from_proto(proto, &DeserializeOptions::new())?,
        None => AttributeMap::new(),
    })
}

/// Returns the primary devices in their order, and all memories.
///
/// # Errors
/// [`ProxyError::Protocol`] if a primary device is not described; [`ProxyError::Decode`].
pub(super) fn of(
    init: &InitResponse,
) -> Result<(Vec<RemoteDevice>, Vec<RemoteMemory>), ProxyError> {
    let by_id: HashMap<i32, _> =
        init.all_devices.iter().map(|device| (device.id, device)).collect();
    let mut devices = Vec::new();
    for id in &init.primary_device_ids {
        let device = by_id.get(id).ok_or_else(|| {
            ProxyError::Protocol(format!("the primary device {id} is not among the devices"))
        })?;
        devices.push(RemoteDevice {
            id: DeviceId(device.id),
            kind: device.device_kind.clone(),
            name: device.to_string.clone(),
            default_memory: device.default_memory_id,
            memories: device.memory_ids.clone(),
            attributes: attributes(device.attributes.as_ref())?,
        });
    }
    let memories = init.memories.iter().map(|memory| RemoteMemory {
        id: memory.id,
        kind: MemoryKind::new(&memory.memory_space_kind),
        devices: memory.device_ids.iter().copied().map(DeviceId).collect(),
    });
    Ok((devices, memories.collect()))
}
