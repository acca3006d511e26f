//! The devices of the plug-in as clients see them: ids, memories and attributes.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use serdes::{
    codec::{DecodeError, Status, StatusCode, ToProto},
    ifrt::{AttributeMap, AttributeValue, DeviceId, DeviceLookup, MemoryKind, Reach, Sharding},
    proto::xla::ifrt::proxy::{InitResponse, init_response},
    version::SerDesVersion,
};
use serdes_host_memory::available_memory;
use serdes_stream_executor::Plugin;

use super::{
    ServedDevices,
    device::{PjrtDevice, ServedDevice},
    space::{Kind, MemorySpace},
};
use crate::{
    ProxyError,
    status::{of_pjrt, status},
};

/// The devices of one client of the plug-in.
#[derive(Debug)]
struct Generation {
    devices: Vec<ServedDevice>,
    /// The PJRT client that compiles and runs programs.
    client: Option<serdes_pjrt::Client>,
}

impl Generation {
    fn of_client(
        client: &serdes_pjrt::Client,
        found: &[serdes_pjrt::Device],
    ) -> Result<Self, serdes_pjrt::PjrtError> {
        let devices = found.iter().map(|device| Ok(ServedDevice::Pjrt(PjrtDevice::new(device)?)));
        let devices = devices.collect::<Result<_, serdes_pjrt::PjrtError>>()?;
        Ok(Self { devices, client: Some(client.clone()) })
    }
}

/// All devices of a plug-in that this process can use.
///
/// A program that never ends may keep the devices of its client forever. Then
/// [`renew`](Self::renew) creates another client of the plug-in, the next generation, for new work;
/// arrays of earlier generations can still be read.
#[derive(Debug)]
pub(crate) struct Devices {
    first: Generation,
    later: [OnceLock<Generation>; MOST_RENEWALS],
    /// Number of the generation in use; 0 is the first.
    current: AtomicUsize,
    /// Id of each device for clients: the plug-in's, because programs name devices as well; or the
    /// position in the list if the plug-in has no ids.
    ids: Vec<DeviceId>,
    platform: String,
    /// Kind of each device's hardware: the plug-in's name for it, or the platform's device type.
    kinds: Vec<String>,
    version: String,
}

/// Maximum number of clients that replace one with endless programs: each leaves threads behind.
pub(crate) const MOST_RENEWALS: usize = 8;

impl Devices {
    /// # Errors
    /// [`ProxyError::Configuration`] if there is no device; [`ProxyError::Device`] and
    /// [`ProxyError::Pjrt`] if one cannot be used.
    pub(crate) fn of(served: &ServedDevices) -> Result<Self, ProxyError> {
        match served {
            ServedDevices::Plugin(plugin) => Self::of_plugin(plugin),
            ServedDevices::Client(client) => Self::of_client(client),
        }
    }

    fn of_client(client: &serdes_pjrt::Client) -> Result<Self, ProxyError> {
        let found = client.addressable_devices()?;
        if found.is_empty() {
            return Err(none_of(client.platform_name()));
        }
        let kinds = found.iter().map(serdes_pjrt::Device::kind).collect::<Result<_, _>>()?;
        let ids: Vec<_> =
            found.iter().map(|device| device.id().map(DeviceId)).collect::<Result<_, _>>()?;
        if let Some(twice) =
            ids.iter().enumerate().find(|(at, id)| ids.iter().take(*at).any(|other| other == *id))
        {
            let reason = format!("two of its devices have the number {}", twice.1);
            return Err(ProxyError::configuration("the plug-in", client.platform_name(), reason));
        }
        Ok(Self {
            first: Generation::of_client(client, &found)?,
            later: Default::default(),
            current: AtomicUsize::new(0),
            ids,
            platform: client.platform_name().to_owned(),
            kinds,
            version: format!("serdes {}, PJRT {}", env!("CARGO_PKG_VERSION"), client.minor()),
        })
    }

    fn of_plugin(plugin: &Plugin) -> Result<Self, ProxyError> {
        let devices = (0..plugin.device_count()).map(|ordinal| plugin.device(ordinal));
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        let platform = plugin.platform();
        if devices.is_empty() {
            return Err(none_of(platform.name()));
        }
        let kinds = devices.iter().map(|device| {
            let name = device.description().hardware_name.filter(|name| !name.is_empty());
            name.unwrap_or_else(|| platform.device_type().to_owned())
        });
        Ok(Self {
            kinds: kinds.collect(),
            // Plug-ins have fewer devices than an i32 counts.
            ids: (0..devices.len() as i32).map(DeviceId).collect(),
            first: Generation {
                devices: devices.into_iter().map(ServedDevice::StreamExecutor).collect(),
                client: None,
            },
            later: Default::default(),
            current: AtomicUsize::new(0),
            platform: platform.name().to_owned(),
            version: format!(
                "serdes {}, StreamExecutor layout {}",
                env!("CARGO_PKG_VERSION"),
                plugin.layout().name
            ),
        })
    }

