use std::fmt::{Debug, Display};

use bytes::Bytes;
use prost::Message;
use serdes::{
    codec::{DecodeError, DeserializeOptions, FromProto, Serialized, ToProto, Validation},
    ifrt::{sharding_spec::*, *},
    version::{Ifrt, SerDesAnyVersionAccessor, SerDesVersion, VersionRange},
};

fn options(validation: Validation) -> DeserializeOptions {
    with_devices(AnyDevice)
        .with(DeserializeProgramOptions::new(AnyDevice))
        .with_validation(validation)
}

fn versions() -> impl Iterator<Item = SerDesVersion> {
    let range = VersionRange::<Ifrt>::supported();
    (range.minimum()..=range.maximum())
        .filter_map(|number| SerDesAnyVersionAccessor::get(number).ok())
}

/// Reads a value, writes it in every version that can express it, and checks that it reads back.
fn trip<T, P>(data: &Bytes) -> Option<T>
where
    P: Message + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + PartialEq + Debug + Clone,
{
    let strict = T::from_bytes(data.clone(), &options(Validation::Strict));
    let value = match T::from_bytes(data.clone(), &options(Validation::Parity)) {
        Ok(value) => value,
        Err(error) => {
            assert!(strict.is_err(), "strict mode reads what parity mode refuses");
            assert!(!error.to_string().is_empty() && error.code().number() != 0);
            return None;
        }
    };
    if let Ok(strict) = strict {
        assert!(is_equal(&strict, &value), "the modes read different values");
    }
    for version in versions() {
        let can = value.can_serialize_at(version);
        match value.to_bytes(version) {
            Ok(bytes) => {
                assert_eq!(can, Ok(()));
                let again = T::from_bytes(bytes, &options(Validation::Parity));
                assert!(
                    again.is_ok_and(|again| is_equal(&again, &value)),
                    "{value:?} at {version}"
                );
            }
            Err(error) => assert_eq!(can, Err(error)),
        }
    }
    Some(value)
}

/// Returns true if values are equal, or differ from themselves because of a NaN.
fn is_equal<T: PartialEq + Debug>(left: &T, right: &T) -> bool {
    #[expect(clippy::eq_op, reason = "tells whether a float inside is not a number")]
    let comparable = left == left;
    left == right || (!comparable && format!("{left:?}") == format!("{right:?}"))
}

/// Calls all the queries of a sharding.
fn ask(sharding: &Sharding) {
    for shape in [Shape::scalar(), Shape::new([4]).unwrap(), Shape::new([6, 4]).unwrap()] {
        let _ = sharding.shard_shape(&shape);
        let _ = sharding.index_domains(&shape);
        let _ = sharding.disassemble(&shape);
    }
    let _ = sharding.is_fully_replicated();
    let _ = sharding.to_string();
    if let Ok(spec) = ShardingSpec::try_from(sharding) {
        let _ = spec.shard_shape(&Shape::scalar());
        let _ = spec.to_string();
    }
}

/// Checks that the text form of a value is read as the same value.
fn text<T>(value: &T)
where
    T: Display + std::str::FromStr + PartialEq + Debug,
{
    if let Ok(again) = value.to_string().parse::<T>() {
        assert_eq!(again, *value);
    }
}

fn inspect(message: &str, data: &[u8]) {
    if let Ok(inspection) = Inspection::of_message(message, data) {
        let _ = (inspection.to_string(), inspection.minimum_reader_version());
    }
}

/// Reads values. The first byte picks the type, the rest is its message.
pub fn ifrt_values(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let data = Bytes::copy_from_slice(data);
    match kind % 14 {
        0 => drop(trip::<DType, _>(&data).inspect(text)),
        1 => drop(trip::<Shape, _>(&data).inspect(text)),
        2 => drop(trip::<DynamicShape, _>(&data).inspect(text)),
        3 => drop(trip::<IndexDomain, _>(&data).inspect(text)),
        4 => drop(trip::<DeviceList, _>(&data).inspect(text)),
        5 => drop(trip::<ShardingParam, _>(&data).inspect(|param| {
            text(param);
            let _ = param.shard_shape(&Shape::scalar());
            let _ = param.device_order().map(|mut order| order.nth(100));
            let shape = Shape::new(param.dim_shards()).unwrap_or_default();
            if let Ok(domains) = param.index_domains_within(&shape, 1 << 20) {
                assert_eq!(domains.first(), param.index_domain_of(0, &shape).ok().as_ref());
            }
            let _ = param.index_domains(&shape);
        })),
        6 => drop(trip::<Sharding, _>(&data).inspect(ask)),
        7 => drop(trip::<ShardingSpec, _>(&data)),
        8 => {
            inspect("xla.ifrt.ArraySpecProto", &data);
            drop(trip::<ArraySpec, _>(&data).inspect(|spec| {
                ask(spec.sharding());
                let _ = (spec.byte_size(), spec.to_string());
            }));
        }
        9 => drop(trip::<AbstractArraySpec, _>(&data)),
        10 => drop(trip::<AttributeMap, _>(&data)),
        11 => drop(trip::<ExecuteOptions, _>(&data)),
        12 => drop(trip::<BoundedDynamicShapeTag, _>(&data)),
        _ => drop(trip::<Layout, _>(&data)),
    }
}

