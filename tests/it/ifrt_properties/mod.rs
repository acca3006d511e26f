//! Tests properties of all IFRT values: round trips at every version, and readers that survive any
//! bytes.

#[allow(
    unreachable_pub,
    clippy::duplicate_mod,
    reason = "a crate of its own in fuzz/, whose corpus another module replays"
)]
#[path = "../../../fuzz/src/ifrt.rs"]
mod targets;

mod programs;
mod values;

use std::{fmt::Debug, fs, path::Path};

use proptest::{collection::vec, prelude::*};
use prost::{Message, Name};
use serdes::{
    codec::{
        DeserializeOptions, FromProto, Registered, SerializeOptions, StatusCode, ToProto,
        Validation,
    },
    ifrt::{sharding_spec::OpaqueShardingSpec, *},
    version::{Ifrt, SerDesAnyVersionAccessor, SerDesVersion, VersionRange},
};
use values::{
    array_specs, attribute_maps, device_lists, dtypes, dynamic_shapes, execute_options, shapes,
    sharding_params, shardings,
};

fn versions() -> impl Iterator<Item = SerDesVersion> {
    let range = VersionRange::<Ifrt>::supported();
    (range.minimum()..=range.maximum())
        .filter_map(|number| SerDesAnyVersionAccessor::get(number).ok())
}

fn options(validation: Validation) -> DeserializeOptions {
    with_devices(AnyDevice)
        .with(DeserializeProgramOptions::new(AnyDevice))
        .with(IfrtIrExecutableVersionDeserializeOptions::new(values::LOGICAL_DEVICES))
        .with_validation(validation)
}

/// Asserts for every version that every reader gets the same value, or that writing fails with an
/// error that names the version.
///
/// Readers differ in what they validate, and in the newest version that they know: a reader that
/// knows the writer's version knows everything that is recorded.
fn trips_as_bytes<T, P>(value: &T) -> Result<Vec<(SerDesVersion, bytes::Bytes)>, TestCaseError>
where
    P: Message + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + PartialEq + Debug,
{
    let mut written = Vec::new();
    for version in versions() {
        let can = value.can_serialize_at(version);
        match value.to_bytes(version) {
            Ok(bytes) => {
                prop_assert_eq!(can, Ok(()));
                for validation in [Validation::Parity, Validation::Strict] {
                    let read = T::from_bytes(bytes.clone(), &options(validation));
                    prop_assert_eq!(read.as_ref(), Ok(value), "{}", version);
                }
                written.push((version, bytes));
            }
            Err(error) => {
                prop_assert_eq!(error.code(), StatusCode::FailedPrecondition);
                prop_assert!(error.to_string().contains(&version.number().to_string()));
                prop_assert!(value.minimum_version().unwrap().number() > version.number());
                prop_assert_eq!(can, Err(error));
            }
        }
    }
    prop_assert!(!written.is_empty(), "no version can say {:?}", value);
    Ok(written)
}

/// Asserts the same as [`trips_as_bytes`], and that the message round-trips.
fn trips<T, P>(value: &T) -> Result<(), TestCaseError>
where
    P: Message + Name + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + PartialEq + Debug,
{
    for (version, bytes) in trips_as_bytes(value)? {
        // Some types are converted to and from bytes without a message.
        let message = value.to_proto(version).unwrap();
        prop_assert_eq!(&message.encode_to_vec(), &bytes, "{}", version);
        for validation in [Validation::Parity, Validation::Strict] {
            let read = T::from_proto(&message, &options(validation));
            prop_assert_eq!(read.as_ref(), Ok(value), "{}", version);
        }
        if let Ok(inspection) = Inspection::of_message(&P::full_name(), &bytes) {
            let newest = inspection.minimum_reader_version();
            prop_assert!(newest <= version.number(), "{}: {}", version, inspection);
        }
    }
    Ok(())
}