    /// Sets the platform name that clients see, if given.
    pub(crate) fn on_platform(self, name: Option<String>) -> Self {
        match name {
            Some(platform) => Self { platform, ..self },
            None => self,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.devices.len()
    }

    /// Returns the number of the generation in use.
    pub(crate) fn generation(&self) -> usize {
        self.current.load(Ordering::Acquire)
    }

    /// Returns a generation by its number; the first one if the number is unknown.
    fn of_generation(&self, number: usize) -> &Generation {
        let later = number.checked_sub(1).and_then(|at| self.later.get(at)?.get());
        later.unwrap_or(&self.first)
    }

    fn in_use(&self) -> &Generation {
        self.of_generation(self.generation())
    }

    /// Returns the PJRT client that compiles and runs programs on these devices, if there is one.
    pub(crate) fn client(&self) -> Option<&serdes_pjrt::Client> {
        self.in_use().client.as_ref()
    }

    /// Returns the PJRT client of a generation, if there is one.
    pub(crate) fn client_of(&self, generation: usize) -> Option<&serdes_pjrt::Client> {
        self.of_generation(generation).client.as_ref()
    }

    /// Replaces the client of `generation` by another one of the plug-in, unless that was done
    /// already. May wait for the plug-in.
    ///
    /// # Errors
    /// UNAVAILABLE after [`MOST_RENEWALS`], or if the plug-in has no clients or creates none with
    /// the same devices.
    pub(crate) fn renew(&self, generation: usize) -> Result<(), Status> {
        let place = self.later.get(generation).ok_or_else(|| {
            status!(
                Unavailable,
                "programs that do not end have taken the devices {MOST_RENEWALS} times; the server has to be started again"
            )
        })?;
        let Some(client) = self.client_of(generation) else {
            return Err(status!(Unavailable, "the plug-in has no clients of PJRT"));
        };
        if place.get().is_none() {
            let renewed = client.create_another().map_err(|error| of_pjrt(&error))?;
            let found = renewed.addressable_devices().map_err(|error| of_pjrt(&error))?;
            let ids = found.iter().map(|device| device.id().map(DeviceId));
            let ids: Vec<_> = ids.collect::<Result<_, _>>().map_err(|error| of_pjrt(&error))?;
            if ids != self.ids {
                return Err(status!(
                    Unavailable,
                    "another client of the plug-in has the devices {ids:?}; expected {:?}",
                    self.ids
                ));
            }
            let renewed =
                Generation::of_client(&renewed, &found).map_err(|error| of_pjrt(&error))?;
            // Destroying the client would wait for its programs.
            Box::leak(Box::new(client.clone()));
            // If two threads renew at the same time, the second one's client is dropped.
            drop(place.set(renewed));
        }
        self.current.fetch_max(generation + 1, Ordering::AcqRel);
        Ok(())
    }

    /// Returns the memory of all devices together in bytes; `None` if one device does not report
    /// it. Devices that use the host's memory count as at most half of the free memory of the host.
    pub(crate) fn memory(&self) -> Option<u64> {
        let mut all = 0_u64;
        for device in &self.first.devices {
            let bytes = match device {
                ServedDevice::StreamExecutor(device) => device.memory_usage().ok()??.total,
                ServedDevice::Pjrt(device) => match limit_of(device) {
                    None if self.take_strings() => i64::MAX,
                    limit => limit?,
                },
            };
            all = all.saturating_add(u64::try_from(bytes).ok()?);
        }
        let available = available_memory();
        Some(if self.take_strings() { all.min(available / 2) } else { all })
    }

    /// # Errors
    /// INTERNAL if there is no such device.
    pub(crate) fn at(&self, space: MemorySpace) -> Result<&ServedDevice, Status> {
        self.at_of(self.generation(), space)
    }

    /// Like [`at`](Self::at), for a generation.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(crate) fn at_of(
        &self,
        generation: usize,
        space: MemorySpace,
    ) -> Result<&ServedDevice, Status> {
        self.of_generation(generation)
            .devices
            .get(space.device)
            .ok_or_else(|| status!(Internal, "no device has the place {}", space.device))
    }

    /// Returns the ids of the devices for clients, in the order of the list.
    pub(crate) fn ids(&self) -> Vec<i32> {
        self.ids.iter().map(|id| id.0).collect()
    }

