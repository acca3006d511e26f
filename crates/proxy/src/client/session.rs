//! A session with a server: its devices, and operations that upload, download and rearrange arrays.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use serdes::{
    ifrt::{
        ArrayCopySemantics, ArraySpec, AttributeMap, DType, DeviceId, DeviceList, HloSharding,
        MemoryKind, RemapPlan, Shape,
    },
    proto::xla::ifrt::proxy::{
        InitRequest, InitResponse, ifrt_request::Request, ifrt_response::Response,
    },
};

#[cfg(test)]
use super::transport::Extras;
use super::{
    ClientOptions, RemoteArray, RemoteDevice, RemoteMemory,
    array::{byte_size, check_size},
    completing::Completing,
    connection::Connection,
    devices,
};
use crate::{Agreement, ProxyError, requests};

/// A session with a proxy server. It ends when the client and all its arrays are dropped. Clones
/// are the same session.
///
/// All requests of a session go over one connection in the order in which their futures are first
/// polled. The futures may be dropped at any time: the request may then have taken effect or not,
/// and its results are freed. The futures have no time limit: they fail if the server is gone, not
/// if it is slow; `tokio::time::timeout` sets a limit.
///
/// ```no_run
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, MemoryKind, Shape};
/// use serdes_proxy::{Client, ProxyError};
///
/// # async fn example() -> Result<(), ProxyError> {
/// let client = Client::connect("127.0.0.1:8470").await?;
/// println!("{} with {} devices, {}", client.platform(), client.devices().len(), client.agreement());
///
/// // Two rows of three bytes on the first device, a copy of them on the last one.
/// let (first, last) = (client.devices()[0].id, client.devices()[client.devices().len() - 1].id);
/// let array = client.put(DType::U8, &Shape::new([2, 3])?, first, &b"abcdef"[..]).await?;
/// let copy = client.copy(&array, &[last], &MemoryKind::unset()).await?;
/// client.delete(&array).await?;
/// assert_eq!(&client.get(&copy).await?[..], b"abcdef");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) connection: Arc<Connection>,
    platform: Arc<str>,
    devices: Arc<[RemoteDevice]>,
    memories: Arc<[RemoteMemory]>,
    attributes: Arc<AttributeMap>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("agreement", &self.connection.agreement())
            .field("platform", &self.platform)
            .field("devices", &self.devices.len())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the server at `address`: `HOST:PORT`, optionally with the prefix `grpc://`,
    /// `http://` or, for encryption, `https://`.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with).
    pub async fn connect(address: &str) -> Result<Self, ProxyError> {
        Self::connect_with(address, ClientOptions::default()).await
    }

    /// Connects with options.
    ///
    /// # Errors
    /// As [`negotiate`](crate::negotiate); [`ProxyError::Status`] if the server refuses the
    /// session.
    pub async fn connect_with(address: &str, options: ClientOptions) -> Result<Self, ProxyError> {
        let connection = Connection::open(address, &options).await?;
        Self::over(connection, address, options.timeout).await
    }

    /// Like [`connect`](Self::connect), without the features beyond the protocol, or only with
    /// requests in transfers.
    #[cfg(test)]
    pub(crate) async fn connect_as_to_others(
        address: &str,
        takes_requests: bool,
    ) -> Result<Self, ProxyError> {
        let options = ClientOptions::default();
        let extras = Extras { takes_requests, has_small_transfers: false };
        let connection = Connection::open(address, &options).await?.with_extras(extras);
        Self::over(connection, address, options.timeout).await
    }

    /// Returns the id of the session.
    #[cfg(test)]
    pub(crate) fn session_id(&self) -> u64 {
        self.connection.session()
    }

    /// Ends the session's stream of small arrays.
    #[cfg(test)]
    pub(crate) async fn end_small_transfers(&self) {
        let small = self.connection.small_transfers(Some(0));
        small.expect("the server has the stream").end().await;
    }

    /// Creates a client of a session that is open but not yet started.
    async fn over(
        connection: Connection,
        address: &str,
        limit: Duration,
    ) -> Result<Self, ProxyError> {
        let init = connection.request(Request::InitRequest(InitRequest {}));
        let answer = tokio::time::timeout(limit, init).await.unwrap_or_else(|_| {
            Err(ProxyError::Connection {
                address: address.to_owned(),
                reason: format!(
                    "no answer to the first request in {} seconds",
                    limit.as_secs_f64()
                ),
            })
        })?;
        let Response::InitResponse(init) = answer else {
            return Err(ProxyError::unexpected("an init response"));
        };
        connection.start(init.session_id);
        Self::new(Arc::new(connection), init)
    }

    fn new(connection: Arc<Connection>, init: InitResponse) -> Result<Self, ProxyError> {
        let (devices, memories) = devices::of(&init)?;
        Ok(Self {
            connection,
            platform: init.platform_name.into(),
            devices: devices.into(),
            memories: memories.into(),
            attributes: Arc::new(devices::attributes(init.client_attributes.as_ref())?),
        })
    }

    /// Returns the negotiated versions.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        self.connection.agreement()
    }

    /// Returns the name of the server's platform.
    #[must_use]
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// Returns the server's devices.
    #[must_use]
    pub fn devices(&self) -> &[RemoteDevice] {
        &self.devices
    }

    /// Returns the memories of the server's devices.
    #[must_use]
    pub fn memories(&self) -> &[RemoteMemory] {
        &self.memories
    }

    /// Returns an array that the server created under its own handle.
    pub(super) fn known(&self, handle: u64, spec: ArraySpec) -> RemoteArray {
        RemoteArray::new(&self.connection, handle, spec)
    }

    /// Returns further attributes of the server.
    #[must_use]
    pub fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    /// Uploads an array of row-major elements to the default memory of a device. Elements smaller
    /// than a byte take one byte each; strings are a `StringArrayContents` message.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if the number of bytes does not match the elements;
    /// [`ProxyError::Status`] from the server; [`ProxyError::Connection`] if the server is gone.
    pub async fn put(
        &self,
        dtype: DType,
        shape: &Shape,
        device: DeviceId,
        bytes: impl Into<Bytes>,
    ) -> Result<RemoteArray, ProxyError> {
        let sharding =
            HloSharding::replicated(DeviceList::from(device), self.default_memory(device))?;
        self.put_as(&ArraySpec::new(dtype, shape.clone(), sharding), bytes).await
    }

    fn default_memory(&self, device: DeviceId) -> MemoryKind {
        let known = self.devices.iter().find(|known| known.id == device);
        let memory = known.and_then(|known| known.default_memory);
        let memory = self.memories.iter().find(|known| Some(known.id) == memory);
        memory.map_or_else(MemoryKind::unset, |memory| memory.kind.clone())
    }

    /// Uploads an array of row-major elements to the devices of a sharding; the server splits it.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn put_as(
        &self,
        spec: &ArraySpec,
        bytes: impl Into<Bytes>,
    ) -> Result<RemoteArray, ProxyError> {
        let bytes = bytes.into();
        check_size(spec.dtype(), spec.shape(), &bytes)?;
        let connection = &self.connection;
        let handle = connection.new_handle();
        let strides = requests::row_major_strides(spec.dtype(), spec.shape());
        let version = self.agreement().serdes();
        let request = requests::make_array(
            spec.dtype(),
            spec.shape(),
            spec.sharding(),
            strides,
            handle,
            version,
        )?;
        let array = RemoteArray::new(connection, handle, spec.clone());
        let request = Request::MakeArrayFromHostBufferRequest(request);
        if connection.takes_requests() {
            let own = Arc::clone(connection);
            // If this future is dropped, the new array is deleted, but not before it is created.
            return Completing::new(connection.runtime(), async move {
                match own.store(handle, bytes, Some(request)).await {
                    Ok(()) => Ok(array),
                    Err(error) => Err(own.reason(error).await),
                }
            })
            .await;
        }
        let made = connection.request(request);
        let stored = connection.store(handle, bytes, None);
        tokio::try_join!(made, stored)?;
        Ok(array)
    }

    /// Uploads an array as shards: the row-major elements of each, in the order of the devices.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`ProxyError::Value`] if the sharding does not define its shards;
    /// [`ProxyError::Configuration`] for a wrong number of shards or of bytes in one.
    pub async fn put_shards(
        &self,
        spec: &ArraySpec,
        shards: Vec<Bytes>,
    ) -> Result<RemoteArray, ProxyError> {
        let connection = &self.connection;
        let parts = spec.sharding().disassemble(spec.shape())?;
        if parts.len() != shards.len() || shards.is_empty() {
            return Err(ProxyError::configuration(
                "the list of shards",
                format!("{} shards", shards.len()),
                format!("the sharding has {}", parts.len()),
            ));
        }
        for ((shape, _), bytes) in parts.iter().zip(&shards) {
            check_size(spec.dtype(), shape, bytes)?;
        }
        let handles: Vec<u64> = shards.iter().map(|_| connection.new_handle()).collect();
        let handle = handles.first().copied().unwrap_or_default();
        let parts: Vec<_> =
            parts.into_iter().map(|(shape, _)| shape).zip(handles.iter().copied()).collect();
        let request =
            requests::make_array_of_shards(spec, &parts, handle, self.agreement().serdes())?;
        let array = RemoteArray::new(connection, handle, spec.clone());
        let made = connection.request(Request::MakeArraysFromHostBufferShardsRequest(request));
        let stored = async {
            for (handle, bytes) in handles.iter().zip(shards) {
                connection.store(*handle, bytes, None).await?;
            }
            Ok(())
        };
        tokio::try_join!(made, stored)?;
        Ok(array)
    }

    /// Downloads the elements of an array in row-major order. Elements smaller than a byte take one
    /// byte each; strings are a `StringArrayContents` message.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`ProxyError::Protocol`] if the server sends a wrong number of bytes.
    pub async fn get(&self, array: &RemoteArray) -> Result<Bytes, ProxyError> {
        // If every device has the whole array, one shard suffices: the real servers copy from only
        // one.
        let shard =
            if array.sharding().devices().len() > 1 && array.sharding().is_fully_replicated() {
                Some(self.replicated_shard(array).await?)
            } else {
                None
            };
        let expected = byte_size(array.dtype(), array.shape());
        self.connection.fetch(shard.as_ref().unwrap_or(array).handle(), expected).await
    }

    async fn replicated_shard(&self, array: &RemoteArray) -> Result<RemoteArray, ProxyError> {
        let handle = self.connection.new_handle();
        let devices = DeviceList::new(array.sharding().devices().ids().iter().copied().take(1));
        let sharding = HloSharding::replicated(devices, array.sharding().memory_kind().clone())?;
        let spec = ArraySpec::new(array.dtype(), array.shape().clone(), sharding);
        let result = RemoteArray::new(&self.connection, handle, spec);
        let request = requests::fully_replicated_shard(array.handle(), handle);
        self.connection.request(Request::FullyReplicatedShardRequest(request)).await?;
        Ok(result)
    }

    /// Waits until an array is available.
    ///
    /// # Errors
    /// The reason why the array will never be available.
    pub async fn wait(&self, array: &RemoteArray) -> Result<(), ProxyError> {
        let request = requests::check_value_ready(array.handle());
        self.connection.request(Request::CheckValueReadyRequest(request)).await.map(drop)
    }

    /// Copies an array to other devices or another kind of memory; an unset kind keeps the current
    /// one.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn copy(
        &self,
        array: &RemoteArray,
        devices: &[DeviceId],
        memory_kind: &MemoryKind,
    ) -> Result<RemoteArray, ProxyError> {
        let handle = self.connection.new_handle();
        let list = DeviceList::new(devices.iter().copied());
        let sharding = array
            .sharding()
            .with_device_assignment(Some(list), memory_kind.name().map(MemoryKind::new))?;
        let spec = ArraySpec::new(array.dtype(), array.shape().clone(), sharding);
        let result = RemoteArray::new(&self.connection, handle, spec);
        let request =
            requests::copy_arrays(vec![array.handle()], devices, memory_kind, vec![handle]);
        self.connection.request(Request::CopyArraysRequest(request)).await?;
        Ok(result)
    }

    /// Splits an array into its shards, as arrays on one device each.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`ProxyError::Value`] if the sharding does not define its shards.
    pub async fn disassemble(&self, array: &RemoteArray) -> Result<Vec<RemoteArray>, ProxyError> {
        let parts = array.sharding().disassemble(array.shape())?;
        let results: Vec<RemoteArray> = parts
            .into_iter()
            .map(|(shape, sharding)| {
                let handle = self.connection.new_handle();
                RemoteArray::new(
                    &self.connection,
                    handle,
                    ArraySpec::new(array.dtype(), shape, sharding),
                )
            })
            .collect();
        let handles = results.iter().map(RemoteArray::handle).collect();
        let request = requests::disassemble(array.handle(), handles);
        self.connection.request(Request::DisassembleIntoSingleDeviceArraysRequest(request)).await?;
        Ok(results)
    }

    /// Creates an array from shards, in the order of the sharding's devices.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn assemble(
        &self,
        spec: &ArraySpec,
        shards: &[RemoteArray],
    ) -> Result<RemoteArray, ProxyError> {
        let handle = self.connection.new_handle();
        let shards = shards.iter().map(RemoteArray::handle).collect();
        let request = requests::assemble(spec, shards, handle, self.agreement().serdes())?;
        let result = RemoteArray::new(&self.connection, handle, spec.clone());
        self.connection
            .request(Request::AssembleArrayFromSingleDeviceArraysRequest(request))
            .await?;
        Ok(result)
    }

    /// Creates arrays from the shards of others, without copying where possible.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn remap(
        &self,
        plan: &RemapPlan,
        arrays: &[RemoteArray],
        semantics: ArrayCopySemantics,
    ) -> Result<Vec<RemoteArray>, ProxyError> {
        let results: Vec<RemoteArray> = plan
            .output_specs()
            .iter()
            .map(|spec| {
                RemoteArray::new(&self.connection, self.connection.new_handle(), spec.clone())
            })
            .collect();
        let request = requests::remap_arrays(
            plan,
            arrays.iter().map(RemoteArray::handle).collect(),
            semantics,
            results.iter().map(RemoteArray::handle).collect(),
            self.agreement().serdes(),
        )?;
        self.connection.request(Request::RemapArraysRequest(request)).await?;
        Ok(results)
    }

    /// Returns the layout, as text, of shards of this shape on a device.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: DeviceId,
        memory_kind: &MemoryKind,
    ) -> Result<String, ProxyError> {
        let version = self.agreement().serdes();
        let request = requests::default_layout(dtype, shard_shape, device, memory_kind, version)?;
        match self.connection.request(Request::GetDefaultLayoutRequest(request)).await? {
            Response::GetDefaultLayoutResponse(response) => {
                Ok(String::from_utf8_lossy(&response.serialized_pjrt_layout).into_owned())
            }
            _ => Err(ProxyError::unexpected("a layout")),
        }
    }

    /// Deletes an array at once, even if other clients still use it.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn delete(&self, array: &RemoteArray) -> Result<(), ProxyError> {
        self.connection.delete(array.handle()).await
    }
}
