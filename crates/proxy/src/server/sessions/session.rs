//! One client's session.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use serdes::{
    codec::{DeserializeOptions, FromProto, Status, Validation},
    ifrt::{AttributeMap, DeserializeShardingOptions},
};
use serdes_device_state::Contents;
use tokio::sync::{oneshot, watch};

use super::{Arrival, Entry, Held, HostBuffers, Table, live_names::LiveNames, quotas::Quotas};
use crate::{
    Agreement,
    server::{
        arrays::{Array, Composition, Memory, MemorySpace, MemoryWriter, Next, Pieces, STEP},
        budget::{Inside, Permit},
        context::Context,
        deadline::within,
        latency::LatencyEstimate,
        metrics::Counted,
        peers::{Caller, Identity},
        promise::Promised,
        scheduler::Turn,
        state::{Names, State},
    },
    status::status,
};

/// One client's session, shared by all its requests.
pub(crate) struct Session {
    /// Secret id of the session: only its client knows it, and it is never logged.
    pub(crate) id: u64,
    /// Number of the session on this server, from 1.
    pub(crate) number: u64,
    pub(crate) agreement: Agreement,
    /// Names of the session's arrays in the state.
    pub(crate) names: Names,
    pub(crate) state: Arc<State>,
    pub(crate) context: Arc<Context>,
    pub(crate) host_buffers: Arc<HostBuffers>,
    /// Identity of the client: only this client can access its host buffers.
    pub(crate) identity: Identity,
    pub(crate) quotas: Quotas,
    turn: Turn,
    table: Mutex<Table>,
    /// Permit for the space that the names of the session's arrays take in a state file.
    live_names: Mutex<LiveNames>,
    options: DeserializeOptions,
    over: watch::Sender<bool>,
    _counted: Counted,
    _held: Permit,
}

/// Direction of a host buffer's transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Store,
    Result,
}

impl Session {
    /// Creates a session of `caller` with the key `id` and the permits `held`.
    pub(crate) fn new(
        context: Arc<Context>,
        state: Arc<State>,
        id: u64,
        agreement: Agreement,
        initialization: &AttributeMap,
        caller: &Caller,
        held: Permit,
    ) -> Self {
        let handles = context.limits.handles_per_session;
        let quotas = Quotas::new(&context, caller);
        let table = Table::new(handles, quotas.handles.clone(), Arc::clone(&context.gauges));
        let options = DeserializeOptions::new()
            .with_validation(Validation::Parity)
            .with(DeserializeShardingOptions::new(Arc::clone(&context.devices)));
        let names = state.names(initialization, caller.identity.owner());
        let live_names = LiveNames::new(quotas.name_bytes.clone(), &names);
        Self {
            id,
            number: context.gauges.sessions_opened.fetch_add(1, Ordering::Relaxed) + 1,
            agreement,
            names,
            state,
            host_buffers: HostBuffers::new(handles, quotas.handles.clone()),
            identity: caller.identity,
            quotas,
            turn: Turn { peer: caller.peer.number, session: id },
            table: Mutex::new(table),
            live_names: Mutex::new(live_names),
            options,
            over: watch::Sender::new(false),
            _counted: context.gauges.hold(|gauges| &gauges.sessions, 1),
            _held: held,
            context,
        }
    }

    /// Returns the session's handles.
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session: waiting requests fail, and objects without other users are freed.
    pub(crate) fn close(&self) {
        self.over.send_replace(true);
        self.host_buffers.close();
        self.table().clear();
        self.live_names().clear();
    }

    /// Returns the permit for the names of the session's arrays.
    pub(crate) fn live_names(&self) -> MutexGuard<'_, LiveNames> {
        self.live_names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends the permit to the names of `more` arrays beyond those in the table.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the header of the state file cannot hold them.
    fn make_names(&self, table: &Table, more: usize) -> Result<(), Status> {
        if !self.state.is_kept() {
            return Ok(());
        }
        self.live_names().make(self.own_count(table) + more)
    }

    /// Gives back the part of the permit that the names of the table's arrays do not need.
    pub(crate) fn shrink_names(&self, table: &Table) {
        self.live_names().shrink(self.own_count(table));
    }

    /// Returns the number of arrays in the table that have no name in the state yet.
    fn own_count(&self, table: &Table) -> usize {
        table.array_count().saturating_sub(self.names.shown().len())
    }

    /// Ends the session's stream, if it has one.
    pub(crate) fn revoke(&self) {
        self.over.send_replace(true);
    }

    /// Returns true if client and server are in one process, without a network.
    pub(crate) fn is_local(&self) -> bool {
        self.identity == Identity::own()
    }

