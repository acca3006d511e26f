//! Arrays out of arrays: taken apart, put together, copied, cut anew, seen as another type.

use std::sync::Arc;

use super::{
    array::{Array, Shard},
    element::{Item, item_size},
    memory::{Buffer, Memory, Place, Promise},
    region::Region,
    remap,
    reshard::{cover, cut},
    session::{Answer, Direction, Session},
    strings::pick_strings,
};
use crate::{
    codec::Status,
    ifrt::{
        ArrayCopySemantics as Semantics, ArraySpec, DType, DeviceId, DeviceList, IndexDomain,
        MemoryKind, RemapPlan, Shape, Sharding, SingleDeviceSharding,
    },
    proto::xla::ifrt::{
        proto::StringArrayContents,
        proxy::{
            AssembleArrayFromSingleDeviceArraysRequest,
            AssembleArrayFromSingleDeviceArraysResponse, BitcastArraysRequest,
            BitcastArraysResponse, CopyArraysRequest, CopyArraysResponse,
            DisassembleIntoSingleDeviceArraysRequest, DisassembleIntoSingleDeviceArraysResponse,
            FullyReplicatedShardRequest, FullyReplicatedShardResponse, RemapArraysRequest,
            RemapArraysResponse, ifrt_response::Response,
        },
    },
    proxy::status::status,
};
use prost::Message as _;

/// # Errors
/// INVALID_ARGUMENT for a number without a meaning.
fn copy_semantics(number: i32) -> Result<Semantics, Status> {
    Semantics::from_number(number).ok_or_else(|| {
        status!(
            InvalidArgument,
            "copy semantics {number}; expected 1 (always copy), 2 (reuse input) or 3 (donate input)"
        )
    })
}

/// Memory to be made out of other memory.
pub(super) struct Work {
    pub(super) promise: Promise,
    pub(super) place: Place,
    pub(super) from: From,
}

pub(super) enum From {
    /// All of another shard.
    Copy(Buffer),
    /// Those parts of an array, of which a part is wanted.
    Parts { parts: Vec<(Buffer, IndexDomain)>, wanted: IndexDomain, shape: Shape, item: Item },
}

/// Arrays to be made, and what has to be done for them.
#[derive(Default)]
pub(super) struct Rearrangement {
    pub(super) arrays: Vec<Array>,
    pub(super) work: Vec<Work>,
}

impl Rearrangement {
    /// A shard with the bytes of another one: the same memory where that is allowed.
    pub(super) fn shard(
        &mut self,
        source: &Shard,
        place: Place,
        shape: Shape,
        semantics: Semantics,
    ) -> Shard {
        if source.place == place && semantics != Semantics::AlwaysCopy {
            return Shard { place, shape, buffer: source.buffer.clone() };
        }
        let (promise, buffer) = Buffer::promised();
        self.work.push(Work { promise, place, from: From::Copy(source.buffer.clone()) });
        Shard { place, shape, buffer }
    }
}

impl Session {
    /// The first shard of an array that every device holds as a whole.
    pub(super) fn fully_replicated_shard(
        self: &Arc<Self>,
        request: &FullyReplicatedShardRequest,
    ) -> Answer {
        let (input, wanted) = ([request.array_handle], [request.result_handle]);
        self.rearranging(
            &input,
            &wanted,
            request.copy_semantics,
            |inputs, semantics| {
                let mut result = Rearrangement::default();
                for array in inputs {
                    let shard = array.shards.first().filter(|shard| {
                        array.sharding().is_fully_replicated()
                            || (array.shards.len() == 1 && shard.shape == *array.shape())
                    });
                    let shard = shard.ok_or_else(|| {
                        status!(
                            InvalidArgument,
                            "array {} is not replicated: {}",
                            request.array_handle,
                            array.spec
                        )
                    })?;
                    let made = result.shard(shard, shard.place, shard.shape.clone(), semantics);
                    result.arrays.push(single(array, made));
                }
                Ok(result)
            },
            |handles| {
                let array_handle = handles.first().copied().unwrap_or_default();
                Response::FullyReplicatedShardResponse(FullyReplicatedShardResponse {
                    array_handle,
                })
            },
        )
    }

