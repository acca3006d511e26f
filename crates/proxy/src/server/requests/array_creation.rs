//! Creates shards from host buffers: written when the buffers arrive, or while they arrive.

use std::sync::Arc;

use prost::Message as _;
use serdes::{
    codec::Status,
    ifrt::{ArraySpec, DType, IndexDomain, Shape},
    proto::xla::ifrt::{
        proto::{ByteStrides, StringArrayContents},
        proxy::ifrt_response::Response,
    },
};
use serdes_device_state::Contents;
use tokio::{sync::oneshot, task::JoinSet};

use super::request::{Reply, Work};
use crate::{
    server::{
        arrays::{
            Array, Buffer, Composition, Item, Memory, MemorySpace, MemoryWriter, Region, STEP,
            Shard, contents_of, item_size, pick_strings, read_strings,
        },
        context::Context,
        promise::Promise,
        sessions::{
            Arrival, Direction, Held, HostBuffer, HostBufferReader, Incoming, Piece, Session,
        },
    },
    status::status,
};

/// A host buffer and its layout, as the source of an array.
struct Source {
    handle: u64,
    dtype: DType,
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
            // Strides of strings have no meaning.
            Item::Strings => Region::dense(shape.dims(), 1)?,
        };
        Ok(Self { handle, dtype, shape, item, region })
    }

    /// Returns true if each shard has the bytes of the whole host buffer in its order, so that they
    /// can be passed on as they arrive.
    fn streams(&self, pending_shards: &[PendingShard]) -> bool {
        matches!(self.item, Item::Bytes(_))
            && self.region.is_dense()
            && pending_shards.iter().all(|pending| *pending.domain.shape() == self.shape)
    }

    /// Returns the host memory in bytes that creating a shard needs, in addition to the buffer.
    fn beside(&self, pending: &PendingShard) -> u64 {
        let whole = *pending.domain.shape() == self.shape;
        match self.item {
            Item::Bytes(_) if whole && self.region.is_dense() => 0,
            Item::Bytes(item) => Region::dense(pending.domain.shape().dims(), item)
                .map_or(0, |region| region.bytes()),
            // Memory of a string in addition to its bytes.
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

/// A shard that waits for its data, which is a part of a source.
struct PendingShard {
    domain: IndexDomain,
    space: MemorySpace,
    promise: Promise<Arc<Memory>>,
}

impl PendingShard {
    /// Contents of the shard.
    ///
    /// # Errors
    /// INTERNAL for elements that devices cannot store.
    fn contents(&self, dtype: DType) -> Result<Contents, Status> {
        contents_of(dtype, self.domain.shape())
    }

    /// Fails shards that cannot be written.
    fn fail(pending_shards: Vec<Self>, status: &Status) {
        for pending in pending_shards {
            pending.promise.keep(Err(status.clone()));
        }
    }
}

/// Arrays of a request, with the shards that wait for their data.
pub(super) struct PendingArrays {
    arrays: Vec<Array>,
    sources: Vec<(Source, Vec<PendingShard>)>,
    /// Receiver of each source, to which the transfer sends the data or their stream.
    arriving: Vec<oneshot::Receiver<Result<Arrival, Status>>>,
    handles: Vec<u64>,
    response: fn(Vec<u64>) -> Response,
}

impl PendingArrays {
    /// Creates an empty set; `response` creates the answer from the arrays' handles.
    pub(super) fn new(response: fn(Vec<u64>) -> Response) -> Self {
        let (arrays, sources) = (Vec::new(), Vec::new());
        Self { arrays, sources, arriving: Vec::new(), handles: Vec::new(), response }
    }

    /// Adds a host buffer; returns its number among the sources.
    ///
    /// # Errors
    /// The errors of invalid strides and element types.
    pub(super) fn source(
        &mut self,
        handle: u64,
        dtype: DType,
        shape: Shape,
        strides: Option<&ByteStrides>,
    ) -> Result<usize, Status> {
        self.sources.push((Source::new(handle, dtype, shape, strides)?, Vec::new()));
        Ok(self.sources.len() - 1)
    }

    /// Adds an array whose shards are parts of the sources.
    ///
    /// # Errors
    /// The errors of a sharding for unknown devices.
    pub(super) fn array(
        &mut self,
        context: &Context,
        spec: ArraySpec,
        parts: Vec<(usize, IndexDomain)>,
    ) -> Result<(), Status> {
        let spaces = context.devices.spaces(spec.sharding())?;
        let mut shards = Vec::with_capacity(spaces.len());
        for (space, (source, domain)) in spaces.into_iter().zip(parts) {
            let (promise, buffer) = Buffer::coming();
            shards.push(Shard { space, shape: domain.shape().clone(), buffer });
            if let Some((_, pending_shards)) = self.sources.get_mut(source) {
                pending_shards.push(PendingShard { domain, space, promise });
            }
        }
        self.arrays.push(Array { spec, shards });
        Ok(())
    }

    /// Registers the arrays under their handles, and requests their host buffers.
    ///
    /// # Errors
    /// The errors of invalid handles; RESOURCE_EXHAUSTED for too many host buffers.
    pub(super) fn register(mut self, session: &Session, wanted: &[u64]) -> Result<Self, Status> {
        self.handles = session.register(wanted, std::mem::take(&mut self.arrays))?;
        for (source, pending_shards) in &self.sources {
            let arriving =
                session.host_buffers.take(source.handle, source.streams(pending_shards))?;
            self.arriving.push(arriving);
        }
        Ok(self)
    }
}

impl Work for PendingArrays {
    async fn run(self, session: Arc<Session>) -> Reply {
        let supplies = self.sources.into_iter().zip(self.arriving);
        let mut supplies = supplies.map(|((source, pending_shards), arriving)| {
            supply(Arc::clone(&session), source, pending_shards, arriving)
        });
        let mut outcome = Ok(());
        if supplies.len() > 1 {
            // Concurrently: a client may send any of the buffers first, and wait for its answer
            // before it sends the next.
            let mut tasks: JoinSet<_> = supplies.collect();
            while let Some(supplied) = tasks.join_next().await {
                outcome = outcome.and(supplied.unwrap_or_else(|error| {
                    Err(status!(Internal, "writing a host buffer failed: {error}"))
                }));
            }
        } else if let Some(supply) = supplies.next() {
            outcome = supply.await;
        }
        outcome.map(|()| (self.response)(self.handles))
    }
}

/// Writes the shards of a source when its data arrive.
async fn supply(
    session: Arc<Session>,
    source: Source,
    pending_shards: Vec<PendingShard>,
    arriving: oneshot::Receiver<Result<Arrival, Status>>,
) -> Result<(), Status> {
    let arrival = session.arrived(source.handle, arriving).await.and_then(|arrival| {
        let size = match &arrival {
            Arrival::Whole(buffer) => buffer.size(),
            Arrival::Stream(incoming) => incoming.size,
        };
        source.check(size).map(|()| arrival)
    });
    let failed = match arrival {
        Ok(Arrival::Whole(buffer)) => return write(&session, source, buffer, pending_shards).await,
        Ok(Arrival::Stream(incoming)) => {
            match stream(&session, incoming, source.dtype, &pending_shards).await {
                Ok(memories) => {
                    for (pending, memory) in pending_shards.into_iter().zip(memories) {
                        pending.promise.keep(Ok(Arc::new(memory)));
                    }
                    return Ok(());
                }
                Err(status) => status,
            }
        }
        Err(status) => status,
    };
    PendingShard::fail(pending_shards, &failed);
    Err(failed)
}

/// Writes a buffer into all shards as it arrives: it is never completely in host memory.
async fn stream(
    session: &Arc<Session>,
    mut incoming: Incoming,
    dtype: DType,
    pending_shards: &[PendingShard],
) -> Result<Vec<Memory>, Status> {
    let (own, size) = (Arc::clone(session), incoming.size);
    let shards = pending_shards.iter().map(|pending| Ok((pending.space, pending.contents(dtype)?)));
    let shards = shards.collect::<Result<Vec<_>, Status>>()?;
    let mut writers = session
        .blocking(move || {
            let writers = shards.iter().map(|(space, contents)| own.writer(*space, contents));
            writers.collect::<Result<Vec<_>, _>>()
        })
        .await?;
    let mut left = size;
    while left > 0 {
        let pieces = incoming.next(STEP).await?;
        left = left.saturating_sub(pieces.iter().map(Piece::size).sum());
        writers = session
            .blocking(move || {
                for writer in &mut writers {
                    for bytes in pieces.iter().flat_map(|piece| &piece.bytes) {
                        writer.push(bytes)?;
                    }
                }
                Ok(writers)
            })
            .await?;
    }
    writers.into_iter().map(MemoryWriter::finish).collect()
}

/// Writes shards from a buffer.
async fn write(
    session: &Arc<Session>,
    source: Source,
    buffer: Arc<HostBuffer>,
    pending_shards: Vec<PendingShard>,
) -> Result<(), Status> {
    // Parts of the buffer are copied on the host until they are on their device, one shard at a
    // time.
    let beside =
        pending_shards.iter().map(|pending| source.beside(pending)).max().unwrap_or_default();
    let beside = match beside {
        0 => None,
        beside => match session.hold(beside, Direction::Result).await {
            Ok(beside) => Some(Arc::new(beside)),
            Err(status) => {
                PendingShard::fail(pending_shards, &status);
                return Err(status);
            }
        },
    };
    let mut outcome = Ok(());
    for pending in pending_shards {
        let written = write_shard(session, &source, &buffer, &pending, &beside).await;
        let written = written.map(Arc::new);
        outcome = outcome.and(written.as_ref().map(drop).map_err(Clone::clone));
        pending.promise.keep(written);
    }
    outcome
}

async fn write_shard(
    session: &Arc<Session>,
    source: &Source,
    buffer: &Arc<HostBuffer>,
    pending: &PendingShard,
    beside: &Option<Arc<Held>>,
) -> Result<Memory, Status> {
    let PendingShard { domain, space, .. } = pending;
    let whole = domain.shape() == &source.shape;
    let reader = HostBufferReader::new(Arc::clone(buffer));
    match source.item {
        Item::Bytes(_) if whole && source.region.is_dense() && buffer.is_small() => {
            let (own, buffer, space) = (Arc::clone(session), Arc::clone(buffer), *space);
            let contents = pending.contents(source.dtype)?;
            let write = move || {
                own.context.transfers.note(|| {
                    let mut writer = own.writer(space, &contents)?;
                    buffer
                        .pieces()
                        .into_iter()
                        .flatten()
                        .try_for_each(|bytes| writer.push(bytes))?;
                    writer.finish()
                })
            };
            session.by_latency(&session.context.transfers, write).await
        }
        Item::Bytes(_) if whole && source.region.is_dense() => {
            session.pump(*space, pending.contents(source.dtype)?, reader, None).await
        }
        Item::Bytes(item) => {
            let region = source.region.clone();
            let part = Composition::part(Box::new(reader), region, domain, item)?;
            let contents = pending.contents(source.dtype)?;
            session.pump(*space, contents, part, beside.clone()).await
        }
        Item::Strings => {
            let (own, buffer) = (Arc::clone(session), Arc::clone(buffer));
            let (shape, domain, space) = (source.shape.clone(), domain.clone(), *space);
            let beside = beside.clone();
            let write = move || {
                let _beside = beside;
                write_strings(&own, &buffer, &shape, &domain, space)
            };
            session.blocking(write).await
        }
    }
}

/// Writes the strings of shards. Waits for the device.
fn write_strings(
    session: &Session,
    buffer: &HostBuffer,
    shape: &Shape,
    domain: &IndexDomain,
    space: MemorySpace,
) -> Result<Memory, Status> {
    let payload = buffer.whole()?;
    let strings = read_strings(payload.clone(), shape)?;
    if domain.shape() == shape {
        return session.write(space, &payload);
    }
    let part = pick_strings(&strings, shape, domain)?;
    session.write(space, &StringArrayContents { strings: part }.encode_to_vec())
}
