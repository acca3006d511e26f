use super::*;
use crate::{
    codec::{ErrorKind, FromProto as _, StatusCode, ToProto as _},
    ifrt::{
        IndexDomain,
        testing::{version, versions},
    },
};

fn param(text: &str) -> ShardingParam {
    text.parse().unwrap()
}

fn refused(text: &str, validation: Validation) -> String {
    let error = text::parse(text).unwrap().verify(validation).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    error.to_string()
}

#[test]
fn sharding_param_without_unreduced_axes_never_changes() {
    let plain = param("2x1 to [0,1] on 2x3");
    for version in versions() {
        let proto = plain.to_proto(version).unwrap();
        assert_eq!(proto.version_number, 0);
        assert_eq!(ShardingParam::from_proto(&proto, &DeserializeOptions::new()).unwrap(), plain);
        assert_eq!(
            plain.to_bytes(version).unwrap()[..],
            *b"\x0a\x02\x02\x01\x12\x02\x00\x01\x1a\x02\x02\x03"
        );
    }
}

#[test]
fn unreduced_axes_are_recorded_as_1_and_refused_at_version_0() {
    let unreduced = param("2x1 to [0,1] on 2x3 unreduced [1]");
    let error = unreduced.to_proto(version(0)).unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    let text = error.to_string();
    assert!(text.contains("ShardingParam") && text.contains("version 0"), "{text}");
    assert!(text.contains("unreduced_axes") && text.contains("version 1 is the first"), "{text}");
    assert_eq!(unreduced.minimum_version().unwrap().number(), 1);
    for version in versions().skip(1) {
        let proto = unreduced.to_proto(version).unwrap();
        assert_eq!((proto.version_number, &proto.unreduced_axes[..]), (1, &[1][..]));
        let options = DeserializeOptions::new().with_validation(Validation::Strict);
        assert_eq!(ShardingParam::from_proto(&proto, &options).unwrap(), unreduced);
    }
}

