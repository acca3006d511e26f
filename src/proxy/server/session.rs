//! A session: one client's handles, and what each request does to them.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{oneshot, watch};

use super::{
    Shared,
    array::{Array, Entry, Outcome, Table},
    host_buffer::{Arrival, Held, HostBuffers},
    limits::{Budget, Share},
    metrics::Counted,
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
    pub(super) id: u64,
    pub(super) agreement: Agreement,
    pub(super) initialization: AttributeMap,
    pub(super) shared: Arc<Shared>,
    pub(super) host_buffers: Arc<HostBuffers>,
    table: Mutex<Table>,
    /// For stores, and for results.
    budgets: [Budget; 2],
    arrays: Budget,
    options: DeserializeOptions,
    over: watch::Sender<bool>,
    _counted: Counted,
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
        initialization: AttributeMap,
    ) -> Self {
        let limits = &shared.limits;
        let budget = || Budget::new("the session's host buffers", limits.session_host_bytes);
        let options = DeserializeOptions::new()
            .with_validation(Validation::Parity)
            .with(DeserializeShardingOptions::new(Arc::clone(&shared.devices)));
        Self {
            id,
            agreement,
            initialization,
            host_buffers: HostBuffers::new(limits.handles_per_session),
            table: Mutex::new(Table::new(limits.handles_per_session, Arc::clone(&shared.gauges))),
            budgets: [budget(), budget()],
            arrays: Budget::new("the session's arrays", limits.session_array_bytes),
            options,
            over: watch::Sender::new(false),
            _counted: shared.gauges.hold(|gauges| &gauges.sessions, 1),
            shared,
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a request. Its effects on handles are there when this returns.
    pub(super) fn begin(self: &Arc<Self>, request: Request) -> Answer {
        match request {
            Request::InitRequest(_) => Answer::Now(self.init()),
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
    pub(super) fn shard_share(&self, bytes: u64) -> Result<Option<Share>, Status> {
        if self.shared.limits.session_array_bytes == u64::MAX {
            return Ok(None);
        }
        self.arrays.take_now(bytes).map(Some)
    }

    /// Takes room for a host buffer, and waits until there is some.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there will never be enough; DEADLINE_EXCEEDED if it took too long.
    pub(super) async fn hold(&self, bytes: u64, direction: Direction) -> Result<Held, Status> {
        let limit = self.shared.limits.host_buffer_timeout;
        let (own, all) = match direction {
            Direction::Store => (&self.budgets[0], &self.shared.budgets[0]),
            Direction::Result => (&self.budgets[1], &self.shared.budgets[1]),
        };
        let shares = async { Ok::<_, Status>([own.take(bytes).await?, all.take(bytes).await?]) };
        let shares = within(limit, "room for a host buffer", shares).await?;
        Ok(Held::new(shares, bytes, &self.shared.gauges))
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

    fn init(&self) -> Reply {
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
            outcome = outcome.and(table.delete(*handle));
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
