//! Arrays out of host buffers, and host buffers out of arrays.

use std::{sync::Arc, time::Duration};

use prost::Message as _;
use tokio::{sync::oneshot, task::JoinSet};

use super::{
    array::{Array, Shard, short},
    element::{Item, item_size, zeroed},
    host_buffer::{Arrival, HostBuffer, Incoming},
    memory::{Buffer, Memory, MemoryWriter, Place, Promise},
    region::Region,
    session::{Answer, Direction, Session},
    strings::{pick_strings, read_strings},
};
use crate::{
    codec::Status,
    ifrt::{ArraySpec, DType, IndexDomain, Layout, Shape, Sharding},
    proto::xla::ifrt::{
        proto::{ByteStrides, StringArrayContents},
        proxy::{
            MakeArrayFromHostBufferRequest, MakeArrayFromHostBufferResponse,
            MakeArraysFromHostBufferShardsRequest, MakeArraysFromHostBufferShardsResponse,
            MakeErrorArraysRequest, MakeErrorArraysResponse, ifrt_response::Response,
        },
    },
    proxy::status::{from_proto, status},
};

/// A host buffer as an array is made of it.
struct Source {
    handle: u64,
    shape: Shape,
    item: Item,
    region: Region,
}

impl Source {
    fn new(
        handle: u64,
        dtype: DType,
        shape: Shape,
        strides: Option<&ByteStrides>,
    ) -> Result<Self, Status> {
        let item = item_size(dtype)?;
        let region = match item {
            Item::Bytes(bytes) => {
                Region::new(shape.dims(), bytes, strides.map(|strides| &strides.strides[..]))?
            }
            // Strides of strings say nothing.
            Item::Strings => Region::dense(shape.dims(), 1)?,
        };
        Ok(Self { handle, shape, item, region })
    }

    /// Whether its bytes are those of each of the shards, in their order.
    fn streams(&self, makings: &[Making]) -> bool {
        matches!(self.item, Item::Bytes(_))
            && self.region.is_dense()
            && makings.iter().all(|making| *making.domain.shape() == self.shape)
    }

    /// Bytes of the host that are needed to make a shard, beside the buffer.
    fn beside(&self, making: &Making) -> u64 {
        let whole = *making.domain.shape() == self.shape;
        match self.item {
            Item::Bytes(_) if whole && self.region.is_dense() => 0,
            Item::Bytes(item) => {
                Region::dense(making.domain.shape().dims(), item).map_or(0, |region| region.bytes())
            }
            // What is kept of a string beside its bytes.
            Item::Strings => {
                self.region.bytes().saturating_mul(2 * size_of::<bytes::Bytes>() as u64)
            }
        }
    }

    /// # Errors
    /// INVALID_ARGUMENT if the buffer has another size.
    fn check(&self, size: u64) -> Result<(), Status> {
        if self.item == Item::Strings || size == self.region.bytes() {
            return Ok(());
        }
        Err(status!(
            InvalidArgument,
            "host buffer {} has {size} bytes; expected {} for the shape {} with these strides",
            self.handle,
            self.region.bytes(),
            self.shape,
        ))
    }
}

/// A shard to be written: a part of a source.
struct Making {
    source: usize,
    domain: IndexDomain,
    place: Place,
    promise: Promise,
}

/// Bytes that are written to a device at a time.
const STEP: usize = 4 << 20;

/// Arrays to be made at once.
#[derive(Default)]
struct Plan {
    arrays: Vec<Array>,
    sources: Vec<Source>,
    makings: Vec<Making>,
}

impl Session {
    /// One array of one host buffer, of which each shard has a part.
    pub(super) fn make_array(self: &Arc<Self>, request: MakeArrayFromHostBufferRequest) -> Answer {
        let wanted = [request.array_handle.unwrap_or_default()];
        let host_buffer = request.host_buffer_handle;
        let answer = self.creating(&wanted, || {
            let dtype: DType = self.decode(request.dtype.as_ref())?;
            let shape: Shape = self.decode(request.shape.as_ref())?;
            let sharding: Sharding = self.decode(request.sharding.as_ref())?;
            let mut spec = ArraySpec::new(dtype, shape.clone(), sharding);
            if let Some(layout) = &request.layout
                && let Layout::PjRt(layout) = self.decode::<Layout>(Some(layout))?
            {
                spec = spec.with_layout(layout);
            }
            self.check_dtype(dtype)?;
            let mut plan = Plan::default();
            let domains = domains_of(&spec)?;
            plan.sources.push(Source::new(
                host_buffer,
                dtype,
                shape,
                request.byte_strides.as_ref(),
            )?);
            let sources = domains.into_iter().map(|domain| (0, domain)).collect();
            self.plan(&mut plan, spec, sources)?;
            self.carry_out(&wanted, plan, |handles| {
                let array_handle = handles.first().copied().unwrap_or_default();
                Response::MakeArrayFromHostBufferResponse(MakeArrayFromHostBufferResponse {
                    array_handle,
                })
            })
        });
        if matches!(answer, Answer::Now(Err(_))) {
            self.host_buffers.discard(host_buffer);
        }
        answer
    }

