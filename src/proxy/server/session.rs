//! A session: one client's handles, and what each request does to them.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{oneshot, watch};

use super::{
    Shared,
    array::{Array, Entry, Outcome, Table},
    budget::{Account, Budget, Holding, Share},
    frames::{Terms, take},
    grpc::Caller,
    host_buffer::{Arrival, Held, HostBuffers},
    memory::Kind,
    metrics::Counted,
    peers::Identity,
    state::Names,
    turns::Turn,
};
use crate::{
    codec::{DecodeError, DeserializeOptions, FromProto, Status, Validation},
    ifrt::xla::Layout,
    ifrt::{
        AttributeMap, DType, DeserializeShardingOptions, DeviceId, MemoryKind, PjRtLayout, Shape,
    },
    proto::xla::ifrt::proxy::{
        CheckFutureResponse, CheckValueReadyResponse, DeleteArrayResponse, DestructArrayResponse,
        GetDefaultDeviceAssignmentRequest, GetDefaultDeviceAssignmentResponse,
        GetDefaultLayoutRequest, GetDefaultLayoutResponse, IsArrayDeletedResponse,
        ifrt_request::Request, ifrt_response::Response,
    },
    proto::xla::{DeviceAssignmentProto, device_assignment_proto::ComputationDevice},
    proxy::{Agreement, status::status},
};

/// What a request comes to.
pub(super) type Reply = Result<Response, Status>;

