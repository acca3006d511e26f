//! Arrays that outlive their sessions: restored from a device state at start, saved into it on request and at stop.
//!
//! A session's array is saved as `<name>/<handle>`, where the name is what the client's initialization data says under
//! [`NAME`], or `session-<number>`; or under the name that the data says for its handle (`serdes.state.name.<handle>`). With a name of its own,
//! a session leaves its arrays behind when it ends; others take theirs with them.
//!
//! A client that opens a session finds what is there in the attributes of the server: `serdes.state.handle.<array>` is the handle of an
//! array (its 64 bits as a signed number), `serdes.state.spec.<array>` its `ArraySpecProto`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prost::Message as _;

use super::{
    Shared,
    array::{Array, Entry, Shard},
    devices::Devices,
    element::{Item, item_size, zeroed},
    memory::{Buffer, Kind, Memory, Place},
    metrics::Gauges,
    read::assemble,
    region::Region,
    session::Session,
    strings::pick_strings,
};
use crate::{
    codec::{Status, ToProto as _},
    device_state::{Error, Reader, Tensor, Versions, WriteOptions},
    ifrt::{
        ArraySpec, AttributeMap, AttributeValue, DType, DeviceId, DeviceList, HloSharding,
        IndexDomain, MemoryKind,
    },
    proto::xla::ifrt::proto::StringArrayContents,
    proxy::{ProxyError, status::status},
};

/// The key of the initialization data under which a client names its session.
const NAME: &str = "serdes.state.name";

/// The state of a server: where it is saved, and the arrays that no session has.
#[derive(Debug, Default)]
pub(super) struct State {
    path: Option<PathBuf>,
    arrays: Mutex<BTreeMap<String, Arc<Array>>>,
    /// One save at a time.
    saving: tokio::sync::Mutex<()>,
}