    /// Arrays of several host buffers, each of which is one or more whole shards.
    pub(super) fn make_arrays(
        self: &Arc<Self>,
        request: MakeArraysFromHostBufferShardsRequest,
    ) -> Answer {
        let wanted = request.array_handles;
        let host_buffers: Vec<u64> = request
            .specs
            .iter()
            .flat_map(|spec| spec.host_buffers.iter().map(|buffer| buffer.host_buffer_handle))
            .collect();
        let answer = self.creating(&wanted, || {
            let mut plan = Plan::default();
            for spec in &request.specs {
                let array: ArraySpec = self.decode(spec.array_spec.as_ref())?;
                self.check_dtype(array.dtype())?;
                if spec.addressable_shard_indices.len() != spec.host_buffers.len() {
                    return Err(status!(
                        InvalidArgument,
                        "found {} lists of shards; expected {}, one for each host buffer",
                        spec.addressable_shard_indices.len(),
                        spec.host_buffers.len(),
                    ));
                }
                let mut sources = vec![None; array.sharding().devices().len()];
                for (indices, buffer) in spec.addressable_shard_indices.iter().zip(&spec.host_buffers) {
                    let dtype: DType = self.decode(buffer.dtype.as_ref())?;
                    let shape: Shape = self.decode(buffer.shape.as_ref())?;
                    if dtype != array.dtype() {
                        return Err(status!(
                            InvalidArgument,
                            "host buffer {} holds {dtype}; expected {}, as the array",
                            buffer.host_buffer_handle,
                            array.dtype(),
                        ));
                    }
                    for index in &indices.indices {
                        let count = sources.len();
                        let slot = usize::try_from(*index).ok().and_then(|index| sources.get_mut(index));
                        let slot = slot.ok_or_else(|| {
                            status!(InvalidArgument, "there is no shard {index}; the array has {count}")
                        })?;
                        let domain = IndexDomain::whole(shape.clone());
                        if slot.replace((plan.sources.len(), domain)).is_some() {
                            return Err(status!(InvalidArgument, "shard {index} is given twice"));
                        }
                    }
                    plan.sources.push(Source::new(
                        buffer.host_buffer_handle,
                        dtype,
                        shape,
                        buffer.byte_strides.as_ref(),
                    )?);
                }
                let given = sources.iter().flatten().count();
                let sources: Vec<_> = sources.into_iter().flatten().collect();
                let expected = array.sharding().devices().len();
                if given != expected {
                    return Err(status!(InvalidArgument, "found {given} shards; expected {expected}, one for each device"));
                }
                if let Ok(parts) = array.sharding().disassemble(array.shape()) {
                    for (index, ((expected, _), (_, found))) in parts.iter().zip(&sources).enumerate() {
                        if expected != found.shape() {
                            return Err(status!(
                                InvalidArgument,
                                "the host buffer of shard {index} has the shape {}; expected {expected}",
                                found.shape(),
                            ));
                        }
                    }
                }
                self.plan(&mut plan, array, sources)?;
            }
            self.carry_out(&wanted, plan, |array_handles| {
                Response::MakeArraysFromHostBufferShardsResponse(MakeArraysFromHostBufferShardsResponse {
                    array_handles,
                })
            })
        });
        if matches!(answer, Answer::Now(Err(_))) {
            for handle in host_buffers {
                self.host_buffers.discard(handle);
            }
        }
        answer
    }

    /// Arrays that have failed already.
    pub(super) fn make_error_arrays(&self, request: MakeErrorArraysRequest) -> Answer {
        let wanted = request.array_handles;
        self.creating(&wanted, || {
            let error = request.error.as_ref().and_then(from_proto);
            let error = short(&error.ok_or_else(|| {
                status!(InvalidArgument, "the request has no error; expected one that is not OK")
            })?);
            let mut arrays = Vec::with_capacity(request.array_specs.len());
            for spec in &request.array_specs {
                let spec: ArraySpec = self.decode(Some(spec))?;
                // A sharding over more devices than there are is refused before it is asked for as many shapes.
                let places = self.shared.devices.places(spec.sharding())?;
                let shapes = shard_shapes(&spec);
                let shards = places.into_iter().zip(shapes).map(|(place, shape)| Shard {
                    place,
                    shape,
                    buffer: Buffer::failed(error.clone()),
                });
                arrays.push(Array { shards: shards.collect(), spec });
            }
            let array_handles = self.register(&wanted, arrays)?;
            Ok(Answer::Now(Ok(Response::MakeErrorArraysResponse(MakeErrorArraysResponse {
                array_handles,
            }))))
        })
    }

