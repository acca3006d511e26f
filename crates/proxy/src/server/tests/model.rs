//! Compares random sequences of requests with a model of a session: two-dimensional arrays, cut by
//! rows or columns or replicated, that are created, copied, disassembled, assembled, resharded,
//! bitcast, deleted and destroyed, at every negotiated version.

use std::collections::HashMap;

use proptest::prelude::*;
use serdes::{
    codec::{StatusCode, ToProto as _},
    ifrt::{
        ArrayCopySemantics, ArraySpec, DType, DeviceId, DeviceList, HloSharding, Interval,
        MemoryKind, RemapPlan, Shape, Sharding,
        xla::{OpSharding, TileAssignment},
    },
    proto::{
        tensorflow::StatusProto,
        xla::ifrt::proxy::{
            BitcastArraysRequest, CheckValueReadyRequest, IsArrayDeletedRequest,
            MakeErrorArraysRequest, ReshardArraysRequest, ifrt_request::Request,
            ifrt_response::Response,
        },
    },
    version::{SerDesVersion, VersionRange},
};

use super::session::{Client, server};
use crate::{Ranges, requests};

/// Layout of an array on devices. The server has the devices 0 and 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    by: By,
    devices: Vec<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Each device has the whole array.
    Whole,
    /// The first device has the upper half, the second the lower one.
    Rows,
    /// The first device has the left half, the second the right one.
    Columns,
}

impl Cut {
    fn sharding(&self) -> Sharding {
        let devices = DeviceList::new(self.devices.iter().copied().map(DeviceId));
        let tiles =
            |dims: [i64; 2]| OpSharding::tiled(TileAssignment::iota(dims, [2], [0]).unwrap());
        let tiles = match self.by {
            By::Whole => {
                return HloSharding::replicated(devices, MemoryKind::new("device")).unwrap().into();
            }
            By::Rows => tiles([2, 1]),
            By::Columns => tiles([1, 2]),
        };
        HloSharding::new(devices, MemoryKind::new("device"), tiles).unwrap().into()
    }

    /// Returns another layout that can hold an array of these dimensions in halves.
    fn fitting(self, [rows, columns]: [usize; 2]) -> Self {
        let even = match self.by {
            By::Whole => true,
            By::Rows => rows % 2 == 0,
            By::Columns => columns % 2 == 0,
        };
        if even && (self.by == By::Whole || self.devices.len() == 2) {
            return self;
        }
        Self { by: By::Whole, ..self }
    }

    /// # Errors
    /// Returns NOT_FOUND for a device that the server does not have.
    fn check(&self) -> Result<(), StatusCode> {
        if self.devices.iter().all(|device| *device < 2) {
            Ok(())
        } else {
            Err(StatusCode::NotFound)
        }
    }

    /// Returns the first row and column of each shard, and its dimensions.
    fn parts(&self, [rows, columns]: [usize; 2]) -> Vec<([usize; 2], [usize; 2])> {
        let count = self.devices.len();
        (0..count)
            .map(|index| match self.by {
                By::Whole => ([0, 0], [rows, columns]),
                By::Rows => ([index * rows / 2, 0], [rows / 2, columns]),
                By::Columns => ([0, index * columns / 2], [rows, columns / 2]),
            })
            .collect()
    }
}

/// An array: each shard's bytes, row by row, or the reason why there are none.
#[derive(Clone, Debug)]
struct Value {
    dims: [usize; 2],
    cut: Cut,
    shards: Vec<Result<Vec<u8>, StatusCode>>,
}

impl Value {
    fn new(dims: [usize; 2], cut: Cut, bytes: &Result<Vec<u8>, StatusCode>) -> Self {
        let cells = |(origin, shape): ([usize; 2], [usize; 2])| {
            bytes.as_ref().map_err(|code| *code).map(|bytes| block(bytes, dims, origin, shape))
        };
        let shards = cut.parts(dims).into_iter().map(cells).collect();
        Self { dims, cut, shards }
    }

