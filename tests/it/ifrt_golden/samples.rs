//! The values behind the golden bytes. Samples are only added, never changed or removed.

use std::fmt::Debug;

use bytes::Bytes;
use prost::{Message, Name};
use serdes::{
    codec::{DecodeError, DeserializeOptions, EncodeError, FromProto, ToProto, Validation},
    ifrt::{
        sharding::ShardShapes,
        sharding_spec::{
            ConcreteEvenShardingSpec, ConcreteShardingSpec, HloShardingSpec, OpaqueShardingSpec,
            ShardingParamShardingSpec, SingleDeviceShardingSpec,
        },
        xla::{OpSharding, TileAssignment},
        *,
    },
    version::SerDesVersion,
};

type Write = Box<dyn Fn(SerDesVersion) -> Result<Bytes, EncodeError>>;
type CanWrite = Box<dyn Fn(SerDesVersion) -> Result<(), EncodeError>>;
type Read = Box<dyn Fn(Bytes) -> Result<(), DecodeError>>;

/// A value with the operations on it.
pub(crate) struct Sample {
    pub(crate) type_name: &'static str,
    /// Distinguishes samples of the same type; empty for the first.
    pub(crate) case: &'static str,
    /// The full name of the message.
    pub(crate) message: String,
    /// The value as text for people.
    pub(crate) value: String,
    pub(crate) write: Write,
    pub(crate) can_write: CanWrite,
    /// Reads bytes in parity and in strict mode; panics if the value differs.
    pub(crate) read: Read,
}

pub(crate) fn sample<T, P>(case: &'static str, value: T) -> Sample
where
    P: Message + Name + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + Clone + PartialEq + Debug + 'static,
{
    let (first, second, text) = (value.clone(), value.clone(), format!("{value:?}"));
    Sample {
        type_name: T::NAME,
        case,
        message: P::full_name(),
        value: text,
        write: Box::new(move |version| first.to_bytes(version)),
        can_write: Box::new(move |version| second.can_serialize_at(version)),
        read: Box::new(move |bytes| {
            for validation in [Validation::Parity, Validation::Strict] {
                let options = options().with_validation(validation);
                assert_eq!(T::from_bytes(bytes.clone(), &options)?, value);
            }
            Ok(())
        }),
    }
}

pub(crate) fn options() -> DeserializeOptions {
    with_devices(AnyDevice)
        .with(DeserializeProgramOptions::new(AnyDevice))
        .with(IfrtIrExecutableVersionDeserializeOptions::new(2))
}

fn shape(dims: impl AsRef<[i64]>) -> Shape {
    Shape::new(dims).unwrap()
}

fn dynamic(text: &str) -> DynamicShape {
    text.parse().unwrap()
}

fn tag(dynamic: &[bool]) -> BoundedDynamicShapeTag {
    BoundedDynamicShapeTag::new(dynamic).unwrap()
}

fn layout(text: &str) -> PjRtLayout {
    text.parse().unwrap()
}

fn device() -> MemoryKind {
    MemoryKind::new("device")
}

fn param(text: &str) -> ShardingParam {
    text.parse().unwrap()
}

fn quarters() -> OpSharding {
    OpSharding::tiled(TileAssignment::iota([2, 2], [2, 2], [1, 0]).unwrap())
}

fn halves_even(devices: DeviceList) -> ConcreteEvenSharding {
    ConcreteEvenSharding::new(devices, device(), shape([4, 2]), shape([2, 2]), false).unwrap()
}

fn static_shapes() -> ShardShapes {
    ShardShapes::Static {
        shape: shape([10, 20]),
        shard_shapes: vec![shape([3, 20]), shape([7, 20])],
    }
}

fn dynamic_shapes() -> ShardShapes {
    ShardShapes::Dynamic {
        shape: dynamic("[<=10,20]"),
        shard_shapes: vec![dynamic("[<=3,20]"), dynamic("[<=7,20]")],
    }
}

fn attributes() -> AttributeMap {
    AttributeMap::from_iter([
        ("bool", AttributeValue::Bool(true)),
        ("false", AttributeValue::Bool(false)),
        ("float", 1.5_f32.into()),
        ("int64", (-5_i64).into()),
        ("list", vec![1_i64, -2, i64::MIN].into()),
        ("string", vec![b'a', 0, 0xff].into()),
    ])
}

/// Returns all samples.
pub(crate) fn samples() -> Vec<Sample> {
    let mut all = simple();
    all.extend(shardings());
    all.extend(sharding_specs());
    all.extend(array_specs());
    all.extend(super::programs::programs());
    all
}

fn dtype_case(dtype: DType) -> &'static str {
    // Every type is written; F32 is the sample without a case.
    if dtype == DType::F32 { "" } else { dtype.name() }
}