    /// # Errors
    /// UNIMPLEMENTED for strings on devices that do not take them, and for types without data.
    fn check_dtype(&self, dtype: DType) -> Result<(), Status> {
        if item_size(dtype)? == Item::Strings && !self.shared.devices.take_strings() {
            return Err(status!(
                Unimplemented,
                "arrays of strings need a device of the kind `cpu`"
            ));
        }
        Ok(())
    }

    /// Adds an array whose shards are those parts of the plan's sources.
    fn plan(
        &self,
        plan: &mut Plan,
        spec: ArraySpec,
        sources: Vec<(usize, IndexDomain)>,
    ) -> Result<(), Status> {
        let places = self.shared.devices.places(spec.sharding())?;
        let mut shards = Vec::with_capacity(places.len());
        for (place, (source, domain)) in places.into_iter().zip(sources) {
            let (promise, buffer) = Buffer::promised();
            shards.push(Shard { place, shape: domain.shape().clone(), buffer });
            plan.makings.push(Making { source, domain, place, promise });
        }
        plan.arrays.push(Array { spec, shards });
        Ok(())
    }

    /// Registers the arrays, and writes their shards when the host buffers have arrived.
    fn carry_out(
        self: &Arc<Self>,
        wanted: &[u64],
        plan: Plan,
        response: impl FnOnce(Vec<u64>) -> Response + Send + 'static,
    ) -> Result<Answer, Status> {
        let handles = self.register(wanted, plan.arrays)?;
        let limit = self.shared.limits.host_buffer_timeout;
        let Plan { sources, mut makings, .. } = plan;
        let mut supplies = Vec::with_capacity(sources.len());
        for (number, source) in sources.into_iter().enumerate() {
            let (own, others) = makings.into_iter().partition(|making| making.source == number);
            makings = others;
            let arriving = self.host_buffers.take(source.handle, source.streams(&own))?;
            supplies.push(Arc::clone(self).supply(limit, source, own, arriving));
        }
        Ok(Answer::later(async move {
            let mut outcome = Ok(());
            if supplies.len() > 1 {
                // At the same time: a client may send any of the buffers first, and wait for its answer before it sends the next.
                let mut tasks: JoinSet<_> = supplies.into_iter().collect();
                while let Some(supplied) = tasks.join_next().await {
                    outcome = outcome.and(supplied.unwrap_or_else(|error| {
                        Err(status!(Internal, "writing a host buffer failed: {error}"))
                    }));
                }
            } else {
                for supply in supplies {
                    outcome = supply.await;
                }
            }
            outcome.map(|()| response(handles))
        }))
    }

    /// Writes the shards that are made of a source, when it comes.
    async fn supply(
        self: Arc<Self>,
        limit: Duration,
        source: Source,
        makings: Vec<Making>,
        arriving: oneshot::Receiver<Result<Arrival, Status>>,
    ) -> Result<(), Status> {
        let arrival = Self::arrived(limit, source.handle, arriving).await.and_then(|arrival| {
            let size = match &arrival {
                Arrival::Whole(buffer) => buffer.size(),
                Arrival::Stream(incoming) => incoming.size,
            };
            source.check(size).map(|()| arrival)
        });
        let failed = match arrival {
            Ok(Arrival::Whole(buffer)) => return self.write(source, buffer, makings).await,
            Ok(Arrival::Stream(incoming)) => match self.stream(incoming, &makings).await {
                Ok(memories) => {
                    for (making, memory) in makings.into_iter().zip(memories) {
                        making.promise.keep(Ok(Arc::new(memory)));
                    }
                    return Ok(());
                }
                Err(status) => status,
            },
            Err(status) => status,
        };
        for making in makings {
            making.promise.keep(Err(failed.clone()));
        }
        Err(failed)
    }