    fn spec(&self) -> ArraySpec {
        spec(self.dims, &self.cut)
    }

    /// Returns the bytes that a client reads: the needed shards, in the order of the devices.
    fn read(&self) -> Result<Vec<u8>, StatusCode> {
        let mut whole = vec![0; self.dims[0] * self.dims[1]];
        for (shard, (origin, shape)) in self.shards.iter().zip(self.cut.parts(self.dims)) {
            let bytes = shard.clone()?;
            if self.cut.by == By::Whole {
                return Ok(bytes);
            }
            for row in 0..shape[0] {
                let to = (origin[0] + row) * self.dims[1] + origin[1];
                whole[to..to + shape[1]]
                    .copy_from_slice(&bytes[row * shape[1]..(row + 1) * shape[1]]);
            }
        }
        Ok(whole)
    }

    /// Returns the failure of the first failed shard.
    fn ready(&self) -> Result<(), StatusCode> {
        self.shards.iter().find_map(|shard| shard.as_ref().err()).map_or(Ok(()), |code| Err(*code))
    }

    fn single(&self, index: usize) -> Self {
        let (_, dims) = self.cut.parts(self.dims)[index];
        let cut = Cut { by: By::Whole, devices: vec![self.cut.devices[index]] };
        Self { dims, cut, shards: vec![self.shards[index].clone()] }
    }

    fn resharded(&self, cut: Cut) -> Self {
        let own: Vec<_> = self.cut.parts(self.dims);
        let wanted = cut.parts(self.dims).into_iter().zip(&cut.devices);
        let shards = wanted.map(|(part, device)| {
            let same = || (0..own.len()).filter(|index| own[*index] == part);
            let same_device = same().find(|index| self.cut.devices[*index] == *device);
            if let Some(index) = same_device.or_else(|| same().next()) {
                return self.shards[index].clone();
            }
            // A half in the other direction needs both halves; a half of a replicated array needs
            // the first copy.
            let needed = if self.cut.by == By::Whole { 1 } else { self.shards.len() };
            for shard in &self.shards[..needed] {
                shard.clone()?;
            }
            Ok(block(&self.read()?, self.dims, part.0, part.1))
        });
        let shards = shards.collect();
        Self { dims: self.dims, cut, shards }
    }
}

fn spec(dims: [usize; 2], cut: &Cut) -> ArraySpec {
    ArraySpec::new(DType::U8, Shape::new(dims.map(|size| size as i64)).unwrap(), cut.sharding())
}

fn block(bytes: &[u8], dims: [usize; 2], origin: [usize; 2], shape: [usize; 2]) -> Vec<u8> {
    (origin[0]..origin[0] + shape[0])
        .flat_map(|row| &bytes[row * dims[1] + origin[1]..][..shape[1]])
        .copied()
        .collect()
}

#[derive(Clone, Debug)]
enum State {
    Live(Value),
    Deleted,
    /// The request that should have created it failed.
    Failed(StatusCode),
}

#[derive(Default)]
struct Model {
    handles: HashMap<u64, State>,
}

impl Model {
    fn array(&self, handle: u64) -> Result<Value, StatusCode> {
        match self.handles.get(&handle) {
            None => Err(StatusCode::NotFound),
            Some(State::Live(value)) => Ok(value.clone()),
            Some(State::Deleted) => Err(StatusCode::InvalidArgument),
            Some(State::Failed(code)) => Err(*code),
        }
    }

    /// Returns the live arrays that satisfy `wanted`, by handle.
    fn live(&self, wanted: impl Fn(&Value) -> bool) -> Vec<u64> {
        let live = self.handles.iter().filter_map(|(handle, state)| match state {
            State::Live(value) if wanted(value) => Some(*handle),
            _ => None,
        });
        let mut live: Vec<_> = live.collect();
        live.sort_unstable();
        live
    }

    fn pick(&self, pick: Pick) -> u64 {
        pick.among(self.live(|_| true))
    }

