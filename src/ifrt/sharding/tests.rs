use super::*;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, ErrorKind, FromProto as _, Serialized, StatusCode,
        ToProto as _, Validation,
    },
    ifrt::{
        AnyDevice, BoundedDynamicShapeTag, DeviceId, DynamicShape, ShardingParam,
        testing::{shape, versions},
        with_devices,
    },
    version::SerDesVersion,
};

fn dynamic(dims: impl AsRef<[i64]>) -> DynamicShape {
    let tag = BoundedDynamicShapeTag::new(vec![true; dims.as_ref().len()]).unwrap();
    DynamicShape::new(shape(dims), tag).unwrap()
}

fn round_trip(sharding: impl Into<Sharding>) {
    let sharding = sharding.into();
    let options = with_devices(DeviceList::from([0, 1])).with_validation(Validation::Strict);
    for version in versions() {
        let serialized = sharding.to_serialized(version).unwrap();
        assert_eq!(serialized.type_name(), sharding.type_name());
        assert_eq!(Sharding::from_serialized(serialized, &options).unwrap(), sharding, "{version}");
        sharding.can_serialize_at(version).unwrap();
    }
}

#[test]
fn a_single_device_sharding_makes_the_round_trip_at_versions() {
    round_trip(SingleDeviceSharding::new(DeviceId(1)));
    round_trip(SingleDeviceSharding::new(DeviceId(0)).with_memory_kind("pinned_host"));
    round_trip(SingleDeviceSharding::new(DeviceId(0)).with_memory_kind(""));
}

#[test]
fn an_opaque_sharding_makes_the_round_trip_at_versions() {
    round_trip(OpaqueSharding::new(DeviceList::from([0, 1]), MemoryKind::new("abc")));
    round_trip(OpaqueSharding::new(DeviceList::from([]), MemoryKind::unset()));
}

#[test]
fn concrete_sharding_round_trips_at_every_version() {
    let shapes = ShardShapes::Static {
        shape: shape([10, 20]),
        shard_shapes: vec![shape([3, 20]), shape([7, 20])],
    };
    let devices = DeviceList::from([1, 0]);
    round_trip(ConcreteSharding::new(devices.clone(), MemoryKind::unset(), shapes).unwrap());
    let shapes = ShardShapes::Dynamic {
        shape: dynamic([10, 20]),
        shard_shapes: vec![dynamic([3, 20]), dynamic([7, 20])],
    };
    round_trip(ConcreteSharding::new(devices, MemoryKind::new("abc"), shapes).unwrap());
}

#[test]
fn concrete_even_sharding_keeps_its_replicated_flag() {
    for is_fully_replicated in [false, true] {
        let sharding = ConcreteEvenSharding::new(
            DeviceList::from([0, 1]),
            MemoryKind::new("abc"),
            shape([10, 20]),
            if is_fully_replicated { shape([10, 20]) } else { shape([5, 20]) },
            is_fully_replicated,
        )
        .unwrap();
        assert_eq!(sharding.is_fully_replicated(), is_fully_replicated);
        round_trip(sharding);
    }
}

#[test]
fn a_sharding_param_sharding_makes_the_round_trip_at_versions() {
    let param: ShardingParam = "2x1 to [0] on 2".parse().unwrap();
    let devices = DeviceList::from([1, 0]);
    round_trip(ShardingParamSharding::new(param, devices, MemoryKind::new("abc")).unwrap());
}

#[test]
fn sharding_param_for_another_device_count_names_both_counts() {
    let param: ShardingParam = "2x1 to [0,1] on 2x3".parse().unwrap();
    let error = ShardingParamSharding::new(param.clone(), [0, 1].into(), MemoryKind::unset());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("found 2 devices; expected 6"), "{text}");
    let message = wire::ShardingParamShardingProto {
        sharding_param: Some(param.to_proto(SerDesVersion::current()).unwrap()),
        devices: Some(DeviceList::from([0, 1]).to_proto(SerDesVersion::current()).unwrap()),
        ..Default::default()
    };
    let error = ShardingParamSharding::from_proto(&message, &with_devices(AnyDevice)).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("found 2 devices; expected 6"), "{error}");
}

#[test]
fn sharding_param_gets_the_requested_version_in_all_envelopes() {
    let param: ShardingParam = "1 to [0] on 2 unreduced [0]".parse().unwrap();
    let sharding = ShardingParamSharding::new(param, [0, 1].into(), MemoryKind::unset()).unwrap();
    let sharding = Sharding::from(sharding);
    for version in versions() {
        let written = sharding.to_proto(version);
        assert_eq!(written.is_ok(), version.number() >= 1, "{version}");
        assert_eq!(sharding.can_serialize_at(version), written.map(drop));
    }
}

#[test]
fn an_unset_and_an_empty_memory_kind_differ_on_the_wire() {
    let version = SerDesVersion::current();
    let unset = SingleDeviceSharding::new(DeviceId(0));
    let empty = unset.clone().with_memory_kind("");
    assert_eq!(unset.to_bytes(version).unwrap(), "");
    assert_eq!(empty.to_bytes(version).unwrap(), "\u{12}\u{0}");
}