    /// Writes a buffer into all shards as it comes: it is never in the memory of the host as a whole.
    async fn stream(
        self: &Arc<Self>,
        mut incoming: Incoming,
        makings: &[Making],
    ) -> Result<Vec<Memory>, Status> {
        let (session, size) = (Arc::clone(self), incoming.size);
        let places: Vec<Place> = makings.iter().map(|making| making.place).collect();
        let mut writers = self
            .blocking(move || {
                let writers = places.into_iter().map(|place| session.writer(place, size));
                writers.collect::<Result<Vec<_>, _>>()
            })
            .await?;
        let mut left = size;
        while left > 0 {
            let pieces = incoming.next(STEP).await?;
            left = left.saturating_sub(pieces.iter().map(|(piece, _)| piece.len() as u64).sum());
            writers = self
                .blocking(move || {
                    for writer in &mut writers {
                        for (piece, _) in &pieces {
                            writer.push(piece)?;
                        }
                    }
                    Ok(writers)
                })
                .await?;
        }
        writers.into_iter().map(MemoryWriter::finish).collect()
    }

    /// Writes shards out of a buffer.
    async fn write(
        self: &Arc<Self>,
        source: Source,
        buffer: Arc<HostBuffer>,
        makings: Vec<Making>,
    ) -> Result<(), Status> {
        let session = Arc::clone(self);
        // What is cut out of the buffer lies beside it until it is on its device, one shard after the other.
        let beside = makings.iter().map(|making| source.beside(making)).max().unwrap_or_default();
        let beside = match beside {
            0 => Ok(None),
            beside => self.hold(beside, Direction::Result).await.map(Some),
        };
        let beside = match beside {
            Ok(beside) => beside,
            Err(status) => {
                for making in makings {
                    making.promise.keep(Err(status.clone()));
                }
                return Err(status);
            }
        };
        self.blocking(move || {
            let _beside = beside;
            let mut outcome = Ok(());
            for making in makings {
                let written = session.write_shard(&source, &buffer, &making).map(Arc::new);
                outcome = outcome.and(written.as_ref().map(drop).map_err(Clone::clone));
                making.promise.keep(written);
            }
            outcome
        })
        .await
    }

    /// Waits for the device.
    fn write_shard(
        &self,
        source: &Source,
        buffer: &HostBuffer,
        making: &Making,
    ) -> Result<Memory, Status> {
        let Making { domain, place, .. } = making;
        let whole = domain.shape() == &source.shape;
        match source.item {
            Item::Bytes(_) if whole && source.region.is_dense() => {
                let pieces = buffer.pieces()?;
                self.store(*place, buffer.size(), pieces.iter().map(|piece| &piece[..]))
            }
            Item::Bytes(item) => {
                let shape = domain.shape().dims();
                let target = Region::dense(shape, item)?;
                let mut bytes = zeroed(target.bytes())?;
                let (origin, zero) = (domain.origin().elements(), vec![0; shape.len()]);
                source.region.copy_block(
                    &buffer.whole()?,
                    origin,
                    &target,
                    &mut bytes,
                    &zero,
                    shape,
                )?;
                self.store(*place, target.bytes(), [&bytes[..]])
            }
            Item::Strings => {
                let payload = buffer.whole()?;
                let strings = read_strings(payload.clone(), &source.shape)?;
                if whole {
                    return self.store(*place, payload.len() as u64, [&payload[..]]);
                }
                let part = pick_strings(&strings, &source.shape, domain)?;
                let payload = StringArrayContents { strings: part }.encode_to_vec();
                self.store(*place, payload.len() as u64, [&payload[..]])
            }
        }
    }

    /// Writes bytes to a place. Waits for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(super) fn store<'a>(
        &self,
        place: Place,
        size: u64,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Memory, Status> {
        let mut writer = self.writer(place, size)?;
        for piece in pieces {
            writer.push(piece)?;
        }
        writer.finish()
    }

    /// Memory for a shard. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    fn writer(&self, place: Place, size: u64) -> Result<MemoryWriter, Status> {
        let device = self.shared.devices.at(place)?;
        let share = self.shard_share(place.kind, size)?;
        MemoryWriter::new(device, place.kind, size, share, &self.shared.gauges)
    }
}

/// Which part of the array each of its devices holds.
///
/// # Errors
/// INVALID_ARGUMENT if the sharding does not say it.
fn domains_of(spec: &ArraySpec) -> Result<Vec<IndexDomain>, Status> {
    let sharding = spec.sharding();
    match sharding.index_domains(spec.shape()) {
        Ok(domains) => Ok(domains),
        // One device has it all, whatever the kind of sharding.
        Err(_) if sharding.devices().len() == 1 => {
            Ok(vec![IndexDomain::whole(spec.shape().clone())])
        }
        Err(error) => Err(error.to_status()),
    }
}

/// The shape of each shard, or of the array where the sharding does not say it.
fn shard_shapes(spec: &ArraySpec) -> Vec<Shape> {
    match spec.sharding().disassemble(spec.shape()) {
        Ok(parts) => parts.into_iter().map(|(shape, _)| shape).collect(),
        Err(_) => vec![spec.shape().clone(); spec.sharding().devices().len()],
    }
}