    /// Picks two different arrays of the same dimensions, each on one device.
    fn pick_pair(&self, [first, second]: [Pick; 2]) -> [u64; 2] {
        let single = |value: &Value| value.shards.len() == 1;
        let first = first.among(self.live(single));
        let beside = |value: &Value| {
            self.array(first).is_ok_and(|first| {
                single(value) && value.dims == first.dims && value.cut.devices != first.cut.devices
            })
        };
        [first, second.among(self.live(beside))]
    }

    /// Picks unused handles for results.
    fn pick_free<const N: usize>(&self, picks: [Pick; N]) -> [u64; N] {
        let mut free = (1..).filter(|handle| !self.handles.contains_key(handle));
        picks.map(|pick| pick.among(free.next()))
    }

    /// Creates arrays under their handles; on failure, the unused handles keep the reason.
    fn create(
        &mut self,
        wanted: &[u64],
        made: Result<Vec<Value>, StatusCode>,
    ) -> Result<(), StatusCode> {
        let known = |handle: &u64| self.handles.contains_key(handle);
        let twice = (1..wanted.len()).any(|at| wanted[..at].contains(&wanted[at]));
        let made = made.and_then(|made| match made.len() == wanted.len() {
            false => Err(StatusCode::InvalidArgument),
            true if wanted.iter().any(known) => Err(StatusCode::AlreadyExists),
            true if twice => Err(StatusCode::InvalidArgument),
            true => Ok(made),
        });
        match made {
            Ok(made) => {
                self.handles.extend(wanted.iter().copied().zip(made.into_iter().map(State::Live)));
                Ok(())
            }
            Err(code) => {
                for handle in wanted {
                    self.handles.entry(*handle).or_insert(State::Failed(code));
                }
                Err(code)
            }
        }
    }

    /// Creates arrays from arrays: a failure in the sources is the answer, and continues in the
    /// results.
    fn rearrange(
        &mut self,
        inputs: &[u64],
        wanted: &[u64],
        semantics: i32,
        plan: impl FnOnce(&[Value]) -> Result<Vec<Value>, StatusCode>,
    ) -> Result<(), StatusCode> {
        let arrays = match semantics {
            1..=3 => inputs.iter().map(|handle| self.array(*handle)).collect(),
            _ => Err(StatusCode::InvalidArgument),
        };
        let arrays: Result<Vec<Value>, _> = arrays;
        let made = arrays.as_ref().map_err(|code| *code).and_then(|arrays| plan(arrays));
        self.create(wanted, made)?;
        if semantics == ArrayCopySemantics::DonateInput.number() {
            self.handles.extend(inputs.iter().map(|handle| (*handle, State::Deleted)));
        }
        arrays.into_iter().flatten().try_for_each(|array| array.ready())
    }
}

/// A random choice among the handles that exist when its step is taken.
#[derive(Clone, Copy, Debug)]
struct Pick(u8);

