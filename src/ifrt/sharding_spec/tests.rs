use super::*;
use crate::{
    codec::{DeserializeOptions, FromProto as _, StatusCode, ToProto as _, Validation},
    ifrt::{
        AbstractArraySpec, ArraySpec, DType, ShardingParam,
        sharding::ShardShapes,
        testing::{shape, versions},
        xla::{OpSharding, TileAssignment},
    },
    version::SerDesVersion,
};

fn every_kind() -> Vec<ShardingSpec> {
    let param: ShardingParam = "2 to [0] on 2".parse().unwrap();
    let halves = OpSharding::tiled(TileAssignment::iota([2], [2], [0]).unwrap());
    vec![
        SingleDeviceShardingSpec.into(),
        OpaqueShardingSpec::new(2).unwrap().into(),
        ConcreteShardingSpec::new(ShardShapes::Static {
            shape: shape([4]),
            shard_shapes: vec![shape([1]), shape([3])],
        })
        .into(),
        ConcreteEvenShardingSpec::new(2, shape([4]), shape([2]), false).unwrap().into(),
        ShardingParamShardingSpec::new(param).unwrap().into(),
        HloShardingSpec::new(2, halves).unwrap().into(),
    ]
}

/// Returns the versions at which specs exist.
fn versions_with_specs() -> impl Iterator<Item = SerDesVersion> {
    versions().filter(|version| version.number() >= 5)
}

#[test]
fn sharding_specs_round_trip_at_every_version_without_options() {
    for spec in every_kind() {
        for version in versions_with_specs() {
            let serialized = spec.to_serialized(version).unwrap();
            let name = spec.type_name();
            assert!(name.starts_with("xla::ifrt::") && name.ends_with("Spec"), "{name}");
            let options = DeserializeOptions::new().with_validation(Validation::Strict);
            assert_eq!(ShardingSpec::from_serialized(serialized, &options).unwrap(), spec);
        }
    }
}

#[test]
fn builds_that_know_no_specs_are_not_sent_any() {
    for spec in every_kind() {
        let name = spec.type_name().strip_prefix("xla::ifrt::").unwrap();
        let array = AbstractArraySpec::new(DType::F32, shape([4]), spec.clone());
        assert_eq!(array.minimum_version().map(SerDesVersion::number), Ok(5));
        for version in versions().filter(|version| version.number() < 5) {
            for (error, name) in [
                (spec.to_serialized(version).unwrap_err(), name),
                (spec.can_serialize_at(version).unwrap_err(), name),
                (array.to_bytes(version).unwrap_err(), "AbstractArraySpec"),
                (array.can_serialize_at(version).unwrap_err(), "AbstractArraySpec"),
            ] {
                assert_eq!(error.code(), StatusCode::FailedPrecondition);
                let text = error.to_string();
                assert!(text.contains(name) && text.contains("version 5 is the first"), "{text}");
            }
        }
    }
}

#[test]
fn a_spec_and_devices_make_a_sharding_of_the_same_kind() {
    for spec in every_kind() {
        let devices: DeviceList =
            (0..spec.shard_count().unwrap()).map(crate::ifrt::DeviceId).collect();
        let sharding = spec.on(devices.clone(), MemoryKind::new("device")).unwrap();
        assert_eq!(sharding.devices(), devices);
        assert_eq!(format!("{}Spec", sharding.type_name()), spec.type_name());
        assert_eq!(ShardingSpec::try_from(&sharding).unwrap(), spec);
        let error = spec.on(DeviceList::from([7, 8, 9]), MemoryKind::unset()).unwrap_err();
        assert!(matches!(error, IfrtError::CountMismatch { found: 3, .. }), "{error}");
    }
}

#[test]
fn index_domains_are_refused_with_unimplemented() {
    let shapes = ShardShapes::Static { shape: shape([4]), shard_shapes: vec![shape([4])] };
    let spec = ConcreteShardingSpec::new(shapes)
        .with_index_domains(vec![crate::ifrt::IndexDomain::whole(shape([4]))])
        .unwrap();
    let error = spec.to_proto(SerDesVersion::current()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.to_string().contains("ConcreteShardingSpec"), "{error}");
}

#[test]
fn abstract_array_spec_round_trips_and_becomes_an_array_spec() {
    for spec in every_kind() {
        let spec = AbstractArraySpec::new(DType::BF16, shape([4]), spec)
            .with_memory_kind("pinned_host")
            .with_layout("{0:T(128)}".parse::<crate::ifrt::PjRtLayout>().unwrap());
        for version in versions_with_specs() {
            let bytes = spec.to_bytes(version).unwrap();
            let read = AbstractArraySpec::from_bytes(bytes, &DeserializeOptions::new()).unwrap();
            assert_eq!(read, spec);
        }
        let devices =
            (0..spec.sharding_spec().shard_count().unwrap()).map(crate::ifrt::DeviceId).collect();
        let array: ArraySpec = spec.on(devices).unwrap();
        assert_eq!(AbstractArraySpec::try_from(&array).unwrap(), spec);
    }
}

#[test]
fn empty_memory_kind_of_an_abstract_array_spec_is_the_default() {
    let spec = AbstractArraySpec::new(DType::F32, shape([4]), SingleDeviceShardingSpec);
    assert_eq!(spec.clone().with_memory_kind(""), spec);
}

#[test]
fn negative_numbers_of_shards_are_errors() {
    assert!(OpaqueShardingSpec::new(-1).is_err());
    let message = wire::HloShardingSpecProto { num_shards: -1, ..Default::default() };
    let error = HloShardingSpec::from_proto(&message, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
}

#[test]
fn the_shard_shape_is_that_of_the_sharding() {
    let specs = every_kind();
    assert_eq!(specs[3].shard_shape(&shape([4])), Ok(shape([2])));
    assert_eq!(specs[4].shard_shape(&shape([6])), Ok(shape([3])));
    assert_eq!(specs[5].shard_shape(&shape([5])), Ok(shape([3])));
    assert!(specs[1].shard_shape(&shape([4])).is_err());
}
