use super::*;
use crate::{
    codec::{DecodeErrorKind, StatusCode, Validation},
    ifrt::{AnyDevice, with_devices, xla::TileAssignment},
    proto::xla as wire,
};

fn devices(count: i32) -> DeviceList {
    (0..count).map(DeviceId).collect()
}

fn sharding(count: i32, op_sharding: OpSharding) -> HloSharding {
    HloSharding::new(devices(count), MemoryKind::unset(), op_sharding).unwrap()
}

fn iota(dimensions: &[i64], reshape: &[i64], transpose: &[i32]) -> TileAssignment {
    TileAssignment::iota(dimensions, reshape, transpose).unwrap()
}

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

fn texts(sharding: &HloSharding, dims: &[i64]) -> Vec<String> {
    let domains = sharding.index_domains(&shape(dims)).unwrap();
    domains.iter().map(ToString::to_string).collect()
}

#[test]
fn tiles_that_do_not_divide_a_dimension_leave_smaller_parts_at_the_edge() {
    let thirds = sharding(3, OpSharding::tiled(iota(&[3], &[3], &[0])));
    assert_eq!(thirds.shard_shape(&shape(&[4])), Ok(shape(&[2])));
    assert_eq!(texts(&thirds, &[4]), ["[0]+[2]", "[2]+[2]", "[4]+[0]"]);
    assert_eq!(texts(&thirds, &[0]), ["[0]+[0]"; 3]);
}

#[test]
fn domains_follow_the_order_of_the_devices_not_of_the_tiles() {
    let transposed = sharding(4, OpSharding::tiled(iota(&[2, 2], &[2, 2], &[1, 0])));
    assert_eq!(
        texts(&transposed, &[4, 4]),
        ["[0,0]+[2,2]", "[2,0]+[2,2]", "[0,2]+[2,2]", "[2,2]+[2,2]"]
    );
    let order: Vec<_> = transposed.device_order().unwrap().iter().map(|id| id.0).collect();
    assert_eq!(order, [0, 2, 1, 3]);
}

#[test]
fn devices_of_a_replicated_subgroup_hold_the_same_part() {
    let partial = OpSharding::partially_replicated(iota(&[2, 1, 2], &[4], &[0]));
    let partial = sharding(4, partial);
    assert_eq!(partial.shard_shape(&shape(&[4, 4])), Ok(shape(&[2, 4])));
    assert_eq!(
        texts(&partial, &[4, 4]),
        ["[0,0]+[2,4]", "[0,0]+[2,4]", "[2,0]+[2,4]", "[2,0]+[2,4]"]
    );
    assert!(!partial.is_fully_replicated());
    let whole = OpSharding::partially_replicated(iota(&[1, 1, 4], &[4], &[0]));
    assert!(sharding(4, whole).is_fully_replicated());
}

#[test]
fn what_a_sharding_does_not_say_is_an_error() {
    let manual = OpSharding::with_subgroups(iota(&[2, 2], &[4], &[0]), &[OpShardingType::Manual]);
    for op_sharding in [
        OpSharding::manual(),
        OpSharding::unreduced(),
        OpSharding::unknown(),
        OpSharding::tuple([OpSharding::replicated()]).unwrap(),
        manual.unwrap(),
    ] {
        let error = sharding(4, op_sharding).index_domains(&shape(&[4])).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
    }
    let rows = sharding(2, OpSharding::tiled(iota(&[2, 1], &[2], &[0])));
    assert!(rows.shard_shape(&shape(&[4])).is_err());
    assert!(rows.index_domains(&shape(&[4])).is_err());
    let outside = OpSharding::tiled(TileAssignment::listed([2], [0, 7]).unwrap());
    assert!(sharding(2, outside).index_domains(&shape(&[4])).is_err());
    let twice = OpSharding::tiled(TileAssignment::listed([2], [0, 0]).unwrap());
    assert!(sharding(2, twice).index_domains(&shape(&[4])).is_err());
}

#[test]
fn another_number_of_tiles_than_devices_is_refused_naming_both_and_the_sharding() {
    let quarters = OpSharding::tiled(iota(&[4], &[4], &[0]));
    let proto = HloShardingProto {
        devices: Some(devices(3).to_proto(SerDesVersion::current()).unwrap()),
        xla_op_sharding: Some(quarters.proto().clone()),
        ..Default::default()
    };
    let error = HloSharding::from_proto(&proto, &with_devices(AnyDevice)).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    let text = error.to_string();
    for part in ["4 tiles", "3 devices", "{devices=[4]<=[4]}"] {
        assert!(text.contains(part), "{text}");
    }
    let none = HloSharding::from_proto(&HloShardingProto::default(), &with_devices(AnyDevice));
    assert_eq!(none.unwrap_err().code(), StatusCode::InvalidArgument);
}

#[test]
fn a_message_of_a_newer_version_is_too_new() {
    let proto = HloShardingProto { version_number: 7, ..Default::default() };
    let error = HloSharding::from_proto(&proto, &with_devices(AnyDevice)).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooNew);
}

#[test]
fn strict_readers_refuse_a_device_that_holds_two_tiles() {
    let proto = HloShardingProto {
        devices: Some(devices(2).to_proto(SerDesVersion::current()).unwrap()),
        xla_op_sharding: Some(wire::OpSharding {
            r#type: 3,
            tile_assignment_dimensions: vec![2],
            tile_assignment_devices: vec![1, 1],
            ..Default::default()
        }),
        ..Default::default()
    };
    let parity = with_devices(AnyDevice);
    assert!(HloSharding::from_proto(&proto, &parity).is_ok());
    let strict = parity.with_validation(Validation::Strict);
    assert!(HloSharding::from_proto(&proto, &strict).is_err());
}