    /// Completes when the session has ended.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as the session.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Returns true if the session holds nothing that would be lost with it.
    pub(crate) fn is_empty(&self) -> bool {
        self.table().is_empty() && self.host_buffers.is_empty()
    }

    /// Decodes a nested value.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it is missing; the error of the type's decoder.
    pub(crate) fn decode<T: FromProto>(&self, proto: Option<&T::Proto>) -> Result<T, Status> {
        let proto =
            proto.ok_or_else(|| status!(InvalidArgument, "the request has no {}", T::NAME))?;
        T::from_proto(proto, &self.options).map_err(|error| error.to_status())
    }

    /// Registers new arrays under their handles.
    ///
    /// # Errors
    /// The errors of [`Table::claim`].
    pub(crate) fn register(&self, wanted: &[u64], arrays: Vec<Array>) -> Result<Vec<u64>, Status> {
        self.exchange(wanted, arrays, std::iter::empty())
    }

    /// Registers new arrays like [`register`](Self::register), and removes the arrays `given`, by
    /// their handles. The exchange is atomic for all readers.
    ///
    /// # Errors
    /// The errors of [`Table::claim`], [`make_names`](Self::make_names) and [`Table::delete`].
    pub(crate) fn exchange<'a>(
        &self,
        wanted: &[u64],
        arrays: Vec<Array>,
        given: impl Iterator<Item = (u64, &'a Arc<Array>)>,
    ) -> Result<Vec<u64>, Status> {
        let mut table = self.table();
        let handles = table.claim(wanted, arrays.len())?;
        self.make_names(&table, arrays.len())?;
        for (handle, array) in handles.iter().zip(arrays) {
            table.insert(*handle, Entry::Live(Arc::new(array)));
        }
        for (handle, array) in given {
            self.state.give(&self.names, handle, array);
            table.delete(handle)?;
        }
        Ok(handles)
    }

    /// Reserves memory for a host buffer, and waits until it is available. A buffer to store counts
    /// for its session as soon as it is announced, and for other sessions as its bytes arrive
    /// ([`arriving`](Self::arriving)).
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there will never be enough, or it took too long.
    pub(crate) async fn hold(&self, bytes: u64, direction: Direction) -> Result<Held, Status> {
        let quota = match direction {
            Direction::Store => &self.quotas.announced,
            Direction::Result => &self.quotas.results,
        };
        // An empty buffer counts as one byte.
        let held = quota.take_within(bytes.max(1), self.room_timeout()).await?;
        Ok(Held::new(held, bytes, &self.context.gauges))
    }

    /// Takes a permit of one byte for a buffer that only passes through the server: its pieces
    /// reserve their own memory.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it took too long.
    pub(crate) async fn pass_through(&self, bytes: u64) -> Result<Held, Status> {
        let held = self.quotas.announced.take_within(1, self.room_timeout()).await?;
        Ok(Held::new(held, bytes, &self.context.gauges))
    }

    /// Reserves memory for bytes of a store that have arrived, and waits until it is available.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it took too long.
    pub(crate) async fn arriving(&self, bytes: u64) -> Result<Permit, Status> {
        self.quotas.arrived.take_within(bytes, self.room_timeout()).await
    }

    fn room_timeout(&self) -> Duration {
        self.context.limits.host_buffer_timeout
    }

    /// Returns the host buffer that an array is made of, once it has arrived or has begun to
    /// arrive.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED if it does not arrive in time.
    pub(crate) async fn arrived(
        &self,
        handle: u64,
        receiver: oneshot::Receiver<Result<Arrival, Status>>,
    ) -> Result<Arrival, Status> {
        let buffer = async {
            receiver.await.unwrap_or_else(|_| Err(status!(Cancelled, "the session is over")))
        };
        within(self.room_timeout(), &format!("host buffer {handle}"), buffer).await
    }

