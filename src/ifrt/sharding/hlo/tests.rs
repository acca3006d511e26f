use super::*;
use crate::{
    codec::{ErrorKind, FromProto as _, StatusCode, ToProto as _, Validation},
    ifrt::{
        AnyDevice, ConcreteEvenSharding, Sharding, testing::shape, with_devices,
        xla::TileAssignment,
    },
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

fn texts(sharding: &HloSharding, dims: &[i64]) -> Vec<String> {
    let domains = sharding.index_domains(&shape(dims)).unwrap();
    domains.iter().map(ToString::to_string).collect()
}

#[test]
fn tiles_that_do_not_divide_leave_smaller_parts_at_the_edge() {
    let thirds = sharding(3, OpSharding::tiled(iota(&[3], &[3], &[0])));
    assert_eq!(thirds.shard_shape(&shape([4])), Ok(shape([2])));
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
    assert_eq!(partial.shard_shape(&shape([4, 4])), Ok(shape([2, 4])));
    assert_eq!(
        texts(&partial, &[4, 4]),
        ["[0,0]+[2,4]", "[0,0]+[2,4]", "[2,0]+[2,4]", "[2,0]+[2,4]"]
    );
    assert!(!partial.is_fully_replicated());
    let whole = OpSharding::partially_replicated(iota(&[1, 1, 4], &[4], &[0]));
    assert!(sharding(4, whole).is_fully_replicated());
}

#[test]
fn index_domains_are_bounded_by_devices_times_dimensions() {
    let many = shape([1; 2000]);
    let everywhere = sharding(2000, OpSharding::replicated());
    let ones = [&[2000][..], &[1; 1999]].concat();
    let cut = sharding(2000, OpSharding::tiled(iota(&ones, &[2000], &[0])));
    let subgroups = OpSharding::with_subgroups(
        iota(&[&[1; 2000][..], &[2000]].concat(), &[2000], &[0]),
        &[OpShardingType::Replicated; 2000],
    );
    let subgroups = sharding(2000, subgroups.unwrap());
    for (sharding, shape) in [(everywhere, many.clone()), (cut, many), (subgroups, shape([4]))] {
        // Dimensions of the assignment count like those of the array.
        let limit = 10 << 20;
        let sharding = Sharding::from(sharding);
        let error = sharding.index_domains_within(&shape, limit).unwrap_err();
        assert!(error.to_string().contains("the limit is 10485760"), "{error}");
        assert!(sharding.disassemble_within(&shape, limit).is_err());
        assert_eq!(sharding.index_domains(&shape).unwrap().len(), 2000);
    }
    let even = ConcreteEvenSharding::new_lenient(
        devices(2000),
        MemoryKind::unset(),
        shape([1; 2000]),
        shape([1; 2000]),
        false,
    );
    assert!(Sharding::from(even).disassemble_within(&shape([1; 2000]), 10 << 20).is_err());
}

#[test]
fn the_names_of_a_mesh_are_not_repeated_at_full_length() {
    let axis = wire::mesh_proto::MeshAxis { name: "x".repeat(10_000), size: 2 };
    let reference = wire::AxisRefProto::default();
    let named = wire::NamedShardingProto {
        mesh: Some(wire::MeshProto { axes: vec![axis], ..Default::default() }),
        replicated_axes: vec![reference; 1000],
        ..Default::default()
    };
    let message = wire::OpSharding { named_sharding: Some(named), ..Default::default() };
    let op_sharding = OpSharding::new(message).unwrap();
    assert!(op_sharding.to_string().len() < 200_000);
    let error = HloSharding::new(devices(3), MemoryKind::unset(), op_sharding).unwrap_err();
    assert!(error.to_string().len() < 400_000);
}

#[test]
fn question_that_a_sharding_cannot_answer_is_an_error() {
    let manual = OpSharding::with_subgroups(iota(&[2, 2], &[4], &[0]), &[OpShardingType::Manual]);
    for op_sharding in [
        OpSharding::manual(),
        OpSharding::unreduced(),
        OpSharding::unknown(),
        OpSharding::tuple([OpSharding::replicated()]).unwrap(),
        manual.unwrap(),
    ] {
        let error = sharding(4, op_sharding).index_domains(&shape([4])).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
    }
    let rows = sharding(2, OpSharding::tiled(iota(&[2, 1], &[2], &[0])));
    assert!(rows.shard_shape(&shape([4])).is_err());
    assert!(rows.index_domains(&shape([4])).is_err());
    let outside = OpSharding::tiled(TileAssignment::listed([2], [0, 7]).unwrap());
    assert!(sharding(2, outside).index_domains(&shape([4])).is_err());
    let twice = OpSharding::tiled(TileAssignment::listed([2], [0, 0]).unwrap());
    assert!(sharding(2, twice).index_domains(&shape([4])).is_err());
}

#[test]
fn tile_count_other_than_device_count_is_refused() {
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
    assert_eq!(error.kind(), ErrorKind::TooNew);
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