/// Reads a wrapper with a type's name and data through the registry.
pub fn ifrt_serialized(data: &[u8]) {
    let _ = Inspection::of_serialized(data);
    for validation in [Validation::Parity, Validation::Strict] {
        let options = options(validation);
        let bytes = Bytes::copy_from_slice(data);
        let Ok(serialized) = Serialized::from_bytes(bytes, &options) else { return };
        let _: Result<_, DecodeError> = global_registry().deserialize_any(&serialized, &options);
        if let Ok(sharding) = Sharding::from_serialized(serialized, &options) {
            ask(&sharding);
        }
    }
}

/// Parses texts. A parsed value must print, and its text must parse as the same value.
pub fn ifrt_text(data: &[u8]) {
    fn parse<T>(data: &str)
    where
        T: Display + std::str::FromStr + PartialEq + Debug,
    {
        if let Ok(value) = data.parse::<T>() {
            assert_eq!(value.to_string().parse::<T>().ok(), Some(value));
        }
    }
    let Ok(data) = std::str::from_utf8(data) else { return };
    parse::<DType>(data);
    parse::<Shape>(data);
    parse::<DynamicShape>(data);
    parse::<ShardingParam>(data);
    parse::<PjRtLayout>(data);
    parse::<Index>(data);
    parse::<IndexDomain>(data);
    parse::<DeviceList>(data);
    parse::<Interval>(data);
    parse::<xla::PrimitiveType>(data);
    parse::<xla::Shape>(data);
    // Iotas print in their shortest form, so only the second text is stable.
    if let Ok(sharding) = data.parse::<xla::OpSharding>() {
        let text = sharding.to_string();
        let again: xla::OpSharding = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.to_string(), text);
    }
}

/// Reads a remap plan, validates it, converts it to its other form and writes it.
pub fn ifrt_remap_plan(data: &[u8]) {
    let data = Bytes::copy_from_slice(data);
    let _ = Inspection::of_message("xla.ifrt.RemapPlanProto", &data).map(|found| found.to_string());
    let strict = RemapPlan::from_bytes(data.clone(), &options(Validation::Strict));
    let Ok(plan) = RemapPlan::from_bytes(data, &options(Validation::Parity)) else {
        assert!(strict.is_err(), "strict mode reads what parity mode refuses");
        return;
    };
    assert!(!plan.to_string().is_empty());
    for semantics in [ArrayCopySemantics::AlwaysCopy, ArrayCopySemantics::DonateInput] {
        let _ = plan.check_copy_semantics(semantics);
    }
    let valid = plan.validate().is_ok();
    assert!(strict.is_err() || valid, "strict mode reads what cannot be carried out");
    if let Ok(devices) = plan.in_device_form() {
        let by_devices = devices.validate();
        assert!(
            !valid || by_devices.is_ok(),
            "valid, but not as devices: {plan:?}: {by_devices:?}"
        );
        assert!(
            by_devices.is_err() || devices.in_mapping_form().is_ok(),
            "a valid plan has both forms: {plan:?}"
        );
    }
    for version in versions() {
        let can = plan.can_serialize_at(version);
        match plan.to_bytes(version) {
            Ok(bytes) => {
                assert_eq!(can, Ok(()));
                let again = RemapPlan::from_bytes(bytes.clone(), &options(Validation::Parity));
                let again = again.unwrap_or_else(|error| panic!("{plan:?} at {version}: {error}"));
                // After the first write the plan has the form of the version.
                assert_eq!(again.to_bytes(version).as_ref(), Ok(&bytes), "{plan:?} at {version}");
                assert!(
                    !valid || again.validate().is_ok(),
                    "no longer valid: {plan:?} at {version}"
                );
            }
            Err(error) => assert_eq!(can, Err(error)),
        }
    }
}

/// Reads programs, their options, and metadata of executables. The first byte picks the type.
pub fn ifrt_programs(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let data = Bytes::copy_from_slice(data);
    match kind % 9 {
        0 => drop(trip::<XlaExecutableMetadata, _>(&data).map(|value| value.to_string())),
        1 => drop(trip::<XlaExecutableVersion, _>(&data).map(|value| value.to_string())),
        2 => drop(trip::<IfrtIrProgram, _>(&data).map(|value| value.to_string())),
        3 => drop(trip::<IfrtIrCompileOptions, _>(&data).map(|value| value.to_string())),
        4 => drop(trip::<XlaHostCallback, _>(&data).map(|value| value.to_string())),
        5 => drop(trip::<XlaCompileOptions, _>(&data).map(|value| value.to_string())),
        6 => drop(trip::<CustomCallProgram, _>(&data).map(|value| value.to_string())),
        7 => drop(trip::<CustomCallCompileOptions, _>(&data).map(|value| value.to_string())),
        _ => {
            let executable =
                SerializedXlaExecutable::from_bytes(data, &options(Validation::Strict));
            if let Ok(executable) = executable {
                let _ = executable.to_bytes(SerDesVersion::current());
            }
        }
    }
}