/// Asserts the same as [`trips_as_bytes`], by name through the registry.
fn trips_by_name<T, P>(value: &T) -> Result<(), TestCaseError>
where
    P: Message + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + Registered + PartialEq + Debug + 'static,
{
    for (version, bytes) in trips_as_bytes(value)? {
        let written = global_registry().serialize(value, &SerializeOptions::new(version));
        let written = written.unwrap();
        prop_assert_eq!((written.type_name(), written.data()), (T::TYPE_NAME, &bytes));
        for validation in [Validation::Parity, Validation::Strict] {
            let read = global_registry().deserialize::<T>(&written, &options(validation));
            prop_assert_eq!(read.as_ref(), Ok(value), "{}", version);
        }
        let inspection = Inspection::of_serialized(&written.to_bytes())?;
        let newest = inspection.minimum_reader_version();
        prop_assert!(newest <= version.number(), "{}: {}", version, inspection);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn element_types_and_shapes_make_the_round_trip(
        dtype in dtypes(), shape in shapes(), dynamic in dynamic_shapes(),
    ) {
        trips(&dtype)?;
        trips(&shape)?;
        trips(dynamic.tag())?;
        trips(&dynamic)?;
        prop_assert_eq!(shape.to_string().parse(), Ok(shape.clone()));
        prop_assert_eq!(dynamic.to_string().parse(), Ok(dynamic.clone()));
        let origin = Index::new(shape.dims());
        trips(&origin)?;
        trips(&IndexDomain::new(origin, shape)?)?;
    }

    #[test]
    fn device_lists_make_the_round_trip(devices in device_lists(0..5000)) {
        trips(&devices)?;
        let copy: DeviceList = devices.ids().iter().copied().collect();
        prop_assert_eq!(copy.fingerprint(), devices.fingerprint());
        prop_assert_eq!(devices.to_string().parse(), Ok(devices));
    }

    #[test]
    fn shardings_make_the_round_trip(sharding in shardings()) {
        trips(&sharding)?;
        let spec = ShardingSpec::try_from(&sharding);
        if let Ok(spec) = spec {
            trips(&spec)?;
            if !matches!(sharding, Sharding::SingleDevice(_)) {
                let again = spec.on(sharding.devices(), sharding.memory_kind().clone());
                prop_assert_eq!(again.as_ref(), Ok(&sharding));
            }
        }
    }

    #[test]
    fn sharding_params_make_the_round_trip_and_cover_the_array(param in sharding_params()) {
        trips(&param)?;
        prop_assert_eq!(param.to_string().parse(), Ok(param.clone()));
        let mut order: Vec<i32> = param.device_order()?.collect();
        order.sort_unstable();
        prop_assert_eq!(order, (0..param.device_count()?).collect::<Vec<_>>());
        let dims: Vec<i64> = param.dim_shards().iter().map(|shards| shards * 3).collect();
        let shape = Shape::new(dims)?;
        let domains = param.index_domains(&shape)?;
        prop_assert_eq!(domains.len() as i64, i64::from(param.device_count()?));
        let mut distinct = domains.clone();
        distinct.sort_by(|left, right| left.origin().cmp(right.origin()));
        distinct.dedup();
        let covered: i64 = distinct.iter().map(|domain| domain.shape().element_count().unwrap()).sum();
        prop_assert_eq!(covered, shape.element_count()?);
    }

    #[test]
    fn array_specs_make_the_round_trip(spec in array_specs()) {
        trips(&spec)?;
        if let Ok(spec) = AbstractArraySpec::try_from(&spec) {
            trips(&spec)?;
        }
    }

    #[test]
    fn attributes_and_execute_options_make_the_round_trip(
        map in attribute_maps(), options in execute_options(),
    ) {
        trips(&map)?;
        trips(&options)?;
    }

    #[test]
    fn readers_survive_any_bytes(data in vec(any::<u8>(), 0..200)) {
        for kind in 0..14_u8 {
            targets::ifrt_values(&[&[kind], &data[..]].concat());
        }
        for kind in 0..9 {
            targets::ifrt_programs(&[&[kind], &data[..]].concat());
        }
        targets::ifrt_remap_plan(&data);
        targets::ifrt_serialized(&data);
        targets::ifrt_text(&data);
    }
}

#[test]
fn readers_survive_golden_values_changed_or_cut() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (directory, target) in [
        ("ifrt_values", targets::ifrt_values as fn(&[u8])),
        ("ifrt_serialized", targets::ifrt_serialized),
        ("ifrt_text", targets::ifrt_text),
        ("ifrt_remap_plan", targets::ifrt_remap_plan),
        ("ifrt_programs", targets::ifrt_programs),
    ] {
        for entry in fs::read_dir(golden.join(directory)).unwrap() {
            let data = fs::read(entry.unwrap().path()).unwrap();
            for position in 0..data.len().min(120) {
                target(&data[..position]);
                for change in [0x01, 0x80, 0xff] {
                    let mut changed = data.clone();
                    changed[position] ^= change;
                    target(&changed);
                }
            }
        }
    }
}

