//! Creation of arrays from host buffers, and of failed arrays.

use serdes::{
    codec::Status,
    ifrt::{ArraySpec, DType, IndexDomain, Layout, Shape, Sharding},
    proto::xla::ifrt::proxy::{
        MakeArrayFromHostBufferRequest, MakeArrayFromHostBufferResponse,
        MakeArraysFromHostBufferShardsRequest, MakeArraysFromHostBufferShardsResponse,
        MakeErrorArraysRequest, MakeErrorArraysResponse, ifrt_response::Response,
        make_arrays_from_host_buffer_shards_request::MakeArraysFromHostBufferShardsSpec,
    },
};

use super::{
    array_creation::PendingArrays,
    request::{Job, Nothing, Request},
};
use crate::{
    server::{
        arrays::{Array, Buffer, Item, Shard, item_size},
        context::Context,
        sessions::{Session, short},
    },
    status::{from_proto, status},
};

/// Creates one array from one host buffer, of which each shard has a part.
impl Request for MakeArrayFromHostBufferRequest {
    type Work = PendingArrays;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<PendingArrays>, Status> {
        let dtype: DType = session.decode(self.dtype.as_ref())?;
        let shape: Shape = session.decode(self.shape.as_ref())?;
        let sharding: Sharding = session.decode(self.sharding.as_ref())?;
        let mut spec = ArraySpec::new(dtype, shape.clone(), sharding);
        if let Some(layout) = &self.layout
            && let Layout::PjRt(layout) = session.decode::<Layout>(Some(layout))?
        {
            spec = spec.with_layout(layout);
        }
        check_dtype(context, dtype)?;
        let parts = domains_of(&spec)?.into_iter().map(|domain| (0, domain)).collect();
        let mut pending_arrays = PendingArrays::new(|handles| {
            let array_handle = handles.first().copied().unwrap_or_default();
            Response::MakeArrayFromHostBufferResponse(MakeArrayFromHostBufferResponse {
                array_handle,
            })
        });
        pending_arrays.source(self.host_buffer_handle, dtype, shape, self.byte_strides.as_ref())?;
        pending_arrays.array(context, spec, parts)?;
        pending_arrays.register(session, self.results()).map(Job::Work)
    }

    fn results(&self) -> &[u64] {
        self.array_handle.as_slice()
    }

    fn refuse(&self, session: &Session, _: &Status) {
        session.host_buffers.discard(self.host_buffer_handle);
    }
}

/// Creates arrays from several host buffers, each of which is one or more whole shards.
impl Request for MakeArraysFromHostBufferShardsRequest {
    type Work = PendingArrays;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<PendingArrays>, Status> {
        let mut pending_arrays = PendingArrays::new(|array_handles| {
            Response::MakeArraysFromHostBufferShardsResponse(
                MakeArraysFromHostBufferShardsResponse { array_handles },
            )
        });
        for spec in &self.specs {
            let array: ArraySpec = session.decode(spec.array_spec.as_ref())?;
            check_dtype(context, array.dtype())?;
            let parts = shards_of(session, &mut pending_arrays, spec, &array)?;
            pending_arrays.array(context, array, parts)?;
        }
        pending_arrays.register(session, &self.array_handles).map(Job::Work)
    }

    fn results(&self) -> &[u64] {
        &self.array_handles
    }

    fn refuse(&self, session: &Session, _: &Status) {
        for buffer in self.specs.iter().flat_map(|spec| &spec.host_buffers) {
            session.host_buffers.discard(buffer.host_buffer_handle);
        }
    }
}