/// The answer to a request: at once, or when something else has happened.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, while its request is answered")]
pub(super) enum Answer {
    Now(Reply),
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl Answer {
    pub(super) fn later(future: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }
}

/// One client's handles.
pub(super) struct Session {
    /// The key to it: nobody else may know it, and it is in no log.
    pub(super) id: u64,
    /// Its place among all sessions, from 1 on.
    pub(super) number: u64,
    pub(super) agreement: Agreement,
    pub(super) names: Names,
    pub(super) shared: Arc<Shared>,
    pub(super) host_buffers: Arc<HostBuffers>,
    /// Whose it is: nobody else reaches its host buffers.
    pub(super) identity: Identity,
    turn: Turn,
    table: Mutex<Table>,
    accounts: Accounts,
    options: DeserializeOptions,
    over: watch::Sender<bool>,
    _counted: Counted,
    _held: Holding,
}

/// Where what a session holds is counted.
struct Accounts {
    /// Stores that have been announced: of the session alone, so that it can finish all that it has begun.
    announced: Account,
    /// What has arrived of them: of its peer, and of all.
    arrived: Account,
    /// Requests larger than most.
    messages: Account,
    results: Account,
    arrays: Account,
    pinned: Account,
    requests: Account,
}

impl Accounts {
    fn new(shared: &Shared, caller: &Caller) -> Self {
        let (limits, all, peer) = (&shared.limits, &shared.budgets, &caller.peer);
        let account = |levels: &[&Budget]| {
            let levels = levels.iter().map(|level| (*level).clone()).collect();
            Account::new(levels, Some(Arc::clone(peer)))
        };
        let host = || Budget::bytes("session-host-bytes", limits.session_host_bytes);
        let [stores, results] = [host(), host()];
        let arrays = Budget::bytes("session-array-bytes", limits.session_array_bytes);
        let requests = Budget::count("session-requests", limits.requests_per_session.max(1));
        let (peer_stores, peer_results) = (&peer.host[0], &peer.host[1]);
        let (all_stores, all_results) = (&all.host[0], &all.host[1]);
        Self {
            announced: account(&[&stores]),
            arrived: account(&[peer_stores, all_stores]),
            messages: account(&[&stores, peer_stores, all_stores]),
            results: account(&[&results, peer_results, all_results]),
            arrays: account(&[&arrays, &peer.arrays, &all.arrays]),
            pinned: account(&[&peer.pinned, &all.pinned]),
            requests: account(&[&requests, &peer.requests, &all.requests]),
        }
    }
}

/// In which direction a host buffer goes.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Store = 0,
    Result = 1,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: u64,
        agreement: Agreement,
        initialization: &AttributeMap,
        caller: &Caller,
        held: Holding,
    ) -> Self {
        let limits = &shared.limits;
        let levels = vec![caller.peer.handles.clone(), shared.budgets.handles.clone()];
        let handles = Account::new(levels, Some(Arc::clone(&caller.peer)));
        let table =
            Table::new(limits.handles_per_session, handles.clone(), Arc::clone(&shared.gauges));
        let options = DeserializeOptions::new()
            .with_validation(Validation::Parity)
            .with(DeserializeShardingOptions::new(Arc::clone(&shared.devices)));
        Self {
            id,
            number: shared.gauges.sessions_opened.fetch_add(1, Ordering::Relaxed) + 1,
            agreement,
            names: shared.state.names(initialization, caller.identity.owner()),
            host_buffers: HostBuffers::new(limits.handles_per_session, handles),
            identity: caller.identity,
            turn: Turn { peer: caller.peer.number, session: id },
            table: Mutex::new(table),
            accounts: Accounts::new(&shared, caller),
            options,
            over: watch::Sender::new(false),
            _counted: shared.gauges.hold(|gauges| &gauges.sessions, 1),
            _held: held,
            shared,
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a request. Its effects on handles are there when this returns.
    pub(super) fn begin(self: &Arc<Self>, request: Request) -> Answer {
        match request {
            Request::InitRequest(_) => self.init(),
            Request::CheckFutureRequest(request) => Answer::Now(
                self.table()
                    .check(request.future_handle)
                    .map(|()| Response::CheckFutureResponse(CheckFutureResponse {})),
            ),
            Request::CheckValueReadyRequest(request) => {
                self.check_value_ready(&request.value_handles)
            }
            Request::DeleteArrayRequest(request) => Answer::Now(self.delete(&request.array_handle)),
            Request::IsArrayDeletedRequest(request) => {
                Answer::Now(self.is_deleted(request.array_handle))
            }
            Request::DestructArrayRequest(request) => {
                Answer::Now(self.destruct(&request.array_handle))
            }
            Request::GetDefaultLayoutRequest(request) => Answer::Now(self.default_layout(&request)),
            Request::GetDefaultDeviceAssignmentRequest(request) => {
                Answer::Now(self.default_device_assignment(request))
            }
            Request::MakeArrayFromHostBufferRequest(request) => self.make_array(request),
            Request::MakeArraysFromHostBufferShardsRequest(request) => self.make_arrays(request),
            Request::MakeErrorArraysRequest(request) => self.make_error_arrays(request),
            Request::CopyToHostBufferRequest(request) => self.copy_to_host_buffer(request),
            Request::FullyReplicatedShardRequest(request) => self.fully_replicated_shard(&request),
            Request::DisassembleIntoSingleDeviceArraysRequest(request) => {
                self.disassemble(&request)
            }
            Request::AssembleArrayFromSingleDeviceArraysRequest(request) => self.assemble(&request),
            Request::CopyArraysRequest(request) => self.copy_arrays(&request),
            Request::RemapArraysRequest(request) => self.remap_arrays(&request),
            Request::ReshardArraysRequest(request) => self.reshard_arrays(&request),
            Request::BitcastArraysRequest(request) => self.bitcast_arrays(&request),
            Request::LoadedExecutableExecuteRequest(request) => {
                let status = unserved("execute programs");
                let mut table = self.table();
                table.poison(&request.result_array_handle, &status);
                if request.result_status_handle != 0 {
                    drop(
                        table.named_future(
                            request.result_status_handle,
                            Outcome(Err(status.clone())),
                        ),
                    );
                }
                Answer::Now(Err(status))
            }
            Request::CompileRequest(_) => Answer::Now(Err(unserved("compile programs"))),
            Request::LoadedExecutableMetadataRequest(_)
            | Request::LoadedExecutableDeleteRequest(_)
            | Request::LoadedExecutableIsDeletedRequest(_)
            | Request::LoadedExecutableDestructRequest(_)
            | Request::LoadedExecutableCostAnalysisRequest(_)
            | Request::LoadedExecutableHumanReadableProgramTextRequest(_)
            | Request::LoadedExecutableMpmdMetadataRequest(_)
            | Request::LoadedExecutableMpmdCostAnalysisRequest(_)
            | Request::LoadedExecutableFetchExecuteResultRequest(_) => {
                Answer::Now(Err(unserved("load executables")))
            }
            Request::LoadedHostCallbackPollRequest(_)
            | Request::LoadedHostCallbackReturnRequest(_) => {
                Answer::Now(Err(unserved("call back into the host")))
            }
        }
    }

    /// Ends the session: all that wait fail, and everything is freed that nobody else uses.
    pub(super) fn close(&self) {
        self.over.send_replace(true);
        self.host_buffers.close();
        self.table().clear();
    }

    /// Ends the session's stream, where it has one.
    pub(super) fn revoke(&self) {
        self.over.send_replace(true);
    }

    /// Whether it has no network between it and its client.
    pub(super) fn is_local(&self) -> bool {
        self.identity == Identity::own()
    }

    /// Done when the session is over.
    pub(super) async fn ended(&self) {
        // The sender lives as long as the session.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Reads a nested value.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it is missing; the code that the type's reader gives.
    pub(super) fn decode<T: FromProto>(&self, proto: Option<&T::Proto>) -> Result<T, Status> {
        let proto =
            proto.ok_or_else(|| status!(InvalidArgument, "the request has no {}", T::NAME))?;
        T::from_proto(proto, &self.options).map_err(|error| of_peer(&error))
    }

    /// Runs a request that makes arrays; if it fails, the handles that it should have made say why.
    pub(super) fn creating(
        &self,
        handles: &[u64],
        make: impl FnOnce() -> Result<Answer, Status>,
    ) -> Answer {
        make().unwrap_or_else(|status| {
            self.table().poison(handles, &status);
            Answer::Now(Err(status))
        })
    }

    /// Puts new arrays under their handles.
    ///
    /// # Errors
    /// Those of [`Table::claim`].
    pub(super) fn register(&self, wanted: &[u64], arrays: Vec<Array>) -> Result<Vec<u64>, Status> {
        let mut table = self.table();
        let handles = table.claim(wanted, arrays.len())?;
        for (handle, array) in handles.iter().zip(arrays) {
            table.insert(*handle, Entry::Live(Arc::new(array)));
        }
        Ok(handles)
    }

    /// Takes room for a shard's bytes.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is none: arrays are freed by the client, which would not know that it is waited for.
    pub(super) fn shard_share(&self, kind: Kind, bytes: u64) -> Result<Share, Status> {
        let pinned = match kind {
            Kind::PinnedHost => Some(self.accounts.pinned.take_now(bytes)?),
            Kind::Device => None,
        };
        Ok(Share { _arrays: self.accounts.arrays.take_now(bytes)?, _pinned: pinned })
    }

    /// Takes room for a host buffer, and waits until there is some. One that is to be stored counts for its session as soon as it is
    /// announced, and for others as its bytes arrive ([`arriving`](Self::arriving)).
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there will never be enough, or it took too long.
    pub(super) async fn hold(&self, bytes: u64, direction: Direction) -> Result<Held, Status> {
        let account = match direction {
            Direction::Store => &self.accounts.announced,
            Direction::Result => &self.accounts.results,
        };
        // Buffers of no bytes are something, too.
        let held = take(account, bytes.max(1), self.shared.limits.host_buffer_timeout).await?;
        Ok(Held::new(held, bytes, &self.shared.gauges))
    }

    /// What a buffer counts for that goes through the server: its pieces take their own room.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it took too long.
    pub(super) async fn pass_through(&self, bytes: u64) -> Result<Held, Status> {
        let limit = self.shared.limits.host_buffer_timeout;
        let held = take(&self.accounts.announced, 1, limit).await?;
        Ok(Held::new(held, bytes, &self.shared.gauges))
    }

    /// Takes room for bytes of a store that have arrived, and waits until there is some.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it took too long.
    pub(super) async fn arriving(&self, bytes: u64) -> Result<Holding, Status> {
        take(&self.accounts.arrived, bytes, self.shared.limits.host_buffer_timeout).await
    }

    /// What messages of a store cost.
    pub(super) fn store_terms(&self) -> Terms {
        self.terms(&self.accounts.arrived)
    }

    /// What requests cost.
    pub(super) fn request_terms(&self) -> Terms {
        self.terms(&self.accounts.messages)
    }

    fn terms(&self, account: &Account) -> Terms {
        /// Bytes that a message may have without room for it: there would be a deadlock if a small request had to wait for the room that it
        /// gives back.
        const FREE: usize = 64 << 10;
        let limits = &self.shared.limits;
        Terms {
            account: Some(account.clone()),
            free: FREE,
            idle: limits.idle_timeout,
            room: limits.host_buffer_timeout,
        }
    }

    /// Room for one more request in progress; waits for it.
    pub(super) async fn room_for_request(&self) -> Result<Holding, Status> {
        self.accounts.requests.take(1).await
    }

    /// Whether it holds nothing that anybody could miss.
    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty() && self.host_buffers.is_empty()
    }

    /// Runs something that waits for a device, when it is this session's turn.
    ///
    /// # Errors
    /// Those of `work`; INTERNAL if it panics.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        self.shared.blocking(self.turn, work).await
    }

    /// The host buffer that an array is made of, when it has arrived or begins to.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED if it does not come.
    pub(super) async fn arrived(
        limit: Duration,
        handle: u64,
        receiver: oneshot::Receiver<Result<Arrival, Status>>,
    ) -> Result<Arrival, Status> {
        let buffer = async {
            receiver.await.unwrap_or_else(|_| Err(status!(Cancelled, "the session is over")))
        };
        within(limit, &format!("host buffer {handle}"), buffer).await
    }

    fn init(self: &Arc<Self>) -> Answer {
        let session = Arc::clone(self);
        Answer::later(async move {
            session.shared.state.grant(&session.names).await?;
            session.describe()
        })
    }

    fn describe(&self) -> Reply {
        let attributes = self.shared.state.show(self)?;
        let answer = self.shared.devices.describe(self.id, self.agreement.serdes(), &attributes)?;
        Ok(Response::InitResponse(answer))
    }

    fn check_value_ready(&self, handles: &[u64]) -> Answer {
        match self.table().arrays(handles) {
            Err(status) => Answer::Now(Err(status)),
            Ok(arrays) => Answer::later(async move {
                for array in arrays {
                    array.wait().await?;
                }
                Ok(Response::CheckValueReadyResponse(CheckValueReadyResponse {}))
            }),
        }
    }

    /// Deletes what can be deleted; what could not is what the future says.
    fn delete(&self, handles: &[u64]) -> Reply {
        let mut table = self.table();
        let mut outcome = Ok(());
        for handle in handles {
            let deleted = match table.array(*handle) {
                Ok(array) => self.shared.state.delete(&self.names, *handle, &array),
                Err(_) => Ok(()),
            };
            outcome = outcome.and(deleted.and_then(|()| table.delete(*handle)));
        }
        let deletion_future_handle = table.future(Outcome(outcome))?;
        Ok(Response::DeleteArrayResponse(DeleteArrayResponse { deletion_future_handle }))
    }

    fn is_deleted(&self, handle: u64) -> Reply {
        let deleted = match self.table().entry(handle)? {
            Entry::Live(_) => false,
            Entry::Deleted => true,
            Entry::Failed(status) => return Err(status.clone()),
        };
        Ok(Response::IsArrayDeletedResponse(IsArrayDeletedResponse { deleted }))
    }

    fn destruct(&self, handles: &[u64]) -> Reply {
        let mut table = self.table();
        let mut outcome = Ok(());
        for handle in handles {
            outcome = outcome.and(table.destruct(*handle));
        }
        outcome.map(|()| Response::DestructArrayResponse(DestructArrayResponse {}))
    }

    /// The layout of a shard: row-major, as text.
    fn default_layout(&self, request: &GetDefaultLayoutRequest) -> Reply {
        let dtype: DType = self.decode(request.dtype.as_ref())?;
        let shape = Shape::new(&request.dims).map_err(|error| error.to_status())?;
        let kind = MemoryKind::new(&request.memory_kind);
        self.shared.devices.place(DeviceId(request.device_id), &kind)?;
        super::element::item_size(dtype)?;
        let rank = u16::try_from(shape.rank()).map_err(|_| {
            status!(InvalidArgument, "{} dimensions are too many for a layout", shape.rank())
        })?;
        let text = PjRtLayout::new(Layout::descending(rank)).to_text();
        Ok(Response::GetDefaultLayoutResponse(GetDefaultLayoutResponse {
            serialized_pjrt_layout: text.into(),
        }))
    }

    /// Replicas by partitions, in the order of the devices.
    fn default_device_assignment(&self, request: GetDefaultDeviceAssignmentRequest) -> Reply {
        let (replicas, partitions) = (request.num_replicas, request.num_partitions);
        let devices = self.shared.devices.len() as u64;
        if replicas.checked_mul(partitions).is_none_or(|count| count == 0 || count > devices) {
            return Err(status!(
                InvalidArgument,
                "{replicas} replicas of {partitions} partitions; expected at least one and at most {devices} devices"
            ));
        }
        // At most as many as there are devices.
        let computation_devices = (0..partitions)
            .map(|partition| ComputationDevice {
                replica_device_ids: (0..replicas)
                    .map(|replica| (replica * partitions + partition) as i64)
                    .collect(),
            })
            .collect();
        Ok(Response::GetDefaultDeviceAssignmentResponse(GetDefaultDeviceAssignmentResponse {
            device_assignment: Some(DeviceAssignmentProto {
                replica_count: replicas as i32,
                computation_count: partitions as i32,
                computation_devices,
            }),
        }))
    }
}

/// The status of a value that cannot be read.
pub(super) fn of_peer(error: &DecodeError) -> Status {
    error.to_status()
}

fn unserved(what: &str) -> Status {
    status!(Unimplemented, "this server moves arrays; it does not {what}")
}

/// The result of a future, unless it takes too long.
///
/// # Errors
/// DEADLINE_EXCEEDED.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    future: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| {
        Err(status!(DeadlineExceeded, "waited {} seconds for {what}", limit.as_secs_f64()))
    })
}