    /// Returns the id for clients of the device at a position in the list.
    pub(crate) fn id(&self, place: usize) -> DeviceId {
        // The position was found by an id, so it exists.
        self.ids.get(place).copied().unwrap_or(DeviceId(-1))
    }

    /// Returns the memory for a device id and a memory kind.
    ///
    /// # Errors
    /// NOT_FOUND for an unknown device, INVALID_ARGUMENT for an unknown kind of memory.
    pub(crate) fn space(&self, id: DeviceId, kind: &MemoryKind) -> Result<MemorySpace, Status> {
        // Ids are usually numbered from 0.
        let same = usize::try_from(id.0).ok().filter(|at| self.ids.get(*at) == Some(&id));
        let found = same.or_else(|| self.ids.iter().position(|known| *known == id));
        let device = found.ok_or_else(|| {
            let expected = self.ids.iter().map(DeviceId::to_string).collect::<Vec<_>>().join(", ");
            status!(NotFound, "there is no device {id}; expected one of {expected}")
        })?;
        let kind = match kind.name() {
            // Requests that cannot omit the name send an empty one for the default.
            None | Some("") => Kind::Device,
            Some(name) => self.kind(device, name).ok_or_else(|| {
                let kinds =
                    self.first.devices.get(device).into_iter().flat_map(ServedDevice::kinds);
                let kinds = kinds.map(|kind| format!("`{}`", kind.name()));
                status!(
                    InvalidArgument,
                    "device {id} has no memory of the kind `{}`; expected one of {}",
                    name.escape_debug(),
                    kinds.collect::<Vec<_>>().join(", "),
                )
            })?,
        };
        Ok(MemorySpace { device, kind })
    }

    /// Returns the memory kind of this name, if the device at this position has it.
    fn kind(&self, place: usize, name: &str) -> Option<Kind> {
        self.first.devices.get(place)?.kinds().find(|kind| kind.name() == name)
    }

    /// Returns the memories of a sharding's shards, in order.
    ///
    /// # Errors
    /// As [`space`](Self::space); INVALID_ARGUMENT if there is no device or one is named twice.
    pub(crate) fn spaces(&self, sharding: &Sharding) -> Result<Vec<MemorySpace>, Status> {
        let devices = sharding.devices();
        if devices.is_empty() || devices.len() > self.len() {
            return Err(status!(
                InvalidArgument,
                "the sharding names {} devices; expected 1 to {}",
                devices.len(),
                self.len(),
            ));
        }
        let mut spaces = Vec::with_capacity(devices.len());
        for id in devices.ids() {
            let space = self.space(*id, sharding.memory_kind())?;
            if spaces.contains(&space) {
                return Err(status!(InvalidArgument, "the sharding names the device {id} twice"));
            }
            spaces.push(space);
        }
        Ok(spaces)
    }

    /// Returns true if arrays of strings can be created: for devices whose memory can hold the
    /// host's strings.
    pub(crate) fn take_strings(&self) -> bool {
        self.kinds.iter().all(|kind| kind == "cpu")
    }

    /// Returns the answer to the first request of a session.
    ///
    /// # Errors
    /// The errors of the attribute map at this version.
    pub(crate) fn describe(
        &self,
        session_id: u64,
        version: SerDesVersion,
        attributes: &AttributeMap,
    ) -> Result<InitResponse, Status> {
        let encoded = |map: &AttributeMap| map.to_proto(version).map_err(|error| error.to_status());
        let ids: Vec<i32> = self.ids.iter().map(|id| id.0).collect();
        let mut all_devices = Vec::with_capacity(ids.len());
        let mut memories = Vec::with_capacity(ids.len() * Kind::ALL.len());
        for ((id, device), kind) in ids.iter().copied().zip(&self.first.devices).zip(&self.kinds) {
            let attributes = encoded(&attributes_of(device))?;
            all_devices.push(init_response::Device {
                id,
                local_hardware_id: local_hardware_id(device).unwrap_or(id),
                local_device_id: id,
                device_kind: kind.clone(),
                platform_name: self.platform.clone(),
                debug_string: format!("{}Device(id={id}, kind={kind})", self.platform),
                to_string: format!("{}:{id}", self.platform),
                default_memory_id: Some(memory_id(id, Kind::Device)),
                memory_ids: device.kinds().map(|kind| memory_id(id, kind)).collect(),
                attributes: Some(attributes),
            });
            memories.extend(device.kinds().map(|kind| init_response::Memory {
                id: memory_id(id, kind),
                memory_space_kind: kind.name().to_owned(),
                kind_id: kind_id(kind),
                device_ids: vec![id],
                debug_string: format!("{}Memory(kind={}, device={id})", self.platform, kind.name()),
                to_string: format!("{}:{id} {}", self.platform, kind.name()),
            }));
        }
        let session = attributes.iter().map(|(name, value)| (name.to_owned(), value.clone()));
        let attributes: AttributeMap =
            self.first.client.iter().flat_map(client_attributes).chain(session).collect();
        let told = (!attributes.is_empty()).then(|| encoded(&attributes)).transpose()?;
        Ok(InitResponse {
            session_id,
            platform_name: self.platform.clone(),
            platform_version: self.version.clone(),
            platform_id: fingerprint(&self.platform),
            process_index: 0,
            runtime_type: "serdes".to_owned(),
            all_devices,
            primary_device_ids: ids.clone(),
            addressable_device_ids: ids,
            memories,
            client_attributes: told,
        })
    }
}