impl Pick {
    /// Returns one of `handles`, or sometimes any handle from 1 to 8, as an untrusted client may
    /// send.
    fn among(self, handles: impl IntoIterator<Item = u64>) -> u64 {
        let handles: Vec<_> = handles.into_iter().collect();
        let choice = usize::from(self.0 / 8);
        match handles.get(choice % handles.len().max(1)) {
            Some(handle) if !self.0.is_multiple_of(8) => *handle,
            _ => choice as u64 % 8 + 1,
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put { to: Pick, dims: [usize; 2], first: u8, cut: Cut },
    Error { to: Pick, dims: [usize; 2], cut: Cut },
    Copy { from: Pick, to: Pick, devices: Vec<i32>, semantics: i32 },
    Replica { from: Pick, to: Pick, semantics: i32 },
    Disassemble { from: Pick, to: [Pick; 2], count: Option<usize>, semantics: i32 },
    Assemble { from: [Pick; 2], to: Pick, by: By, semantics: i32 },
    Remap { from: [Pick; 2], to: Pick, semantics: i32 },
    Reshard { from: Pick, to: Pick, cut: Cut, semantics: i32 },
    Bitcast { from: Pick, to: Pick, semantics: i32 },
    Get(Pick),
    Ready(Pick),
    IsDeleted(Pick),
    Delete(Pick),
    Destruct(Pick),
}

fn step() -> impl Strategy<Value = Step> {
    let handle = || any::<u8>().prop_map(Pick);
    let dims = || prop_oneof![Just([2, 2]), Just([4, 6]), Just([2, 8]), Just([6, 4])];
    let devices = || {
        prop_oneof![
            3 => Just(vec![0]),
            3 => Just(vec![1]),
            8 => Just(vec![0, 1]),
            4 => Just(vec![1, 0]),
            1 => Just(vec![2]),
            1 => Just(vec![1, 2]),
        ]
    };
    let by = || prop_oneof![Just(By::Whole), Just(By::Rows), Just(By::Columns)];
    let cut = || (by(), devices()).prop_map(|(by, devices)| Cut { by, devices });
    let semantics =
        || prop_oneof![1 => Just(0), 16 => Just(1), 16 => Just(2), 16 => Just(3), 1 => Just(4)];
    prop_oneof![
        6 => (handle(), dims(), any::<u8>(), cut())
            .prop_map(|(to, dims, first, cut)| Step::Put { to, dims, first, cut: cut.fitting(dims) }),
        1 => (handle(), dims(), cut()).prop_map(|(to, dims, cut)| Step::Error { to, dims, cut: cut.fitting(dims) }),
        2 => (handle(), handle(), devices(), semantics())
            .prop_map(|(from, to, devices, semantics)| Step::Copy { from, to, devices, semantics }),
        2 => (handle(), handle(), semantics())
            .prop_map(|(from, to, semantics)| Step::Replica { from, to, semantics }),
        3 => (handle(), [handle(), handle()], prop_oneof![8 => Just(None), 1 => (1..3_usize).prop_map(Some)], semantics())
            .prop_map(|(from, to, count, semantics)| Step::Disassemble { from, to, count, semantics }),
        3 => ([handle(), handle()], handle(), by(), semantics())
            .prop_map(|(from, to, by, semantics)| Step::Assemble { from, to, by, semantics }),
        3 => ([handle(), handle()], handle(), semantics())
            .prop_map(|(from, to, semantics)| Step::Remap { from, to, semantics }),
        4 => (handle(), handle(), cut(), semantics())
            .prop_map(|(from, to, cut, semantics)| Step::Reshard { from, to, cut, semantics }),
        2 => (handle(), handle(), semantics())
            .prop_map(|(from, to, semantics)| Step::Bitcast { from, to, semantics }),
        4 => handle().prop_map(Step::Get),
        1 => handle().prop_map(Step::Ready),
        1 => handle().prop_map(Step::IsDeleted),
        2 => handle().prop_map(Step::Delete),
        4 => handle().prop_map(Step::Destruct),
    ]
}

/// A session with its model.
struct Checked {
    client: Client,
    model: Model,
    version: SerDesVersion,
    buffer: u64,
}

impl Checked {
    /// Compares the server's answer to a step with the model's.
    async fn take(
        &mut self,
        step: Step,
    ) -> (Result<Vec<u8>, StatusCode>, Result<Vec<u8>, StatusCode>) {
        let nothing = |outcome: Result<(), StatusCode>| outcome.map(|()| Vec::new());
        match step {
            Step::Get(pick) => {
                let handle = self.model.pick(pick);
                let expected = self.model.array(handle).and_then(|array| array.read());
                (self.client.get(handle, self.buffer).await.map(|bytes| bytes.to_vec()), expected)
            }
            Step::IsDeleted(pick) => {
                let array_handle = pick.among(1..9);
                let expected = match self.model.handles.get(&array_handle) {
                    Some(State::Deleted) => Ok(vec![1]),
                    _ => self.model.array(array_handle).map(|_| vec![0]),
                };
                let request = IsArrayDeletedRequest { array_handle };
                let found = self.client.ask(Request::IsArrayDeletedRequest(request)).await;
                let found = found.map(|answer| match answer {
                    Response::IsArrayDeletedResponse(answer) => vec![u8::from(answer.deleted)],
                    _ => Vec::new(),
                });
                (found, expected)
            }
            Step::Delete(pick) => {
                let handle = self.model.pick(pick);
                let expected = match self.model.handles.get_mut(&handle) {
                    None => Err(StatusCode::NotFound),
                    Some(State::Failed(code)) => Err(*code),
                    Some(state) => {
                        *state = State::Deleted;
                        Ok(())
                    }
                };
                (nothing(self.client.delete(handle).await), nothing(expected))
            }
            Step::Destruct(pick) => {
                let handle = pick.among(1..9);
                let expected =
                    self.model.handles.remove(&handle).map(drop).ok_or(StatusCode::NotFound);
                (nothing(self.client.destruct(handle).await), nothing(expected))
            }
            step => {
                let Some((request, expected)) = self.request(step).await else {
                    return (Ok(Vec::new()), Ok(Vec::new()));
                };
                (nothing(self.client.ask(request).await.map(drop)), nothing(expected))
            }
        }
    }

    /// Returns the request of a step that creates arrays or waits for them; `None` if the step does
    /// not apply now.
    async fn request(&mut self, step: Step) -> Option<(Request, Result<(), StatusCode>)> {
        let (model, version) = (&mut self.model, self.version);
        let written = |dims, cut: &Cut| spec(dims, cut).to_proto(version).unwrap();
        Some(match step {
            Step::Put { to, dims, first, cut } => {
                let [to] = model.pick_free([to]);
                let bytes: Vec<u8> =
                    (0..dims[0] * dims[1]).map(|at| first.wrapping_add(at as u8)).collect();
                let spec = spec(dims, &cut);
                let strides = requests::row_major_strides(DType::U8, spec.shape());
                let mut request = requests::make_array(
                    DType::U8,
                    spec.shape(),
                    spec.sharding(),
                    strides,
                    self.buffer,
                    version,
                )
                .unwrap();
                request.array_handle = Some(to);
                self.client.session.store(self.buffer, bytes.clone().into()).await.unwrap();
                let made = cut.check().map(|()| vec![Value::new(dims, cut, &Ok(bytes))]);
                (Request::MakeArrayFromHostBufferRequest(request), model.create(&[to], made))
            }
            Step::Error { to, dims, cut } => {
                let [to] = model.pick_free([to]);
                let code = StatusCode::DataLoss;
                let error = StatusProto {
                    code: code.number(),
                    message: "lost".into(),
                    ..Default::default()
                };
                let request = MakeErrorArraysRequest {
                    error: Some(error),
                    array_specs: vec![written(dims, &cut)],
                    array_handles: vec![to],
                };
                let made = cut.check().map(|()| vec![Value::new(dims, cut, &Err(code))]);
                (Request::MakeErrorArraysRequest(request), model.create(&[to], made))
            }
            Step::Copy { from, to, devices, semantics } => {
                let (from, [to]) = (model.pick(from), model.pick_free([to]));
                let ids: Vec<_> = devices.iter().copied().map(DeviceId).collect();
                let mut request =
                    requests::copy_arrays(vec![from], &ids, &MemoryKind::new("device"), vec![to]);
                request.copy_semantics = semantics;
                let expected = model.rearrange(&[from], &[to], semantics, |arrays| {
                    if arrays[0].shards.len() != devices.len() {
                        return Err(StatusCode::InvalidArgument);
                    }
                    let cut = Cut { by: arrays[0].cut.by, devices };
                    cut.check()?;
                    Ok(vec![Value { cut, ..arrays[0].clone() }])
                });
                (Request::CopyArraysRequest(request), expected)
            }
            Step::Replica { from, to, semantics } => {
                let (from, [to]) = (model.pick(from), model.pick_free([to]));
                let mut request = requests::fully_replicated_shard(from, to);
                request.copy_semantics = semantics;
                let expected =
                    model.rearrange(&[from], &[to], semantics, |arrays| match arrays[0].cut.by {
                        By::Whole => Ok(vec![arrays[0].single(0)]),
                        _ => Err(StatusCode::InvalidArgument),
                    });
                (Request::FullyReplicatedShardRequest(request), expected)
            }
            Step::Disassemble { from, to, count, semantics } => {
                let (from, mut to) = (model.pick(from), model.pick_free(to).to_vec());
                let shards = model.array(from).map_or(2, |array| array.shards.len());
                to.truncate(count.unwrap_or(shards));
                let mut request = requests::disassemble(from, to.clone());
                request.copy_semantics = semantics;
                let expected = model.rearrange(&[from], &to, semantics, |arrays| {
                    Ok((0..arrays[0].shards.len()).map(|index| arrays[0].single(index)).collect())
                });
                (Request::DisassembleIntoSingleDeviceArraysRequest(request), expected)
            }
            Step::Assemble { from, to, by, semantics } => {
                let (from, [to]) = (model.pick_pair(from), model.pick_free([to]));
                let device = |handle| model.array(handle).ok().map(|array| array.cut.devices[0]);
                let mut devices = [device(from[0]).unwrap_or(0), device(from[1]).unwrap_or(1)];
                if devices[0] == devices[1] {
                    devices = [0, 1];
                }
                let cut = Cut { by, devices: devices.to_vec() };
                let [rows, columns] = model.array(from[0]).map_or([2, 2], |array| array.dims);
                let dims = match cut.by {
                    By::Whole => [rows, columns],
                    By::Rows => [rows * 2, columns],
                    By::Columns => [rows, columns * 2],
                };
                let mut request =
                    requests::assemble(&spec(dims, &cut), from.to_vec(), to, version).unwrap();
                request.copy_semantics = semantics;
                let expected = model.rearrange(&from, &[to], semantics, |arrays| {
                    cut.check()?;
                    let fits =
                        |(array, (device, (_, shape))): (&Value, (&i32, (_, [usize; 2])))| {
                            array.cut.devices[..] == [*device] && array.dims == shape
                        };
                    let wanted = cut.devices.iter().zip(cut.parts(dims));
                    if cut.devices.len() != arrays.len() || !arrays.iter().zip(wanted).all(fits) {
                        return Err(StatusCode::InvalidArgument);
                    }
                    let shards = arrays.iter().map(|array| array.shards[0].clone()).collect();
                    Ok(vec![Value { dims, cut, shards }])
                });
                (Request::AssembleArrayFromSingleDeviceArraysRequest(request), expected)
            }
            Step::Remap { from, to, semantics } => {
                let (from, [to]) = (model.pick_pair(from), model.pick_free([to]));
                // The rows of two arrays on two devices become one array: as mappings or as
                // devices, depending on the version.
                let (Ok(upper), Ok(lower)) = (model.array(from[0]), model.array(from[1])) else {
                    return None;
                };
                let devices = [&upper, &lower].map(|array| array.cut.devices.clone()).concat();
                if devices.len() != 2 || devices[0] == devices[1] || upper.dims != lower.dims {
                    return None;
                }
                let made = Value {
                    dims: [upper.dims[0] * 2, upper.dims[1]],
                    cut: Cut { by: By::Rows, devices },
                    shards: [&upper, &lower].map(|array| array.shards[0].clone()).to_vec(),
                };
                let one = |at| [Interval::new(at, at + 1, 1)];
                let plan = RemapPlan::new([upper.spec(), lower.spec()], [made.spec()])
                    .with_mapping(0, 0, &one(0), &one(0))
                    .and_then(|plan| plan.with_mapping(1, 0, &one(0), &one(1)))
                    .unwrap();
                let given = ArrayCopySemantics::from_number(semantics)
                    .unwrap_or(ArrayCopySemantics::ReuseInput);
                let mut request =
                    requests::remap_arrays(&plan, from.to_vec(), given, vec![to], version).unwrap();
                request.copy_semantics = semantics;
                let expected = model.rearrange(&from, &[to], semantics, |_| match given {
                    // Two inputs of one output must be donated.
                    ArrayCopySemantics::DonateInput => Ok(vec![made]),
                    _ => Err(StatusCode::InvalidArgument),
                });
                (Request::RemapArraysRequest(request), expected)
            }
            Step::Reshard { from, to, cut, semantics } => {
                let (from, [to]) = (model.pick(from), model.pick_free([to]));
                let dims = model.array(from).map_or([2, 2], |array| array.dims);
                let cut = cut.fitting(dims);
                let request = ReshardArraysRequest {
                    array_handles: vec![from],
                    array_specs: vec![written(dims, &cut)],
                    copy_semantics: semantics,
                    result_handles: vec![to],
                };
                let expected = model.rearrange(&[from], &[to], semantics, |arrays| {
                    cut.check()?;
                    Ok(vec![arrays[0].resharded(cut)])
                });
                (Request::ReshardArraysRequest(request), expected)
            }
            Step::Bitcast { from, to, semantics } => {
                let (from, [to]) = (model.pick(from), model.pick_free([to]));
                // Each shard's bytes, with the dimensions of its shape swapped.
                let (dims, cut) = match model.array(from) {
                    Ok(array) => (array.dims, array.cut),
                    Err(_) => ([2, 2], Cut { by: By::Whole, devices: vec![0] }),
                };
                let turned = Cut {
                    by: match cut.by {
                        By::Whole => By::Whole,
                        By::Rows => By::Columns,
                        By::Columns => By::Rows,
                    },
                    devices: cut.devices,
                };
                let dims = [dims[1], dims[0]];
                let request = BitcastArraysRequest {
                    array_handles: vec![from],
                    array_specs: vec![written(dims, &turned)],
                    copy_semantics: semantics,
                    result_handles: vec![to],
                };
                let expected = model.rearrange(&[from], &[to], semantics, |arrays| {
                    Ok(vec![Value { dims, cut: turned, shards: arrays[0].shards.clone() }])
                });
                (Request::BitcastArraysRequest(request), expected)
            }
            Step::Ready(pick) => {
                let handle = model.pick(pick);
                let expected = model.array(handle).and_then(|array| array.ready());
                let request = CheckValueReadyRequest { value_handles: vec![handle] };
                (Request::CheckValueReadyRequest(request), expected)
            }
            Step::Get(_) | Step::IsDeleted(_) | Step::Delete(_) | Step::Destruct(_) => return None,
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_requests_do_what_the_model_says(
        steps in proptest::collection::vec(step(), 1..60),
        serdes in 0..=6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = server(2);
            let ranges = Ranges::supported().with_serdes(VersionRange::new(0, serdes).unwrap());
            let client = Client::with_ranges(&server, ranges);
            let version = client.session.agreement().serdes();
            prop_assert_eq!(version.number(), serdes);
            let mut checked = Checked { client, model: Model::default(), version, buffer: 1000 };
            for step in steps {
                checked.buffer += 1;
                let (found, expected) = checked.take(step.clone()).await;
                prop_assert_eq!(found, expected, "{:?}", step);
                let metrics = server.metrics();
                let live = checked.model.handles.values().filter_map(|state| match state {
                    State::Live(value) => Some(value.shards.iter().filter(|shard| shard.is_ok()).count() as u64),
                    _ => None,
                });
                let live: u64 = live.sum();
                prop_assert_eq!(metrics.arrays, checked.model.handles.len() as u64);
                prop_assert!(metrics.shards <= live, "{} shards of {live} at {step:?}", metrics.shards);
                prop_assert_eq!(metrics.host_buffers, 0, "{:?}", step);
            }
            drop(checked);
            let left = server.metrics();
            prop_assert_eq!([left.sessions, left.arrays, left.shards, left.host_buffers, left.tasks], [0; 5]);
            Ok(())
        })?;
    }
}
