//! Tests of `Serialize` and `Deserialize`: values round-trip, and values that break the rules of
//! their types are refused.

use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};

use super::{sharding_spec::OpaqueShardingSpec, *};
use crate::{
    codec::{At, ToProto},
    version::{SerDesAnyVersionAccessor, is_default_refused},
};

fn trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    text
}

/// Asserts that a value that is serialized as a message round-trips, at several versions.
fn trip_at<T>(value: &T)
where
    T: Serialize + DeserializeOwned + ToProto + PartialEq + Debug,
{
    for number in [4, 6] {
        let version = SerDesAnyVersionAccessor::get(number).unwrap();
        let text = serde_json::to_string(&At::new(version, value)).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    }
}

#[test]
fn values_come_back_from_json() {
    let shape = Shape::new([4, 2]).unwrap();
    assert_eq!(trip(&shape), "[4,2]");
    assert_eq!(trip(&DType::BF16), "\"BF16\"");
    assert_eq!(trip(&DeviceList::from([1, 0])), "[1,0]");
    assert_eq!(trip(&MemoryKind::unset()), "null");
    assert_eq!(trip(&MemoryKind::new("")), "\"\"");
    trip(&"[<=4,2]".parse::<DynamicShape>().unwrap());
    trip(&IndexDomain::new(Index::new([0, -1]), shape.clone()).unwrap());
    trip(&"2x1 to [0,1] on 2x3 unreduced [1]".parse::<ShardingParam>().unwrap());
    let devices = DeviceList::from([0, 1]);
    let even = ConcreteEvenSharding::new(
        devices.clone(),
        MemoryKind::new("device"),
        shape.clone(),
        shape.clone(),
        true,
    );
    for sharding in [
        Sharding::from(SingleDeviceSharding::new(DeviceId(3))),
        OpaqueSharding::new(devices, MemoryKind::unset()).into(),
        even.unwrap().into(),
    ] {
        let spec = ArraySpec::new(DType::F32, shape.clone(), sharding);
        trip(&spec.clone().with_layout("{1,0:T(8,128)}".parse::<PjRtLayout>().unwrap()));
        trip(&AbstractArraySpec::try_from(&spec).unwrap());
    }
    let map = AttributeMap::from_iter([("text", "a".into()), ("list", vec![1_i64, -2].into())]);
    trip(&map);
    trip(&ExecuteOptions::new().with_custom_options(map).with_launch_id(3));
}