#[test]
fn first_blocking_feature_is_named_in_bytes_as_in_messages() {
    let param: ShardingParam = "1 to [0] on 2 unreduced [0]".parse().unwrap();
    let sharding = ShardingParamSharding::new(param, [0, 1].into(), MemoryKind::unset()).unwrap();
    let spec = ArraySpec::new(DType::F6E2M3FN, Shape::new([4]).unwrap(), sharding);
    let version = SerDesAnyVersionAccessor::minimum();
    let error = spec.to_proto(version).unwrap_err();
    assert!(error.to_string().contains("F6E2M3FN"), "{error}");
    assert_eq!(spec.to_bytes(version), Err(error.clone()));
    assert_eq!(spec.can_serialize_at(version), Err(error));
}

#[test]
fn ten_bytes_that_announce_two_to_the_31_elements_cost_nothing() {
    // Field 1, length-delimited, declares 2^31 bytes; only four follow.
    let bytes: &[u8] = &[0x0a, 0x80, 0x80, 0x80, 0x80, 0x08, 1, 2, 3, 4];
    let options = options(Validation::Parity);
    let bytes = bytes::Bytes::from_static(bytes);
    assert!(Shape::from_bytes(bytes.clone(), &options).is_err());
    assert!(DeviceList::from_bytes(bytes.clone(), &options).is_err());
    assert!(ShardingParam::from_bytes(bytes.clone(), &options).is_err());
    assert!(ArraySpec::from_bytes(bytes.clone(), &options).is_err());
    assert!(AttributeMap::from_bytes(bytes.clone(), &options).is_err());
    assert!(Inspection::of_serialized(&bytes).is_err());
    // A small message that describes a mesh of 2^31 devices, and a spec with as many shards.
    let mesh = ShardingParam::new_lenient([1], [0, 1], [65536, 32767], []);
    assert!(mesh.index_domains(&Shape::new([1]).unwrap()).is_err());
    let spec: ShardingSpec = OpaqueShardingSpec::new(i32::MAX).unwrap().into();
    assert!(spec.shard_shape(&Shape::scalar()).is_err());
    assert!(spec.on(DeviceList::from([0]), MemoryKind::unset()).is_err());
}

#[test]
fn messages_above_the_readers_limit_are_refused_unparsed() {
    let bytes = Shape::new([1, 2, 3]).unwrap().to_bytes(SerDesVersion::current()).unwrap();
    let small = DeserializeOptions::new().with_maximum_bytes(bytes.len() as u64 - 1);
    let error = Shape::from_bytes(bytes.clone(), &small).unwrap_err();
    assert_eq!(error.code(), StatusCode::ResourceExhausted);
    let enough = DeserializeOptions::new().with_maximum_bytes(bytes.len() as u64);
    assert!(Shape::from_bytes(bytes, &enough).is_ok());
}

#[test]
fn nesting_beyond_the_limit_is_an_error() {
    // A tuple of shardings in a tuple of shardings in ...
    let mut op_sharding = Vec::new();
    for _ in 0..200 {
        let mut outer = vec![0x08, 0x02, 0x2a];
        prost::encoding::encode_varint(op_sharding.len() as u64, &mut outer);
        outer.extend_from_slice(&op_sharding);
        op_sharding = outer;
    }
    let mut message = vec![0x0a, 0x03, 0x0a, 0x01, 0x00, 0x12];
    prost::encoding::encode_varint(op_sharding.len() as u64, &mut message);
    message.extend_from_slice(&op_sharding);
    let error = HloSharding::from_bytes(message.into(), &options(Validation::Parity)).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("recursion limit"), "{error}");
}