    /// Each shard as an array.
    pub(super) fn disassemble(
        self: &Arc<Self>,
        request: &DisassembleIntoSingleDeviceArraysRequest,
    ) -> Answer {
        let input = [request.array_handle];
        self.rearranging(
            &input,
            &request.result_handles,
            request.copy_semantics,
            |inputs, semantics| {
                let mut result = Rearrangement::default();
                for array in inputs {
                    for shard in &array.shards {
                        let made = result.shard(shard, shard.place, shard.shape.clone(), semantics);
                        result.arrays.push(single(array, made));
                    }
                }
                Ok(result)
            },
            |array_handles| {
                Response::DisassembleIntoSingleDeviceArraysResponse(
                    DisassembleIntoSingleDeviceArraysResponse { array_handles },
                )
            },
        )
    }

    /// One array whose shards are the arrays of one shard each.
    pub(super) fn assemble(
        self: &Arc<Self>,
        request: &AssembleArrayFromSingleDeviceArraysRequest,
    ) -> Answer {
        let wanted = [request.result_handle];
        self.rearranging(&request.single_device_array_handles, &wanted, request.copy_semantics, |inputs, semantics| {
            let shape: Shape = self.decode(request.shape.as_ref())?;
            let sharding: Sharding = self.decode(request.sharding.as_ref())?;
            let dtype = match &request.dtype {
                Some(dtype) => self.decode::<DType>(Some(dtype))?,
                None => inputs.first().map(|array| array.dtype()).ok_or_else(|| {
                    status!(InvalidArgument, "neither an element type nor an array is given")
                })?,
            };
            let places = self.shared.devices.places(&sharding)?;
            if places.len() != inputs.len() {
                return Err(status!(
                    InvalidArgument,
                    "found {} arrays; expected {}, one for each device of the sharding",
                    inputs.len(),
                    places.len(),
                ));
            }
            let shapes = sharding.disassemble(&shape).ok();
            let mut result = Rearrangement::default();
            let mut shards = Vec::with_capacity(places.len());
            for (index, (array, place)) in inputs.iter().zip(places).enumerate() {
                let [shard] = &array.shards[..] else {
                    return Err(status!(InvalidArgument, "array {index} has {} shards; expected one", array.shards.len()));
                };
                if array.dtype() != dtype {
                    return Err(status!(InvalidArgument, "array {index} holds {}; expected {dtype}", array.dtype()));
                }
                if shard.place != place {
                    return Err(status!(
                        InvalidArgument,
                        "array {index} is on device {} in {}; expected device {} in {}, as in the sharding",
                        shard.place.device,
                        shard.place.kind.name(),
                        place.device,
                        place.kind.name(),
                    ));
                }
                if let Some((expected, _)) = shapes.as_ref().and_then(|shapes| shapes.get(index))
                    && *expected != shard.shape
                {
                    return Err(status!(InvalidArgument, "array {index} has the shape {}; expected {expected}", shard.shape));
                }
                shards.push(result.shard(shard, place, shard.shape.clone(), semantics));
            }
            result.arrays.push(Array { spec: ArraySpec::new(dtype, shape, sharding), shards });
            Ok(result)
        }, |handles| {
            let array_handle = handles.first().copied().unwrap_or_default();
            Response::AssembleArrayFromSingleDeviceArraysResponse(AssembleArrayFromSingleDeviceArraysResponse { array_handle })
        })
    }