/// Adds the host buffers of an array to the sources; returns the source of each shard, in the order
/// of the shards.
///
/// # Errors
/// INVALID_ARGUMENT if they are not exactly the array's shards.
fn shards_of(
    session: &Session,
    pending_arrays: &mut PendingArrays,
    spec: &MakeArraysFromHostBufferShardsSpec,
    array: &ArraySpec,
) -> Result<Vec<(usize, IndexDomain)>, Status> {
    if spec.addressable_shard_indices.len() != spec.host_buffers.len() {
        return Err(status!(
            InvalidArgument,
            "found {} lists of shards; expected {}, one for each host buffer",
            spec.addressable_shard_indices.len(),
            spec.host_buffers.len(),
        ));
    }
    let count = array.sharding().devices().len();
    let mut shards = vec![None; count];
    for (indices, buffer) in spec.addressable_shard_indices.iter().zip(&spec.host_buffers) {
        let dtype: DType = session.decode(buffer.dtype.as_ref())?;
        let shape: Shape = session.decode(buffer.shape.as_ref())?;
        if dtype != array.dtype() {
            return Err(status!(
                InvalidArgument,
                "host buffer {} holds {dtype}; expected {}, as the array",
                buffer.host_buffer_handle,
                array.dtype(),
            ));
        }
        let handle = buffer.host_buffer_handle;
        let source =
            pending_arrays.source(handle, dtype, shape.clone(), buffer.byte_strides.as_ref())?;
        for index in &indices.indices {
            let slot = usize::try_from(*index).ok().and_then(|index| shards.get_mut(index));
            let slot = slot.ok_or_else(|| {
                status!(InvalidArgument, "there is no shard {index}; the array has {count}")
            })?;
            if slot.replace((source, IndexDomain::whole(shape.clone()))).is_some() {
                return Err(status!(InvalidArgument, "shard {index} is given twice"));
            }
        }
    }
    let shards: Vec<_> = shards.into_iter().flatten().collect();
    check_shards(array, count, &shards)?;
    Ok(shards)
}

/// # Errors
/// INVALID_ARGUMENT if a shard is missing, or its shape differs from the sharding's.
fn check_shards(
    array: &ArraySpec,
    expected: usize,
    shards: &[(usize, IndexDomain)],
) -> Result<(), Status> {
    let given = shards.len();
    if given != expected {
        return Err(status!(
            InvalidArgument,
            "found {given} shards; expected {expected}, one for each device"
        ));
    }
    let Ok(parts) = array.sharding().disassemble(array.shape()) else { return Ok(()) };
    for (index, ((expected, _), (_, found))) in parts.iter().zip(shards).enumerate() {
        if expected != found.shape() {
            return Err(status!(
                InvalidArgument,
                "the host buffer of shard {index} has the shape {}; expected {expected}",
                found.shape(),
            ));
        }
    }
    Ok(())
}

impl Request for MakeErrorArraysRequest {
    type Work = Nothing;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let error = self.error.as_ref().and_then(from_proto);
        let error = short(&error.ok_or_else(|| {
            status!(InvalidArgument, "the request has no error; expected one that is not OK")
        })?);
        let mut arrays = Vec::with_capacity(self.array_specs.len());
        for spec in &self.array_specs {
            let spec: ArraySpec = session.decode(Some(spec))?;
            // A sharding over too many devices is refused before as many shapes are computed.
            let spaces = context.devices.spaces(spec.sharding())?;
            let shapes = shard_shapes(&spec);
            let buffer = Buffer::known(Err(error.clone()));
            let shards = spaces.into_iter().zip(shapes);
            let shards =
                shards.map(|(space, shape)| Shard { space, shape, buffer: buffer.clone() });
            arrays.push(Array { shards: shards.collect(), spec });
        }
        let array_handles = session.register(&self.array_handles, arrays)?;
        Ok(Job::Done(Response::MakeErrorArraysResponse(MakeErrorArraysResponse { array_handles })))
    }

    fn results(&self) -> &[u64] {
        &self.array_handles
    }
}

/// # Errors
/// UNIMPLEMENTED for strings on devices that cannot store them, and for types without data.
fn check_dtype(context: &Context, dtype: DType) -> Result<(), Status> {
    if item_size(dtype)? == Item::Strings && !context.devices.take_strings() {
        return Err(status!(Unimplemented, "arrays of strings need a device of the kind `cpu`"));
    }
    Ok(())
}

/// Returns the part of the array that each of its devices holds.
///
/// # Errors
/// INVALID_ARGUMENT if the sharding does not define it.
fn domains_of(spec: &ArraySpec) -> Result<Vec<IndexDomain>, Status> {
    let sharding = spec.sharding();
    match sharding.index_domains(spec.shape()) {
        Ok(domains) => Ok(domains),
        // A single device has the whole array with any sharding.
        Err(_) if sharding.devices().len() == 1 => {
            Ok(vec![IndexDomain::whole(spec.shape().clone())])
        }
        Err(error) => Err(error.to_status()),
    }
}

/// Returns the shape of each shard, or of the array if the sharding does not define it.
fn shard_shapes(spec: &ArraySpec) -> Vec<Shape> {
    match spec.sharding().disassemble(spec.shape()) {
        Ok(parts) => parts.into_iter().map(|(shape, _)| shape).collect(),
        Err(_) => vec![spec.shape().clone(); spec.sharding().devices().len()],
    }
}