#[test]
fn values_that_break_the_rules_of_their_types_are_refused() {
    assert!(serde_json::from_str::<Shape>("[-1]").is_err());
    assert!(serde_json::from_str::<DType>("\"F33\"").is_err());
    assert!(serde_json::from_str::<BoundedDynamicShapeTag>("[false]").is_err());
    assert!(serde_json::from_str::<DynamicShape>(r#"{"shape":[4],"tag":[true,true]}"#).is_err());
    assert!(serde_json::from_str::<IndexDomain>(r#"{"origin":[0],"shape":[]}"#).is_err());
    assert!(serde_json::from_str::<OpaqueShardingSpec>("-1").is_err());
}

#[test]
fn array_specs_from_elsewhere_follow_the_rules_of_the_wire() {
    let mut json = serde_json::to_value(AbstractArraySpec::new(
        DType::F32,
        Shape::scalar(),
        sharding_spec::SingleDeviceShardingSpec,
    ))
    .unwrap();
    json["memory_kind"] = "".into();
    json["layout"] = "{:S(5)}".into();
    let spec: AbstractArraySpec = serde_json::from_value(json).unwrap();
    assert_eq!(spec.memory_kind(), &MemoryKind::unset());
    assert_eq!(spec.layout().unwrap().xla_layout().memory_space(), 0);
}

#[test]
fn programs_and_types_of_xla_come_back_from_json() {
    let tiles = xla::TileAssignment::iota([2, 2], [2, 2], [1, 0]).unwrap();
    assert_eq!(trip(&tiles), r#"{"dimensions":[2,2],"iota":[[2,2],[1,0]]}"#);
    trip(&xla::TileAssignment::listed([2], [1, 0]).unwrap());
    trip(&xla::OpSharding::partially_replicated(tiles));
    trip(&xla::OpShardingType::Manual);
    let layout: xla::Layout = "{1,0:T(8,128)S(5)}".parse().unwrap();
    trip(&layout);
    trip(&layout.tiles()[0]);
    let shape = xla::Shape::array(xla::PrimitiveType::F32, [4, 2]).with_layout(layout.clone());
    trip(&shape);
    trip(&Layout::PjRt(layout.into()));
    trip(&Layout::Compact(CompactLayout::c_order(2)));
    let argument = HostCallbackArgument { channel_id: 3, shape };
    trip(&argument);
    let callback = XlaHostCallback::new([argument.clone()], [argument]);
    trip_at(&callback);
    let options = XlaCompileOptions::new(&b"\x10\x01"[..]).unwrap();
    trip_at(&options.clone().with_outputs_bundle_slice_sizes([2, 1]));
    // A value that cannot be sent cannot be written as text either.
    let options = options.with_loaded_host_callbacks([callback]);
    let version = SerDesAnyVersionAccessor::get(6).unwrap();
    assert!(serde_json::to_string(&At::new(version, &options)).is_err());
    trip_at(
        &IfrtIrCompileOptions::new([DeviceId(1)])
            .with_mlir_dump_to("/dump")
            .with_outputs_bundle_slice_sizes([1]),
    );
    trip_at(&XlaExecutableVersion::new(7));
    let output = OutputSpec {
        dtype: DType::F32,
        shard_shape: Shape::new([4]).unwrap(),
        shape: None,
        layout: None,
        memory_kind: String::new(),
        op_sharding: None,
    };
    trip(&output);
    trip(&ParameterSpec::default());
    let metadata = XlaExecutableMetadata::new("jit_f").with_outputs([output]).unwrap();
    trip_at(&metadata);
    if !is_default_refused() {
        trip(&SerializedXlaExecutable { metadata, executable: "backend".into() });
    }
}

#[test]
fn json_is_written_for_the_build_that_is_to_read_it() {
    let options = XlaCompileOptions::new(&b"\x10\x01"[..]).unwrap();
    let at = |number| {
        let version = SerDesAnyVersionAccessor::get(number).unwrap();
        serde_json::to_string(&At::new(version, &options)).unwrap()
    };
    assert_eq!((at(3).as_str(), at(4).as_str()), ("\"0a021001\"", "\"0a0210011804\""));
    // A feature that the version lacks is an error, even for types with their own form in JSON.
    let three = SerDesAnyVersionAccessor::get(3).unwrap();
    let six_bits =
        ArraySpec::new(DType::F6E2M3FN, Shape::scalar(), SingleDeviceSharding::new(DeviceId(0)));
    let error = serde_json::to_string(&At::new(three, &six_bits)).unwrap_err().to_string();
    assert!(error.contains("F6E2M3FN") && error.contains("version 4 is the first"), "{error}");
    // Without a version the default one is used, which the testing switch detects; the previous
    // version is no longer set.
    let written = std::panic::catch_unwind(|| serde_json::to_string(&options).unwrap());
    let is_caught = is_default_refused();
    assert_eq!(written.ok(), (!is_caught).then(|| at(6)));
}

#[test]
fn text_that_is_no_message_of_the_type_is_refused() {
    assert!(serde_json::from_str::<xla::OpSharding>("\"0\"").is_err());
    assert!(serde_json::from_str::<xla::OpSharding>("\"0g\"").is_err());
    assert!(serde_json::from_str::<xla::OpSharding>("\"0809\"").is_err());
    assert!(serde_json::from_str::<xla::TileAssignment>(r#"{"dimensions":[2]}"#).is_err());
    assert!(
        serde_json::from_str::<xla::TileAssignment>(r#"{"dimensions":[2],"devices":[0]}"#).is_err()
    );
    assert!(serde_json::from_str::<XlaCompileOptions>("\"0a0108\"").is_err());
}