    /// Runs `work`, which waits for a device, when it is this session's turn.
    ///
    /// # Errors
    /// The errors of `work`; INTERNAL if it panics.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        self.context.blocking(self.turn, work).await
    }

    /// Runs `work` like [`blocking`](Self::blocking), but on the calling thread if `latency` says
    /// that such calls are quick.
    ///
    /// # Errors
    /// As [`blocking`](Self::blocking).
    pub(crate) async fn by_latency<T: Send + 'static>(
        &self,
        latency: &LatencyEstimate,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        self.context.by_latency(self.turn, latency, work).await
    }

    /// Runs `work`, which compiles a program, when it is this session's turn.
    ///
    /// # Errors
    /// The errors of `work`; DEADLINE_EXCEEDED if it takes too long; INTERNAL if it panics.
    pub(crate) async fn compiling<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let compiled = self.context.compiling(self.turn, work);
        within(self.context.limits.compilation_timeout, "the program", compiled).await
    }

    /// Runs `work`, which waits for a device and perhaps for its client, when it is this session's
    /// turn.
    ///
    /// # Errors
    /// The errors of `work`; INTERNAL if it panics.
    pub(crate) async fn calling<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        self.context.calling(self.turn, work).await
    }

    /// Runs `work` like [`blocking`](Self::blocking); `work` launches a program and may never
    /// return.
    ///
    /// # Errors
    /// The errors of `work`; INTERNAL if it panics; CANCELLED if it was given up.
    pub(crate) async fn launching<T: Send + 'static>(
        &self,
        given_up: Promised<()>,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        self.context.launching(self.turn, given_up, work).await
    }

    /// Takes a permit to run a program, and waits until one is available.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it took too long.
    pub(crate) async fn execution(&self) -> Result<Permit, Status> {
        self.quotas.executions.take_within(1, self.room_timeout()).await
    }

    /// Reserves memory for what a program sends to its client while it runs, and waits until it is
    /// available.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there will never be enough, or it took too long.
    pub(crate) async fn said(&self, bytes: u64) -> Result<Permit, Status> {
        self.quotas.results.take_within(bytes, self.room_timeout()).await
    }

    /// Reserves memory for what a program needs for itself while it runs. Waits for it as long as
    /// programs run that will give theirs back.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is none, or it took too long.
    pub(crate) async fn inside(&self, bytes: u64) -> Result<Inside, Status> {
        let take = || self.quotas.inside(bytes);
        self.context.program_memory.take(self.room_timeout(), take).await
    }

    /// Returns the memory for a shard. May wait for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(crate) fn writer(
        &self,
        space: MemorySpace,
        contents: &Contents,
    ) -> Result<MemoryWriter, Status> {
        let device = self.context.devices.at(space)?;
        let share = self.quotas.shard(space.kind, contents.bytes())?;
        MemoryWriter::new(device, space.kind, contents, share, &self.context.gauges)
    }

    /// Writes bytes that are not an array into memory of a device. Waits for the device.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(crate) fn write(&self, space: MemorySpace, bytes: &[u8]) -> Result<Memory, Status> {
        let mut writer = self.writer(space, &Contents::of_bytes(bytes.len() as u64))?;
        writer.push(bytes)?;
        writer.finish()
    }

    /// Writes an array into memory of a device as its bytes arrive; other sessions run between the
    /// pieces. `beside` holds the memory that the bytes take on the host until then.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports; the errors of `bytes`.
    pub(crate) async fn pump(
        self: &Arc<Self>,
        space: MemorySpace,
        contents: Contents,
        mut bytes: impl Pieces + 'static,
        beside: Option<Arc<Held>>,
    ) -> Result<Memory, Status> {
        let (session, mut begun) = (Arc::clone(self), None);
        let pump = move || {
            let _beside = &beside;
            let mut writer = match begun.take() {
                Some(writer) => writer,
                None => session.writer(space, &contents)?,
            };
            match bytes.next()? {
                Next::Bytes(piece) => writer.push(&piece)?,
                Next::Working => {}
                Next::End => return writer.finish().map(Some),
            }
            begun = Some(writer);
            Ok(None)
        };
        self.context.in_pieces(self.turn, pump).await
    }

    /// Copies memory into another space; other sessions run between the pieces.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(crate) async fn copy(
        self: &Arc<Self>,
        space: MemorySpace,
        source: Arc<Memory>,
    ) -> Result<Memory, Status> {
        /// Bytes that a device copies at a time.
        const MOST: u64 = 4 * STEP as u64;
        let (session, mut begun) = (Arc::clone(self), None);
        let copy = move || {
            let mut writer = match begun.take() {
                Some(writer) => writer,
                None => session.writer(space, source.contents())?,
            };
            if writer.copy_next(&source, MOST)? {
                return writer.finish().map(Some);
            }
            begun = Some(writer);
            Ok(None)
        };
        self.context.in_pieces(self.turn, copy).await
    }

    /// Composes bytes on the host, in the memory that is `held` for them; other sessions run
    /// between the steps.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; what the plug-in reports.
    pub(crate) async fn compose(
        &self,
        mut composition: Composition,
        held: Held,
    ) -> Result<(Vec<u8>, Held), Status> {
        let mut held = Some(held);
        let compose = move || Ok(composition.step()?.and_then(|bytes| Some((bytes, held.take()?))));
        self.context.in_pieces(self.turn, compose).await
    }
}