fn simple() -> Vec<Sample> {
    let two = DeviceList::from([1, 0]);
    let mut all: Vec<_> =
        DType::ALL.iter().map(|dtype| sample(dtype_case(*dtype), *dtype)).collect();
    all.extend([
        sample("", shape([4, 2])),
        sample("scalar", Shape::scalar()),
        sample("empty", shape([0, i64::MAX])),
        sample("", tag(&[true, false])),
        sample("", dynamic("[<=8,128]")),
        sample("", Index::new([0, 256])),
        sample("negative", Index::new([-1])),
        sample("", IndexDomain::new(Index::new([0, 256]), shape([512, 256])).unwrap()),
        sample("", two),
        sample("none", DeviceList::from([])),
        sample("negative", DeviceList::from([-1, i32::MIN, i32::MAX, 3, 3])),
        sample("many", (0..300).map(DeviceId).collect::<DeviceList>()),
        sample("", CompactLayout::new([1, 0, 2]).unwrap()),
        sample("scalar", CompactLayout::new([]).unwrap()),
        sample("", layout("{1,0}")),
        sample("tiles", layout("{1,0:T(8,128)(2,1)}")),
        sample("", attributes()),
        sample("empty", AttributeMap::new()),
        sample("", ExecuteOptions::new().with_launch_id(1234).with_fill_status(true)),
        sample(
            "all",
            ExecuteOptions::new()
                .with_launch_id(-1)
                .with_non_donatable_input_indices([3, 0, 7])
                .with_fill_status(true)
                .with_execution_stream_id(1 << 40)
                .with_custom_options(attributes()),
        ),
    ]);
    all
}

fn shardings() -> Vec<Sample> {
    let two = || DeviceList::from([1, 0]);
    vec![
        sample("", SingleDeviceSharding::new(DeviceId(0))),
        sample("device", SingleDeviceSharding::new(DeviceId(3)).with_memory_kind("device")),
        sample("empty", SingleDeviceSharding::new(DeviceId(3)).with_memory_kind("")),
        sample("", OpaqueSharding::new(two(), device())),
        sample("default", OpaqueSharding::new(DeviceList::from([]), MemoryKind::unset())),
        sample("", ConcreteSharding::new(two(), device(), static_shapes()).unwrap()),
        sample(
            "dynamic",
            ConcreteSharding::new(two(), MemoryKind::unset(), dynamic_shapes()).unwrap(),
        ),
        sample("", halves_even(two())),
        sample(
            "replicated",
            ConcreteEvenSharding::new(two(), MemoryKind::unset(), shape([3]), shape([3]), true)
                .unwrap(),
        ),
        sample("", param("2x1 to [0,1] on 2x3")),
        sample("scalar", param(" to [0] on 2")),
        sample("unreduced", param("2x1 to [1,0] on 3x2 unreduced [0]")),
        sample("", ShardingParamSharding::new(param("2x1 to [0] on 2"), two(), device()).unwrap()),
        sample(
            "unreduced",
            ShardingParamSharding::new(
                param("1 to [0] on 2 unreduced [0]"),
                two(),
                MemoryKind::unset(),
            )
            .unwrap(),
        ),
        sample("", HloSharding::replicated(two(), device()).unwrap()),
        sample(
            "tiled",
            HloSharding::new(DeviceList::from([0, 1, 2, 3]), MemoryKind::unset(), quarters())
                .unwrap(),
        ),
    ]
}

fn sharding_specs() -> Vec<Sample> {
    vec![
        sample("", SingleDeviceShardingSpec),
        sample("", OpaqueShardingSpec::new(2).unwrap()),
        sample("", ConcreteShardingSpec::new(static_shapes())),
        sample("dynamic", ConcreteShardingSpec::new(dynamic_shapes())),
        sample("", ConcreteEvenShardingSpec::new(2, shape([4]), shape([2]), false).unwrap()),
        sample("", ShardingParamShardingSpec::new(param("2x1 to [0] on 2")).unwrap()),
        sample(
            "unreduced",
            ShardingParamShardingSpec::new(param("1 to [0] on 2 unreduced [0]")).unwrap(),
        ),
        sample("", HloShardingSpec::new(4, quarters()).unwrap()),
    ]
}

fn array_specs() -> Vec<Sample> {
    let two = || DeviceList::from([1, 0]);
    let single = || SingleDeviceSharding::new(DeviceId(0));
    vec![
        sample("", ArraySpec::new(DType::F32, shape([512, 512]), single())),
        sample(
            "layout",
            ArraySpec::new(DType::BF16, shape([16, 128]), single())
                .with_layout(layout("{1,0:T(8,128)}")),
        ),
        sample("even", ArraySpec::new(DType::S32, shape([4, 2]), halves_even(two()))),
        sample(
            "hlo",
            ArraySpec::new(
                DType::F32,
                shape([4, 4]),
                HloSharding::new(DeviceList::from([0, 1, 2, 3]), device(), quarters()).unwrap(),
            ),
        ),
        sample(
            "unreduced",
            ArraySpec::new(
                DType::F64,
                shape([8]),
                ShardingParamSharding::new(
                    param("1 to [0] on 2 unreduced [0]"),
                    two(),
                    MemoryKind::unset(),
                )
                .unwrap(),
            ),
        ),
        sample("f6", ArraySpec::new(DType::F6E2M3FN, shape([8]), single())),
        sample(
            "",
            AbstractArraySpec::new(
                DType::F32,
                shape([4, 4]),
                HloShardingSpec::new(4, quarters()).unwrap(),
            ),
        ),
        sample(
            "all",
            AbstractArraySpec::new(DType::U8, Shape::scalar(), SingleDeviceShardingSpec)
                .with_memory_kind("pinned_host")
                .with_layout(layout("{}")),
        ),
    ]
}