#[test]
fn concrete_sharding_refuses_wrong_index_domains() {
    let shapes =
        ShardShapes::Static { shape: shape([4]), shard_shapes: vec![shape([1]), shape([3])] };
    let sharding =
        ConcreteSharding::new(DeviceList::from([0, 1]), MemoryKind::unset(), shapes).unwrap();
    assert!(sharding.index_domains(&shape([4])).is_err());
    let domains = vec![
        IndexDomain::new(crate::ifrt::Index::new([0]), shape([1])).unwrap(),
        IndexDomain::new(crate::ifrt::Index::new([1]), shape([3])).unwrap(),
    ];
    assert!(sharding.clone().with_index_domains(domains[1..].to_vec()).is_err());
    let with_domains = sharding.clone().with_index_domains(domains.clone()).unwrap();
    assert_eq!(with_domains.index_domains(&shape([4])), Ok(domains));
    for version in versions() {
        let error = with_domains.to_proto(version).unwrap_err();
        assert_eq!(error.code(), StatusCode::Unimplemented);
        assert!(error.to_string().contains("index domains"), "{error}");
        assert_eq!(with_domains.can_serialize_at(version), Err(error));
    }
    assert_eq!(with_domains.without_index_domains(), sharding);
}

#[test]
fn concrete_sharding_without_a_shape_is_an_invalid_argument() {
    let options = with_devices(AnyDevice);
    let error = ConcreteSharding::from_bytes("".into(), &options).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    let text = error.to_string();
    assert!(text.contains("a shape") && text.contains("dynamic_shape"), "{text}");
}

#[test]
fn wrong_shard_count_fails_on_use_and_in_strict_mode() {
    let shapes = ShardShapes::Static { shape: shape([4]), shard_shapes: vec![shape([4])] };
    let devices = DeviceList::from([0, 1]);
    assert!(ConcreteSharding::new(devices.clone(), MemoryKind::unset(), shapes.clone()).is_err());
    let lenient = ConcreteSharding::new_lenient(devices, MemoryKind::unset(), shapes);
    let bytes = lenient.to_bytes(SerDesVersion::current()).unwrap();
    let options = with_devices(AnyDevice);
    let read = ConcreteSharding::from_bytes(bytes.clone(), &options).unwrap();
    assert_eq!(read, lenient);
    let error = Sharding::from(read).disassemble(&shape([4])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "found 1 shard shapes; expected 2, one for each of the addressable devices"
    );
    let strict = options.with_validation(Validation::Strict);
    assert!(ConcreteSharding::from_bytes(bytes, &strict).is_err());
}

#[test]
fn shard_shapes_are_known_where_upstream_knows_them() {
    let whole = shape([10, 20]);
    let single = Sharding::from(SingleDeviceSharding::new(DeviceId(3)));
    assert_eq!(single.shard_shape(&whole), Ok(whole.clone()));
    assert_eq!(single.index_domains(&whole), Ok(vec![IndexDomain::whole(whole.clone())]));
    assert!(single.is_fully_replicated());
    assert_eq!(single.disassemble(&whole).unwrap().len(), 1);

    let opaque = Sharding::from(OpaqueSharding::new([0, 1].into(), MemoryKind::unset()));
    assert!(opaque.shard_shape(&whole).is_err() && opaque.index_domains(&whole).is_err());
    assert!(opaque.disassemble(&whole).is_err());

    let even = Sharding::from(
        ConcreteEvenSharding::new(
            [0, 1].into(),
            MemoryKind::new("device"),
            whole.clone(),
            shape([5, 20]),
            false,
        )
        .unwrap(),
    );
    assert_eq!(even.shard_shape(&whole), Ok(shape([5, 20])));
    assert!(matches!(even.shard_shape(&shape([10])), Err(IfrtError::ShapeMismatch { .. })));
    assert_eq!(even.index_domains(&whole).unwrap_err().code(), StatusCode::InvalidArgument);
    let parts = even.disassemble(&whole).unwrap();
    let second = SingleDeviceSharding::new(DeviceId(1)).with_memory_kind("device");
    assert_eq!(parts[1], (shape([5, 20]), second));
}

#[test]
fn devices_are_replaced_by_as_many_and_no_other_number() {
    let opaque = Sharding::from(OpaqueSharding::new([0, 1].into(), MemoryKind::unset()));
    let moved = opaque
        .with_device_assignment(Some([5, 6].into()), Some(MemoryKind::new("pinned_host")))
        .unwrap();
    assert_eq!(moved.devices(), [5, 6].into());
    assert_eq!(moved.memory_kind().name(), Some("pinned_host"));
    let error = opaque.with_device_assignment(Some([5].into()), None).unwrap_err();
    assert!(error.to_string().contains("found 1 devices; expected 2"), "{error}");
    assert_eq!(error.code(), StatusCode::InvalidArgument);
}

#[test]
fn options_are_checked_first_and_versions_before_devices() {
    let none = DeserializeOptions::new();
    for name in [
        "SingleDeviceSharding",
        "OpaqueSharding",
        "ConcreteSharding",
        "ConcreteEvenSharding",
        "ShardingParamSharding",
    ] {
        let garbage = Serialized::new(format!("xla::ifrt::{name}"), "\u{7}\u{7}");
        let error = Sharding::from_serialized(garbage.clone(), &none).unwrap_err();
        assert!(error.to_string().contains("DeserializeShardingOptions"), "{error}");
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        let error = Sharding::from_serialized(garbage, &with_devices(AnyDevice)).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed { .. }), "{error}");
        assert_eq!(error.code(), StatusCode::InvalidArgument);
    }
    let message =
        wire::SingleDeviceShardingProto { device_id: 5, memory_kind: None, version_number: 7 };
    let no_devices = with_devices(DeviceList::from([]));
    let error = SingleDeviceSharding::from_proto(&message, &no_devices).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
}

#[test]
fn type_name_of_no_sharding_is_told_from_an_unknown_one() {
    let options = with_devices(AnyDevice);
    let error =
        Sharding::from_serialized(Serialized::new("xla::ifrt::Mars", ""), &options).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.to_string().contains("xla::ifrt::Mars"), "{error}");
    let error = Sharding::from_owned_proto(wire::ShardingProto::default(), &options).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
}
