use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::{
    codec::{ErrorKind, FromProto as _, StatusCode, ToProto as _},
    ifrt::{
        AnyDevice, ConcreteEvenSharding, DeviceId, MemoryKind, SingleDeviceSharding, with_devices,
    },
    proto::xla::ifrt::ShapeProto,
    version::{Ifrt, SerDesAnyVersionAccessor, VersionRange},
};

fn spec() -> ArraySpec {
    let shape = |dims: [i64; 2]| Shape::new(dims).unwrap();
    let sharding = ConcreteEvenSharding::new(
        [0, 1].into(),
        MemoryKind::new("device"),
        shape([4, 2]),
        shape([2, 2]),
        false,
    );
    ArraySpec::new(DType::S32, shape([4, 2]), sharding.unwrap())
}

fn layout(text: &str) -> PjRtLayout {
    text.parse().unwrap()
}

fn hash(spec: &ArraySpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    spec.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn array_spec_round_trips_as_message_and_bytes_at_every_version() {
    let options = with_devices(AnyDevice);
    for spec in [spec(), spec().with_layout(layout("{1,0:T(8,128)}"))] {
        for number in 0..=VersionRange::<Ifrt>::supported().maximum() {
            let version = SerDesAnyVersionAccessor::get(number).unwrap();
            let message = spec.to_proto(version).unwrap();
            assert_eq!(ArraySpec::from_proto(&message, &options).as_ref(), Ok(&spec));
            let bytes = spec.to_bytes(version).unwrap();
            assert_eq!(ArraySpec::from_bytes(bytes, &options).as_ref(), Ok(&spec));
        }
    }
}

#[test]
fn equal_specs_have_equal_hashes_with_and_without_a_layout() {
    let tiled = || spec().with_layout(layout("{1,0:T(8,128)}"));
    assert_eq!(hash(&spec()), hash(&spec()));
    assert_eq!(hash(&tiled()), hash(&tiled()));
    assert_ne!(spec(), tiled());
    assert_ne!(hash(&spec()), hash(&tiled()));
}

#[test]
fn a_layout_is_its_text_on_the_wire_and_loses_its_memory_space() {
    let in_space = spec().with_layout(layout("{1,0:S(5)}"));
    assert_eq!(in_space, spec().with_layout(layout("{1,0}")));
    let mut message = in_space.to_proto(SerDesVersion::current()).unwrap();
    assert_eq!(message.layout.as_deref(), Some(&b"{1,0}"[..]));
    let options = with_devices(AnyDevice);
    message.layout = Some("{1,0:S(5)}".into());
    assert_eq!(ArraySpec::from_proto(&message, &options), Ok(in_space));
    for wrong in [&b"{1,0"[..], b"\xff", b"rows first"] {
        message.layout = Some(wrong.into());
        let error = ArraySpec::from_proto(&message, &options).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
    }
}

#[test]
fn parts_are_read_in_the_order_of_upstream() {
    let options = with_devices(AnyDevice);
    let mut message = spec().to_proto(SerDesVersion::current()).unwrap();
    message.sharding = None;
    let error = ArraySpec::from_proto(&message, &options).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    message.shape = Some(ShapeProto { dims: vec![-1], version_number: 0 });
    let error = ArraySpec::from_proto(&message, &options).unwrap_err();
    assert!(error.to_string().contains("dimension 0 is -1"), "{error}");
    message.version_number = 7;
    let error = ArraySpec::from_proto(&message, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
    assert!(error.to_string().contains("ArraySpec"), "{error}");
}

#[test]
fn each_nested_message_says_its_own_version() {
    let options = with_devices(AnyDevice);
    let version = SerDesVersion::current();
    let mut message = spec().to_proto(version).unwrap();
    message.dtype.as_mut().unwrap().version_number = 7;
    let error = ArraySpec::from_bytes(prost::Message::encode_to_vec(&message).into(), &options);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
    assert!(error.to_string().contains("DType"), "{error}");
    message = spec().to_proto(version).unwrap();
    message.shape.as_mut().unwrap().version_number = 3;
    let error = ArraySpec::from_proto(&message, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("Shape"), "{error}");
}

#[test]
fn the_size_counts_whole_bytes_and_does_not_overflow() {
    let size = |dtype, dims: &[i64]| {
        let shape = Shape::new(dims).unwrap();
        ArraySpec::new(dtype, shape, SingleDeviceSharding::new(DeviceId(0))).byte_size()
    };
    assert_eq!(size(DType::F32, &[2, 3]), Ok(Some(24)));
    assert_eq!(size(DType::S4, &[3]), Ok(Some(3)));
    assert_eq!(size(DType::F6E2M3FN, &[3]), Ok(Some(3)));
    assert_eq!(size(DType::String, &[3]), Ok(None));
    assert!(size(DType::F64, &[i64::MAX]).is_err());
}