impl State {
    /// The state in the file at `path`, if there is one already; none without a path.
    ///
    /// # Errors
    /// [`ProxyError::State`] if the file cannot be read, or its arrays do not fit on the devices.
    pub(super) fn open(
        path: Option<PathBuf>,
        devices: &Devices,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, ProxyError> {
        let mut arrays = BTreeMap::new();
        if let Some(path) = path.as_deref().filter(|path| path.exists()) {
            let reader = Reader::open(path)?;
            for tensor in reader.tensors() {
                let tensor = tensor?;
                let array = restore(&tensor, devices, gauges)?;
                arrays.insert(tensor.name().to_owned(), Arc::new(array));
            }
            tracing::info!(path = %path.display(), arrays = arrays.len(), "state restored");
        }
        Ok(Self { path, arrays: Mutex::new(arrays), saving: tokio::sync::Mutex::default() })
    }

    fn arrays(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Array>>> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what is there into a new session's table; gives what the client is told of it.
    ///
    /// # Errors
    /// Those of writing array specs at that version.
    pub(super) fn show(&self, session: &Session) -> Result<AttributeMap, Status> {
        let arrays = self.arrays().clone();
        let mut attributes = AttributeMap::new();
        let mut table = session.table();
        for (name, array) in arrays {
            let spec = array
                .spec
                .to_proto(session.agreement.serdes())
                .map_err(|error| error.to_status())?;
            let handle = match table.claim(&[], 1)?.first() {
                Some(handle) => *handle,
                None => continue,
            };
            table.insert(handle, Entry::Live(array));
            attributes.set(
                format!("serdes.state.handle.{name}"),
                AttributeValue::Int64(handle.cast_signed()),
            );
            attributes.set(
                format!("serdes.state.spec.{name}"),
                AttributeValue::from(spec.encode_to_vec()),
            );
        }
        Ok(attributes)
    }

    /// Keeps the arrays of a session that has a name, when it ends.
    pub(super) fn keep(&self, session: &Session) {
        if self.path.is_some() && session.initialization.get(NAME).is_ok() {
            let named = named_arrays(session);
            self.arrays().extend(named);
        }
    }

    /// Saves all arrays: those of open sessions, and those that none has.
    ///
    /// # Errors
    /// [`ProxyError::State`] if the file cannot be written; [`ProxyError::Configuration`] without a path.
    pub(super) async fn save(&self, shared: &Arc<Shared>) -> Result<usize, ProxyError> {
        let Some(path) = self.path.clone() else {
            return Err(ProxyError::configuration(
                "the state",
                "",
                "the server was started without one",
            ));
        };
        let _one = self.saving.lock().await;
        let mut arrays = self.arrays().clone();
        let sessions: Vec<_> = shared.sessions().values().cloned().collect();
        for session in sessions {
            arrays.extend(named_arrays(&session));
        }
        let mut ready = Vec::with_capacity(arrays.len());
        for (name, array) in arrays {
            match gather(&array).await {
                Ok(parts) => ready.push((name, array, parts)),
                Err(status) => {
                    tracing::warn!(name, code = %status.code(), message = status.message(), "an array cannot be saved");
                }
            }
        }
        let count = ready.len();
        tokio::task::spawn_blocking(move || write(&path, &ready))
            .await
            .map_err(|error| ProxyError::Status(status!(Internal, "saving failed: {error}")))??;
        Ok(count)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

/// The arrays of a session under the names that they are saved with.
fn named_arrays(session: &Session) -> BTreeMap<String, Arc<Array>> {
    let text = |key: &str| match session.initialization.get(key) {
        Ok(AttributeValue::String(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    let prefix = text(NAME).unwrap_or_else(|| format!("session-{}", session.number));
    let live = session.table().live().into_iter();
    // What the server has put there has its name already.
    let own = live.filter(|(handle, _)| *handle < super::array::SERVER_HANDLES);
    own.map(|(handle, array)| {
        let name = text(&format!("{NAME}.{handle}"));
        (name.unwrap_or_else(|| format!("{prefix}/{handle}")), array)
    })
    .collect()
}

type Parts = Vec<(Arc<Memory>, IndexDomain)>;

/// The shards that make the whole array, each part once.
async fn gather(array: &Array) -> Result<Parts, Status> {
    let mut parts: Parts = Vec::new();
    for (shard, domain) in array.shards.iter().zip(array.domains()?) {
        if parts.iter().all(|(_, other)| *other != domain) {
            parts.push((shard.buffer.wait().await?, domain));
        }
    }
    Ok(parts)
}

/// Writes the file. Waits for devices and the disk.
fn write(path: &Path, arrays: &[(String, Arc<Array>, Parts)]) -> Result<(), ProxyError> {
    let mut writer = WriteOptions::new(Versions::current()).create(path)?;
    for (name, array, parts) in arrays {
        let spec = &array.spec;
        let item = item_size(array.dtype())?;
        match (item, &parts[..]) {
            // Straight from the device to the file.
            (Item::Bytes(_), [(memory, domain)])
                if domain.shape() == array.shape() && memory.on_device().is_some() =>
            {
                if let Some(memory) = memory.on_device() {
                    writer.add(name, spec, memory)?;
                }
            }
            (Item::Bytes(item), _) => {
                let region = Region::dense(array.shape().dims(), item)?;
                let bytes = assemble(parts, Item::Bytes(item), &region, array.shape())?;
                writer.add_bytes(name, spec, &bytes)?;
            }
            (Item::Strings, _) => {
                let region = Region::dense(array.shape().dims(), 1)?;
                let payload = assemble(parts, item, &region, array.shape())?;
                let contents = StringArrayContents::decode(&payload[..])
                    .map_err(|error| ProxyError::Status(status!(Internal, "{error}")))?;
                writer.add_strings(name, spec, &contents.strings)?;
            }
        }
    }
    writer.finish()?;
    Ok(())
}

/// Puts an array of a file where its sharding says; where these devices are not there, on the first one.
fn restore(tensor: &Tensor, devices: &Devices, gauges: &Arc<Gauges>) -> Result<Array, ProxyError> {
    use std::io::Read as _;
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

impl From<Error> for ProxyError {
    fn from(error: Error) -> Self {
        Self::State(Box::new(error))
    }
}