    /// The arrays on other devices or in another kind of memory.
    pub(super) fn copy_arrays(self: &Arc<Self>, request: &CopyArraysRequest) -> Answer {
        self.rearranging(
            &request.array_handles,
            &request.result_handles,
            request.copy_semantics,
            |inputs, semantics| {
                let devices = (!request.device_ids.is_empty())
                    .then(|| DeviceList::new(request.device_ids.iter().copied().map(DeviceId)));
                let kind = request.memory_kind.as_ref().map(MemoryKind::new);
                let mut result = Rearrangement::default();
                for array in inputs {
                    let sharding = array
                        .sharding()
                        .with_device_assignment(devices.clone(), kind.clone())
                        .map_err(|error| error.to_status())?;
                    let places = self.shared.devices.places(&sharding)?;
                    let shards = array.shards.iter().zip(places);
                    let shards = shards.map(|(shard, place)| {
                        result.shard(shard, place, shard.shape.clone(), semantics)
                    });
                    let shards = shards.collect();
                    result.arrays.push(Array { spec: respec(&array.spec, sharding), shards });
                }
                Ok(result)
            },
            |array_handles| Response::CopyArraysResponse(CopyArraysResponse { array_handles }),
        )
    }

    /// Arrays out of shards of other arrays, as a plan says.
    pub(super) fn remap_arrays(self: &Arc<Self>, request: &RemapArraysRequest) -> Answer {
        self.rearranging(
            &request.array_handles,
            &request.result_handles,
            request.copy_semantics,
            |inputs, semantics| {
                let plan: RemapPlan = self.decode(request.plan.as_ref())?;
                let sources = remap::sources(&plan, inputs, semantics)?;
                let mut result = Rearrangement::default();
                for (spec, sources) in plan.output_specs().iter().cloned().zip(sources) {
                    let places = self.shared.devices.places(spec.sharding())?;
                    let mut shards = Vec::with_capacity(places.len());
                    for (place, (input, index)) in places.into_iter().zip(sources) {
                        let shard = inputs.get(input).and_then(|array| array.shards.get(index));
                        let shard = shard.ok_or_else(|| {
                            status!(Internal, "input {input} has no shard {index}")
                        })?;
                        shards.push(result.shard(shard, place, shard.shape.clone(), semantics));
                    }
                    result.arrays.push(Array { spec, shards });
                }
                Ok(result)
            },
            |array_handles| Response::RemapArraysResponse(RemapArraysResponse { array_handles }),
        )
    }

    /// The same bytes as another type and shape.
    pub(super) fn bitcast_arrays(self: &Arc<Self>, request: &BitcastArraysRequest) -> Answer {
        self.rearranging(&request.array_handles, &request.result_handles, request.copy_semantics, |inputs, semantics| {
            let specs = self.specs(&request.array_specs, inputs.len())?;
            let mut result = Rearrangement::default();
            for (array, spec) in inputs.iter().zip(specs) {
                let places = self.shared.devices.places(spec.sharding())?;
                let parts = spec.sharding().disassemble(spec.shape()).map_err(|error| error.to_status())?;
                if places.len() != array.shards.len() {
                    return Err(status!(
                        InvalidArgument,
                        "the new sharding has {} shards; expected {}, as the array",
                        places.len(),
                        array.shards.len(),
                    ));
                }
                let mut shards = Vec::with_capacity(places.len());
                for ((shard, place), (shape, _)) in array.shards.iter().zip(places).zip(parts) {
                    let (old, new) = (shard_bytes(array.dtype(), &shard.shape)?, shard_bytes(spec.dtype(), &shape)?);
                    if old != new || shard.place != place {
                        return Err(status!(
                            InvalidArgument,
                            "a shard of {new} bytes on device {} cannot be the same as one of {old} bytes on device {}",
                            place.device,
                            shard.place.device,
                        ));
                    }
                    shards.push(result.shard(shard, place, shape, semantics));
                }
                result.arrays.push(Array { spec, shards });
            }
            Ok(result)
        }, |array_handles| Response::BitcastArraysResponse(BitcastArraysResponse { array_handles }))
    }

    pub(super) fn specs(
        &self,
        specs: &[crate::proto::xla::ifrt::ArraySpecProto],
        expected: usize,
    ) -> Result<Vec<ArraySpec>, Status> {
        if specs.len() != expected {
            return Err(status!(
                InvalidArgument,
                "found {} array specs; expected {expected}, one for each array",
                specs.len()
            ));
        }
        specs.iter().map(|spec| self.decode(Some(spec))).collect()
    }

