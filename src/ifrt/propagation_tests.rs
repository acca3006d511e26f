//! Tests that the requested version reaches every nested value: each type's table of formats
//! records the requested numbers.

use std::collections::BTreeSet;

use prost::Message;

use super::{
    sharding::ShardShapes,
    sharding_spec::{
        ConcreteEvenShardingSpec, ConcreteShardingSpec, HloShardingSpec, ShardingParamShardingSpec,
    },
    testing::{shape, versions},
    xla::{OpSharding, TileAssignment},
    *,
};
use crate::{
    codec::{
        Serialized, ToProto,
        testing::{self, record},
    },
    version::Ifrt,
};

/// Writes `value` at every version that has it, as a message and as bytes; `expected` are the types
/// at every nesting.
fn reaches<T>(value: &T, expected: &[&str])
where
    T: ToProto<Proto: Message>,
{
    testing::check_propagation::<Ifrt, _>(value).unwrap();
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    let mut written = 0;
    for version in versions() {
        let (message, requests) = record(|| value.to_proto(version));
        let (bytes, of_bytes) = record(|| value.to_bytes(version));
        for request in requests.iter().chain(&of_bytes) {
            assert_eq!(request.requested, version.number(), "{request:?}");
        }
        let Ok(message) = message else { continue };
        assert_eq!(message.encode_to_vec(), bytes.unwrap());
        // When writing bytes directly, types whose only format is 0 need not ask; the bytes equal
        // those of the message.
        let reached: BTreeSet<&str> = requests.iter().map(|request| request.type_name).collect();
        assert_eq!(reached, expected, "{version}");
        written += 1;
    }
    assert!(written > 0);
}

fn tiled() -> HloSharding {
    let tiles = TileAssignment::iota([2], [2], [0]).unwrap();
    HloSharding::new([0, 1].into(), MemoryKind::unset(), OpSharding::tiled(tiles)).unwrap()
}

fn param() -> ShardingParam {
    "2 to [0] on 2".parse().unwrap()
}

fn static_shapes() -> ShardShapes {
    ShardShapes::Static { shape: shape([4]), shard_shapes: vec![shape([1]), shape([3])] }
}

fn dynamic_shapes() -> ShardShapes {
    let shape: DynamicShape = "[<=4]".parse().unwrap();
    ShardShapes::Dynamic { shape: shape.clone(), shard_shapes: vec![shape.clone(), shape] }
}

#[test]
fn shapes_domains_and_options_hand_the_version_on() {
    let dynamic: DynamicShape = "[<=4]".parse().unwrap();
    reaches(&dynamic, &["DynamicShape", "Shape", "BoundedDynamicShapeTag"]);
    reaches(&IndexDomain::whole(shape([4])), &["IndexDomain", "Index", "Shape"]);
    let options = ExecuteOptions::new().with_custom_options(AttributeMap::new());
    reaches(&options, &["ExecuteOptions", "AttributeMap"]);
}

#[test]
fn shardings_hand_the_version_on() {
    let (two, kind) = (|| DeviceList::from([0, 1]), MemoryKind::unset);
    reaches(&OpaqueSharding::new(two(), kind()), &["OpaqueSharding", "DeviceList"]);
    let concrete = ConcreteSharding::new(two(), kind(), static_shapes()).unwrap();
    reaches(&concrete, &["ConcreteSharding", "DeviceList", "Shape"]);
    let concrete = ConcreteSharding::new(two(), kind(), dynamic_shapes()).unwrap();
    reaches(
        &concrete,
        &["ConcreteSharding", "DeviceList", "DynamicShape", "Shape", "BoundedDynamicShapeTag"],
    );
    let even = ConcreteEvenSharding::new_lenient(two(), kind(), shape([4]), shape([2]), false);
    reaches(&even, &["ConcreteEvenSharding", "DeviceList", "Shape"]);
    let param = ShardingParamSharding::new(param(), two(), kind()).unwrap();
    reaches(&param, &["ShardingParamSharding", "ShardingParam", "DeviceList"]);
    reaches(&tiled(), &["HloSharding", "DeviceList"]);
    reaches(&Sharding::from(tiled()), &["HloSharding", "DeviceList"]);
}

#[test]
fn sharding_specs_hand_the_version_on() {
    reaches(&ConcreteShardingSpec::new(static_shapes()), &["ConcreteShardingSpec", "Shape"]);
    reaches(
        &ConcreteShardingSpec::new(dynamic_shapes()),
        &["ConcreteShardingSpec", "DynamicShape", "Shape", "BoundedDynamicShapeTag"],
    );
    let even = ConcreteEvenShardingSpec::new(2, shape([4]), shape([2]), false).unwrap();
    reaches(&even, &["ConcreteEvenShardingSpec", "Shape"]);
    let param = ShardingParamShardingSpec::new(param()).unwrap();
    reaches(&param, &["ShardingParamShardingSpec", "ShardingParam"]);
    let hlo = HloShardingSpec::new(2, tiled().op_sharding().clone()).unwrap();
    reaches(&ShardingSpec::from(hlo.clone()), &["HloShardingSpec"]);
    let spec = AbstractArraySpec::new(DType::F32, shape([4]), hlo);
    reaches(&spec, &["AbstractArraySpec", "DType", "Shape", "HloShardingSpec"]);
}

#[test]
fn array_specs_and_what_holds_them_hand_the_version_on() {
    let spec = ArraySpec::new(DType::F32, shape([4]), tiled());
    let nested = ["ArraySpec", "DType", "Shape", "HloSharding", "DeviceList"];
    reaches(&spec, &nested);
    let program = CustomCallProgram::new("kind", "name", "text", [0, 1].into())
        .with_inputs([spec.clone()])
        .with_outputs([spec.clone()]);
    reaches(&program, &[&nested[..], &["CustomCallProgram"]].concat());
    let whole = [Interval::new(0, 2, 1)];
    let plan = RemapPlan::new([spec.clone()], [spec]).with_mapping(0, 0, &whole, &whole).unwrap();
    reaches(&plan, &[&nested[..], &["RemapPlan"]].concat());
}

#[test]
fn wrappers_hand_the_version_on() {
    for version in versions() {
        let (serialized, requests) = record(|| Serialized::of(&tiled(), version));
        assert!(serialized.is_ok());
        assert!(!requests.is_empty());
        assert!(requests.iter().all(|request| request.requested == version.number()));
        let options = crate::codec::SerializeOptions::new(version);
        let (serialized, requests) = record(|| global_registry().serialize(&tiled(), &options));
        assert!(serialized.is_ok());
        assert!(!requests.is_empty());
        assert!(requests.iter().all(|request| request.requested == version.number()));
    }
}