/// Returns the error for a plug-in without usable devices.
fn none_of(platform: &str) -> ProxyError {
    ProxyError::configuration("the plug-in", platform, "it has no device; a server needs one")
}

/// Returns a device's number among those of its machine, if it has one.
fn local_hardware_id(device: &ServedDevice) -> Option<i32> {
    match device {
        ServedDevice::StreamExecutor(_) => None,
        ServedDevice::Pjrt(device) => device.default.device().local_hardware_id().ok(),
    }
}

/// Returns the size of a device's memory in bytes, if the plug-in gives it.
fn limit_of(device: &PjrtDevice) -> Option<i64> {
    device.default.device().memory_statistics().ok()??.bytes_limit
}

/// Sharded values refer to devices by these ids; clients get NOT_FOUND for others.
impl DeviceLookup for Devices {
    fn look_up(&self, id: DeviceId) -> Result<Reach, DecodeError> {
        match self.space(id, &MemoryKind::unset()) {
            Ok(_) => Ok(Reach::Addressable),
            Err(_) => Err(DecodeError::unknown_device(id.0, StatusCode::NotFound)),
        }
    }
}

/// Returns the attributes of a PJRT client for clients of JAX: the plug-in's, and those for
/// features of the proxy.
fn client_attributes(client: &serdes_pjrt::Client) -> Vec<(String, AttributeValue)> {
    let said = client.plugin().attributes().iter();
    let mut attributes: Vec<_> =
        said.map(|(name, value)| (name.clone(), attribute(value))).collect();
    attributes.extend([
        ("pjrt_c_api_major_version".to_owned(), AttributeValue::Int64(0)),
        ("pjrt_c_api_minor_version".to_owned(), i64::from(client.minor().number()).into()),
        // Without the first, jax cannot export; with the second, it looks for a program cache,
        // which proxies lack.
        ("serialize_with_sdy".to_owned(), true.into()),
        ("supports_executable_serialization".to_owned(), false.into()),
    ]);
    attributes
}

/// Converts a value of a plug-in to an IFRT attribute.
pub(crate) fn attribute(value: &serdes_pjrt::Value) -> AttributeValue {
    match value {
        serdes_pjrt::Value::Text(text) => text.as_str().into(),
        serdes_pjrt::Value::Integer(number) => (*number).into(),
        serdes_pjrt::Value::Integers(numbers) => numbers.clone().into(),
        serdes_pjrt::Value::Float(number) => (*number).into(),
        serdes_pjrt::Value::Bool(value) => (*value).into(),
        // A kind added to the host of plug-ins later.
        other => format!("{other:?}").as_str().into(),
    }
}

/// Returns the attributes of a device, from its description.
fn attributes_of(device: &ServedDevice) -> AttributeMap {
    let device = match device {
        ServedDevice::StreamExecutor(device) => device,
        ServedDevice::Pjrt(device) => {
            let said = device.default.device().attributes().unwrap_or_default();
            return said.iter().map(|(name, value)| (name.as_str(), attribute(value))).collect();
        }
    };
    let description = device.description();
    let texts = [
        ("hardware_name", description.hardware_name),
        ("device_vendor", description.device_vendor),
        ("pci_bus_id", description.pci_bus_id),
    ];
    let texts = texts.into_iter().filter_map(|(name, value)| {
        Some((name, AttributeValue::from(value.filter(|value| !value.is_empty())?.as_str())))
    });
    texts.collect()
}

/// Returns the id of a kind of memory of a device.
const fn memory_id(device: i32, kind: Kind) -> i32 {
    device * Kind::ALL.len() as i32 + kind_id(kind)
}

const fn kind_id(kind: Kind) -> i32 {
    match kind {
        Kind::Device => 0,
        Kind::PinnedHost => 1,
        Kind::UnpinnedHost => 2,
    }
}

/// Returns a hash of a name (FNV-1a) that is the same in every build.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