#[test]
fn recorded_numbers_up_to_2_and_negative_ones_are_read() {
    let read = |version_number, validation| {
        let proto = ShardingParamProto {
            dim_shards: vec![2],
            permutation: vec![0],
            axis_sizes: vec![2],
            version_number,
            unreduced_axes: vec![0],
        };
        let options = DeserializeOptions::new().with_validation(validation);
        ShardingParam::from_proto(&proto, &options)
    };
    for number in [1, 2] {
        assert_eq!(read(number, Validation::Parity).unwrap().unreduced_axes(), [0]);
    }
    for number in [0, -1, i32::MIN] {
        assert!(read(number, Validation::Parity).unwrap().unreduced_axes().is_empty());
        assert!(read(number, Validation::Strict).is_err());
    }
    assert_eq!(read(3, Validation::Parity).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(read(6, Validation::Parity).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(read(7, Validation::Parity).unwrap_err().kind(), ErrorKind::TooNew);
}

#[test]
fn reading_does_not_verify_except_in_strict_mode() {
    let proto = ShardingParamProto { dim_shards: vec![5], ..ShardingParamProto::default() };
    let options = DeserializeOptions::new();
    let read = ShardingParam::from_proto(&proto, &options).unwrap();
    assert!(read.device_order().is_err());
    assert!(read.index_domains(&Shape::new([5]).unwrap()).is_err());
    let strict = options.with_validation(Validation::Strict);
    assert!(ShardingParam::from_proto(&proto, &strict).is_err());
}

#[test]
fn verification_follows_the_order_of_upstream() {
    use Validation::Parity;
    let lengths = refused("2 to [0,0] on 2", Parity);
    assert!(lengths.contains("the permutation has 2 axes and the mesh has 1"), "{lengths}");
    assert!(refused(" to [] on ", Parity).contains("at least 1"));
    let duplicate = refused("2 to [7,7] on 2x2", Parity);
    assert!(duplicate.contains("[7, 7] names an axis twice"), "{duplicate}");
    let range = refused("2 to [0,2] on 2x3", Parity);
    assert!(range.contains("the axis 2") && range.contains("2x3"), "{range}");
    assert!(refused("2 to [0,-1] on 2x3", Parity).contains("the axis -1"));
    let unreduced = refused("2 to [0,1] on 2x3 unreduced [1,5,5]", Parity);
    assert!(unreduced.contains("unreduced axis 5 is not"), "{unreduced}");
    let unreduced = refused("2 to [0,1] on 2x3 unreduced [1,1,5]", Parity);
    assert!(unreduced.contains("unreduced axis 1 is listed twice"), "{unreduced}");
    let assignment = refused("4 to [0,1] on 2x3", Parity);
    assert!(assignment.contains("the shards 4 do not fit a mesh of 2x3"), "{assignment}");
}

#[test]
fn shards_fit_whole_axes_and_parts_of_one() {
    for fits in [
        "2x1 to [0,1] on 2x3",
        "1x1 to [0] on 7",
        " to [0] on 2",
        "4 to [1,0] on 2x2",
        "2x3 to [0] on 6",
        "2x1x3 to [1,0] on 3x2",
        "1x2x1 to [0,1] on 2x8",
        "2 to [0] on 6",
    ] {
        assert_eq!(param(fits).to_string(), fits);
    }
    for does_not in ["5 to [0,1] on 2x3", "4 to [0] on 6", "2x2 to [0] on 2"] {
        assert!(does_not.parse::<ShardingParam>().is_err(), "{does_not}");
    }
}

#[test]
fn overflowing_products_and_nonpositive_sizes_are_errors() {
    let overflow = ShardingParam::new([1], [0, 1], [65536, 65536]).unwrap_err();
    assert!(matches!(overflow, IfrtError::Overflow { .. }), "{overflow}");
    let overflow = ShardingParam::new([65536, 65536], [0], [2]).unwrap_err();
    assert!(matches!(overflow, IfrtError::Overflow { .. }), "{overflow}");
    for shards in [0, -2, i64::MIN] {
        let error = ShardingParam::new([shards], [0], [2]).unwrap_err();
        assert!(error.to_string().contains("expected 1 or more"), "{error}");
    }
    // Upstream divides by it.
    let zero = ShardingParam::new_lenient([0], [0], [2], []);
    assert!(zero.verify(Validation::Parity).is_err());
    assert!(ShardingParam::new([1], [0], [0]).is_err());
    assert!(ShardingParam::new([1], [0], [-2]).is_err());
    ShardingParam::new([2, 1], [0, 1], [2, 2]).unwrap();
}

#[test]
fn the_device_order_is_that_of_the_examples() {
    let order = |text| param(text).device_order().unwrap().collect::<Vec<_>>();
    assert_eq!(order("2x1x3 to [1,0] on 3x2"), [0, 3, 1, 4, 2, 5]);
    assert_eq!(order("4 to [1,0] on 2x2"), [0, 2, 1, 3]);
    assert_eq!(order("2x1 to [0,1] on 2x3"), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn device_order_of_a_huge_mesh_is_lazy() {
    let huge = ShardingParam::new([1], [0, 1], [32768, 65535]).unwrap();
    assert_eq!(huge.device_order().unwrap().next(), Some(0));
    assert!(huge.index_domains(&Shape::new([1]).unwrap()).is_err());
}

#[test]
fn huge_mesh_in_a_few_bytes_is_refused_with_the_limit() {
    // One dimension in one shard, over two axes of 2^13 and 2^14 devices: 2^27 domains.
    let bytes = [0x0a, 1, 1, 0x12, 2, 0, 1, 0x1a, 5, 0x80, 0x40, 0x80, 0x80, 0x01];
    let options = DeserializeOptions::new();
    let mesh = ShardingParam::from_bytes(bytes.to_vec().into(), &options).unwrap();
    assert_eq!(mesh.device_count(), Ok(1 << 27));
    let shape = Shape::new([8]).unwrap();
    let error = mesh.index_domains(&shape).unwrap_err();
    assert_eq!(error.code(), StatusCode::ResourceExhausted);
    assert!(error.to_string().contains("the limit is 67108864"), "{error}");
    let error = mesh.index_domains_within(&shape, 1000).unwrap_err();
    assert!(error.to_string().contains("the limit is 1000"), "{error}");
    assert_eq!(mesh.index_domain_of((1 << 27) - 1, &shape), Ok(IndexDomain::whole(shape.clone())));
    assert!(mesh.index_domain_of(1 << 27, &shape).is_err());
    assert!(mesh.index_domain_of(-1, &shape).is_err());
    // Axes of one device add no cost per device.
    let axes = 100_000;
    let long = ShardingParam::new([1], (0..axes).collect::<Vec<_>>(), vec![1; axes as usize]);
    let long = long.unwrap();
    assert_eq!(long.device_order().unwrap().collect::<Vec<_>>(), [0]);
}

#[test]
fn a_device_that_is_asked_alone_answers_as_among_all() {
    let param = param("2x3 to [1,0,2] on 3x4x2");
    let shape = Shape::new([8, 9]).unwrap();
    let all = param.index_domains(&shape).unwrap();
    assert_eq!(all.len(), 24);
    for (device, domain) in (0..).zip(&all) {
        assert_eq!(param.index_domain_of(device, &shape).as_ref(), Ok(domain));
    }
    // The devices hold the tiles in row-major order, replicas side by side.
    let ordered: Vec<_> =
        param.device_order().unwrap().map(|device| all[device as usize].origin()).collect();
    assert!(ordered.is_sorted());
}

#[test]
fn index_domains_are_row_major_tiles_with_replicas_side_by_side() {
    let domains = param("2x1 to [0,1] on 2x3").index_domains(&Shape::new([4, 5]).unwrap()).unwrap();
    let origins: Vec<_> = domains.iter().map(|domain| domain.origin().elements()).collect();
    assert_eq!(origins, [[0, 0], [0, 0], [0, 0], [2, 0], [2, 0], [2, 0]]);
    assert!(domains.iter().all(|domain| domain.shape().dims() == [2, 5]));

    let domains = param("4 to [1,0] on 2x2").index_domains(&Shape::new([8]).unwrap()).unwrap();
    let origins: Vec<_> = domains.iter().map(|domain| domain.origin().elements()[0]).collect();
    assert_eq!(origins, [0, 4, 2, 6]);

    let shape = Shape::new([4, 6]).unwrap();
    let domains = param("2x3 to [0,1] on 2x3").index_domains(&shape).unwrap();
    let origins: Vec<_> = domains.iter().map(|domain| domain.origin().elements()).collect();
    assert_eq!(origins, [[0, 0], [0, 2], [0, 4], [2, 0], [2, 2], [2, 4]]);
}

#[test]
fn a_shape_that_cannot_be_cut_is_named() {
    let param = param("2x3 to [0,1] on 2x3");
    let error = param.shard_shape(&Shape::new([4]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("rank 1; expected rank 2"), "{error}");
    let error = param.shard_shape(&Shape::new([4, 5]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("dimension 1 of 5 elements"), "{error}");
    assert_eq!(error.code(), StatusCode::InvalidArgument);
}

#[test]
fn the_text_form_makes_the_round_trip() {
    for text in ["2x1 to [0,1] on 2x3", " to [0] on 2", "1 to [1,0] on 2x3 unreduced [0,1]"] {
        assert_eq!(param(text).to_string(), text);
    }
    assert_eq!(param("to [0] on 2"), param(" to [0] on 2"));
    for (wrong, at) in [
        ("", 0),
        ("2x1", 3),
        ("2x1 to [0,1]", 12),
        ("2x1 to 0,1 on 2x3", 7),
        ("2xx1 to [0,1] on 2x3", 2),
        ("2x1 to [0,y] on 2x3", 10),
        ("2x1 to [0,1] on 2x3 unreduced", 18),
        ("2x1 to [0,1] on 2x3 and more", 18),
        ("2x1 to [0,1] on 2x3 unreduced 1", 30),
        ("99999999999999999999 to [0] on 2", 0),
    ] {
        match wrong.parse::<ShardingParam>() {
            Err(IfrtError::Text { position, .. }) => assert_eq!(position, at, "{wrong}"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
}