    /// Makes arrays out of others: registers them now, and does the work when the inputs are there.
    pub(super) fn rearranging(
        self: &Arc<Self>,
        inputs: &[u64],
        wanted: &[u64],
        semantics: i32,
        plan: impl FnOnce(&[Arc<Array>], Semantics) -> Result<Rearrangement, Status>,
        response: impl FnOnce(Vec<u64>) -> Response + Send + 'static,
    ) -> Answer {
        self.creating(wanted, || {
            let semantics = copy_semantics(semantics)?;
            let arrays = self.table().arrays(inputs)?;
            let Rearrangement { arrays: made, work } = plan(&arrays, semantics)?;
            let handles = self.register(wanted, made)?;
            if semantics == Semantics::DonateInput {
                let mut table = self.table();
                for handle in inputs {
                    table.delete(*handle)?;
                }
            }
            let session = Arc::clone(self);
            Ok(Answer::later(async move {
                let mut outcome = Ok(());
                for array in &arrays {
                    outcome = outcome.and(array.wait().await);
                }
                drop(arrays);
                for work in work {
                    let Work { promise, place, from } = work;
                    let done = session.carry_out_work(place, from).await.map(Arc::new);
                    outcome = outcome.and(done.as_ref().map(drop).map_err(Clone::clone));
                    promise.keep(done);
                }
                outcome.map(|()| response(handles))
            }))
        })
    }

    async fn carry_out_work(self: &Arc<Self>, place: Place, from: From) -> Result<Memory, Status> {
        let session = Arc::clone(self);
        match from {
            From::Copy(source) => {
                let source = source.wait().await?;
                self.blocking(move || {
                    let device = session.shared.devices.at(place)?;
                    let share = session.shard_share(place.kind, source.size())?;
                    source.copy(device, place.kind, share, &session.shared.gauges)
                })
                .await
            }
            From::Parts { parts, wanted, shape, item } => {
                let mut sources = Vec::with_capacity(parts.len());
                for (buffer, domain) in parts {
                    sources.push((buffer.wait().await?, domain));
                }
                let beside = sources.iter().map(|(memory, _)| memory.size()).sum();
                let beside = self.hold(beside, Direction::Result).await?;
                self.blocking(move || {
                    let _beside = beside;
                    let bytes = match item {
                        Item::Bytes(item) => cut(&sources, &wanted, item)?,
                        Item::Strings => {
                            let all = cover(&sources, &shape)?;
                            let part = pick_strings(&all, &shape, &wanted)?;
                            StringArrayContents { strings: part }.encode_to_vec()
                        }
                    };
                    session.store(place, bytes.len() as u64, [&bytes[..]])
                })
                .await
            }
        }
    }
}

/// The bytes of a shard.
///
/// # Errors
/// INVALID_ARGUMENT for types without a fixed size.
fn shard_bytes(dtype: DType, shape: &Shape) -> Result<u64, Status> {
    match item_size(dtype)? {
        Item::Bytes(item) => Ok(Region::dense(shape.dims(), item)?.bytes()),
        Item::Strings => {
            Err(status!(InvalidArgument, "strings have no bits that could be seen as another type"))
        }
    }
}

/// A shard as an array of its own.
fn single(array: &Array, shard: Shard) -> Array {
    let device = DeviceId(i32::try_from(shard.place.device).unwrap_or(i32::MAX));
    let sharding = SingleDeviceSharding::new(device).with_memory_kind(shard.place.kind.name());
    let spec = ArraySpec::new(array.dtype(), shard.shape.clone(), sharding);
    Array { spec, shards: vec![shard] }
}

/// The same type and shape with another sharding.
fn respec(spec: &ArraySpec, sharding: Sharding) -> ArraySpec {
    let new = ArraySpec::new(spec.dtype(), spec.shape().clone(), sharding);
    match spec.layout() {
        Some(layout) => new.with_layout(layout.clone()),
        None => new,
    }
}
