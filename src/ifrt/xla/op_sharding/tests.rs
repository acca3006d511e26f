use super::*;

fn iota(dimensions: &[i64], reshape: &[i64], transpose: &[i32]) -> TileAssignment {
    TileAssignment::iota(dimensions, reshape, transpose).unwrap()
}

#[test]
fn shardings_are_printed_in_the_notation_of_hlo() {
    let four = || iota(&[2, 1, 2], &[4], &[0]);
    let subgroups = [OpShardingType::Manual, OpShardingType::Replicated];
    let nested = OpSharding::tuple((0..6).map(|_| OpSharding::replicated())).unwrap();
    for (sharding, text) in [
        (OpSharding::replicated(), "{replicated}"),
        (OpSharding::maximal(3), "{maximal device=3}"),
        (OpSharding::manual(), "{manual}"),
        (OpSharding::unreduced(), "{unreduced}"),
        (OpSharding::unknown(), "{unknown}"),
        (OpSharding::tiled(iota(&[2, 1], &[2], &[0])), "{devices=[2,1]<=[2]}"),
        (OpSharding::tiled(iota(&[2, 2], &[2, 2], &[1, 0])), "{devices=[2,2]<=[2,2]T(1,0)}"),
        (OpSharding::tiled(TileAssignment::listed([2, 1], [1, 0]).unwrap()), "{devices=[2,1]1,0}"),
        (
            OpSharding::partially_replicated(four()),
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        ),
        (
            OpSharding::with_subgroups(four(), &subgroups).unwrap(),
            "{devices=[2,1,2]<=[4] last_tile_dims={manual, replicated}}",
        ),
        (
            nested,
            "{{replicated}, {replicated}, {replicated}, {replicated}, {replicated}, /*index=5*/{replicated}}",
        ),
    ] {
        assert_eq!(sharding.to_string(), text);
        assert_eq!(OpSharding::new(sharding.proto().clone()), Ok(sharding));
    }
    let group = xla::OpSharding {
        is_shard_group: true,
        shard_group_id: 7,
        shard_group_type: 1,
        ..Default::default()
    };
    assert_eq!(OpSharding::new(group).unwrap().to_string(), "{replicated shard_like 7}");
}

#[test]
fn contradictory_message_is_refused_with_the_status_of_xla() {
    let tiled = || xla::OpSharding { r#type: 3, ..Default::default() };
    let tuple = || xla::OpSharding { r#type: 2, ..Default::default() };
    for (proto, part) in [
        (xla::OpSharding { r#type: 9, ..Default::default() }, "type is 9"),
        (xla::OpSharding { r#type: 1, ..Default::default() }, "lists 0 devices"),
        (tiled(), "0 devices are listed"),
        (
            xla::OpSharding {
                tile_assignment_dimensions: vec![2],
                tile_assignment_devices: vec![0],
                ..tiled()
            },
            "that is 2 tiles, but 1 devices",
        ),
        (
            xla::OpSharding {
                tile_assignment_dimensions: vec![2],
                iota_reshape_dims: vec![2],
                iota_transpose_perm: vec![1],
                ..tiled()
            },
            "transposed by [1]",
        ),
        (
            xla::OpSharding {
                tile_assignment_dimensions: vec![2],
                iota_reshape_dims: vec![2],
                iota_transpose_perm: vec![0],
                tile_assignment_devices: vec![0, 1],
                ..tiled()
            },
            "both a list and an iota",
        ),
        (
            xla::OpSharding {
                tile_assignment_dimensions: vec![2],
                iota_reshape_dims: vec![2],
                iota_transpose_perm: vec![0],
                last_tile_dims: vec![0, 4],
                ..tiled()
            },
            "2 subgroups for 1 tile dimensions",
        ),
        (xla::OpSharding { tuple_shardings: vec![tuple()], ..tuple() }, "flat tuple"),
    ] {
        let error = OpSharding::from_proto("HloSharding", proto).unwrap_err();
        assert_eq!(error.code(), crate::codec::StatusCode::Internal);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_named_sharding_is_kept_and_says_its_shards() {
    let axis = |name: &str, size| xla::mesh_proto::MeshAxis { name: name.to_owned(), size };
    let split = |index| xla::named_sharding_proto::DimensionSharding {
        axes: vec![xla::AxisRefProto { mesh_axis_index: index, sub_axis_info: None }],
        is_closed: true,
    };
    let named = xla::NamedShardingProto {
        mesh: Some(xla::MeshProto { axes: vec![axis("x", 2), axis("y", 4)], ..Default::default() }),
        dim_shardings: vec![split(1), Default::default()],
        ..Default::default()
    };
    let proto = xla::OpSharding { named_sharding: Some(named), ..Default::default() };
    let sharding = OpSharding::new(proto.clone()).unwrap();
    assert_eq!(sharding.proto(), &proto);
    assert_eq!(sharding.device_count(), Some(8));
    assert_eq!(sharding.shards(2), Ok(Some(vec![4, 1])));
    assert!(sharding.shards(3).is_err());
    assert!(!sharding.is_replicated());
    assert_eq!(sharding.to_string(), "{mesh['x'=2,'y'=4], [{'y'}, {?}]}");
}

#[test]
fn subgroups_do_not_cut_the_value() {
    let sharding = OpSharding::partially_replicated(iota(&[2, 1, 2], &[4], &[0]));
    assert_eq!(sharding.tiled_rank(), Some(2));
    assert_eq!(sharding.shards(2), Ok(Some(vec![2, 1])));
    assert_eq!(sharding.device_count(), Some(4));
    assert_eq!(OpSharding::replicated().shards(5), Ok(None));
    assert_eq!(OpSharding::replicated().device_count(), None);
}
