//! Requests about the server: its devices, attributes and default layouts.

use std::sync::Arc;

use prost::Message as _;
use serdes::{
    codec::{Status, ToProto as _},
    ifrt::{
        AttributeMap, AttributeValue, DType, DeviceId, MemoryKind, PjRtLayout, Shape, xla::Layout,
    },
    proto::xla::{
        DeviceAssignmentProto,
        device_assignment_proto::ComputationDevice,
        ifrt::proxy::{
            GetDefaultDeviceAssignmentRequest, GetDefaultDeviceAssignmentResponse,
            GetDefaultLayoutRequest, GetDefaultLayoutResponse, InitRequest,
            ifrt_response::Response,
        },
    },
};
use serdes_pjrt::ElementType;

use super::request::{Job, Nothing, Reply, Request, Work};
use crate::{
    server::{
        arrays::item_size,
        context::Context,
        sessions::{Entry, Session},
    },
    status::{of_pjrt, status},
};

impl Request for InitRequest {
    type Work = Init;

    fn plan(&self, _: &Context, _: &Session) -> Result<Job<Init>, Status> {
        Ok(Job::Work(Init))
    }
}

/// Waits for the names that the client requests in the state.
pub(super) struct Init;

impl Work for Init {
    async fn run(self, session: Arc<Session>) -> Reply {
        session.state.grant(&session.names).await?;
        let attributes = show_state(&session)?;
        let version = session.agreement.serdes();
        let answer = session.context.devices.describe(session.id, version, &attributes)?;
        Ok(Response::InitResponse(answer))
    }
}

/// Registers the arrays of the state in the session's table; returns their attributes for the
/// client.
///
/// # Errors
/// The errors of encoding array specs at this version.
fn show_state(session: &Session) -> Result<AttributeMap, Status> {
    let arrays = session.state.arrays(&session.names);
    let mut attributes = Vec::with_capacity(2 * arrays.len());
    let mut table = session.table();
    for (name, array) in arrays {
        let spec = array.spec.to_proto(session.agreement.serdes());
        let spec = spec.map_err(|error| error.to_status())?;
        let Some(handle) = table.claim(&[], 1)?.first().copied() else { continue };
        table.insert(handle, Entry::Live(array));
        let value = AttributeValue::Int64(handle.cast_signed());
        attributes.push((format!("serdes.state.handle.{name}"), value));
        let value = AttributeValue::from(spec.encode_to_vec());
        attributes.push((format!("serdes.state.spec.{name}"), value));
        session.names.shown().insert(handle, name);
    }
    Ok(attributes.into_iter().collect())
}

impl Request for GetDefaultLayoutRequest {
    type Work = Nothing;

    /// Returns the layout of a shard as text: the plug-in's, or row-major.
    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let dtype: DType = session.decode(self.dtype.as_ref())?;
        let shape = Shape::new(&self.dims).map_err(|error| error.to_status())?;
        let kind = MemoryKind::new(&self.memory_kind);
        context.devices.space(DeviceId(self.device_id), &kind)?;
        item_size(dtype)?;
        let rank = u16::try_from(shape.rank()).map_err(|_| {
            status!(InvalidArgument, "{} dimensions are too many for a layout", shape.rank())
        })?;
        let said = context.devices.client().and_then(|client| {
            let element_type = ElementType::of_name(dtype.name())?;
            client.default_layout_text(element_type, &self.dims).ok()
        });
        let row_major = || PjRtLayout::new(Layout::descending(rank)).to_text();
        let text = said.unwrap_or_else(row_major);
        Ok(Job::Done(Response::GetDefaultLayoutResponse(GetDefaultLayoutResponse {
            serialized_pjrt_layout: text.into(),
        })))
    }
}

impl Request for GetDefaultDeviceAssignmentRequest {
    type Work = Nothing;

    /// Returns replicas by partitions, in the order of the devices.
    fn plan(&self, context: &Context, _: &Session) -> Result<Job<Nothing>, Status> {
        let (replicas, partitions) = (self.num_replicas, self.num_partitions);
        let devices = context.devices.len() as u64;
        if replicas.checked_mul(partitions).is_none_or(|count| count == 0 || count > devices) {
            return Err(status!(
                InvalidArgument,
                "{replicas} replicas of {partitions} partitions; expected at least one and at most {devices} devices"
            ));
        }
        // There are at most as many as devices. For each replica, partition by partition.
        let ids: Vec<i32> = match context.devices.client() {
            Some(client) => client
                .default_device_assignment(replicas as u32, partitions as u32)
                .map_err(|error| of_pjrt(&error))?,
            None => (0..devices as usize).map(|place| context.devices.id(place).0).collect(),
        };
        let computation_devices = (0..partitions as usize)
            .map(|partition| {
                let of_partition = ids.iter().skip(partition).step_by(partitions as usize);
                let ids = of_partition.take(replicas as usize).map(|id| i64::from(*id));
                ComputationDevice { replica_device_ids: ids.collect() }
            })
            .collect();
        let assignment = DeviceAssignmentProto {
            replica_count: replicas as i32,
            computation_count: partitions as i32,
            computation_devices,
        };
        Ok(Job::Done(Response::GetDefaultDeviceAssignmentResponse(
            GetDefaultDeviceAssignmentResponse { device_assignment: Some(assignment) },
        )))
    }
}
