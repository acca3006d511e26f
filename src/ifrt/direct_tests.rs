use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::{
    ifrt::{
        AnyDevice, ConcreteSharding, IfrtError, ShardingParam, ShardingParamSharding,
        sharding::ShardShapes, with_devices,
    },
    proto::xla as message,
    version::{AnyVersionAccessor, Ifrt, Line as _},
};

fn versions() -> impl Iterator<Item = SerDesVersion> {
    Ifrt::ENTRIES.iter().map(|entry| AnyVersionAccessor::get(entry.number).unwrap())
}

fn shapes() -> impl Strategy<Value = Shape> {
    let dimension = prop_oneof![0_i64..300, any::<i64>().prop_map(|size| size & i64::MAX)];
    prop::collection::vec(dimension, 0..10).prop_map(|dims| Shape::new(dims).unwrap())
}

fn device_lists() -> impl Strategy<Value = DeviceList> {
    prop_oneof![
        prop::collection::vec(any::<i32>(), 1..20),
        (0_i32..500, 1_i32..600).prop_map(|(start, count)| (start..start + count).collect()),
    ]
    .prop_map(|ids: Vec<i32>| ids.into_iter().map(DeviceId).collect())
}

fn memory_kinds() -> impl Strategy<Value = MemoryKind> {
    prop_oneof![
        Just(MemoryKind::unset()),
        Just(MemoryKind::new("")),
        "[a-zü_]{1,12}".prop_map(MemoryKind::new),
    ]
}

fn op_shardings(count: i64) -> impl Strategy<Value = OpSharding> {
    let listed = TileAssignment::listed([count], (0..count).rev().collect::<Vec<_>>());
    let named = OpSharding::new(message::OpSharding {
        is_shard_group: true,
        shard_group_id: 3,
        ..Default::default()
    });
    prop_oneof![
        Just(OpSharding::replicated()),
        Just(OpSharding::maximal(count)),
        Just(OpSharding::manual()),
        Just(OpSharding::tiled(TileAssignment::iota([count], [count], [0]).unwrap())),
        Just(OpSharding::tiled(listed.unwrap())),
        Just(OpSharding::partially_replicated(
            TileAssignment::iota([1, count], [1, count], [1, 0]).unwrap()
        )),
        Just(OpSharding::tuple([OpSharding::replicated()]).unwrap()),
        Just(named.unwrap()),
    ]
}

fn shardings() -> impl Strategy<Value = Sharding> {
    let parts = (device_lists(), memory_kinds(), shapes(), shapes(), any::<bool>());
    (parts, 0..5_u8).prop_flat_map(|((devices, kind, shape, part, flag), variant)| {
        let count = devices.len() as i64;
        op_shardings(count).prop_map(move |op_sharding| -> Sharding {
            let (devices, kind) = (devices.clone(), kind.clone());
            let (shape, part) = (shape.clone(), part.clone());
            match variant {
                0 => SingleDeviceSharding::new(devices.ids()[0]).with_memory_kind(kind).into(),
                1 => OpaqueSharding::new(devices, kind).into(),
                2 => ConcreteEvenSharding::new_lenient(devices, kind, shape, part, flag).into(),
                _ => HloSharding::new(devices, kind, op_sharding).unwrap().into(),
            }
        })
    })
}

fn specs() -> impl Strategy<Value = ArraySpec> {
    let layouts = prop_oneof![
        Just(None),
        Just(Some("{}")),
        Just(Some("{1,0:T(8,128)}")),
        Just(Some("{0:L(8)E(4)}")),
    ];
    (0..DType::ALL.len(), shapes(), shardings(), layouts).prop_map(
        |(dtype, shape, sharding, layout)| {
            let spec = ArraySpec::new(DType::ALL[dtype], shape, sharding);
            match layout {
                Some(text) => spec.with_layout(text.parse::<PjRtLayout>().unwrap()),
                None => spec,
            }
        },
    )
}

/// The spec read from the message alone.
fn by_message(bytes: &[u8], options: &DeserializeOptions) -> Option<ArraySpec> {
    let message = crate::proto::xla::ifrt::ArraySpecProto::decode(bytes).ok()?;
    ArraySpec::from_owned_proto(message, options).ok()
}

#[test]
fn shardings_without_a_direct_form_are_written_as_their_messages() -> Result<(), IfrtError> {
    let two = DeviceList::from([0, 1]);
    let part = Shape::new([2])?;
    let shards =
        ShardShapes::Static { shape: Shape::new([4])?, shard_shapes: vec![part.clone(), part] };
    let param: ShardingParam = "2 to [0] on 2".parse()?;
    for sharding in [
        Sharding::from(ShardingParamSharding::new(param, two.clone(), MemoryKind::unset())?),
        ConcreteSharding::new(two, MemoryKind::unset(), shards)?.into(),
    ] {
        let spec = ArraySpec::new(DType::F32, Shape::new([4])?, sharding);
        let options = with_devices(AnyDevice);
        for version in versions() {
            let bytes = spec.to_bytes(version).unwrap();
            assert_eq!(bytes, spec.to_proto(version).unwrap().encode_to_vec());
            assert_eq!(ArraySpec::from_bytes(bytes, &options), Ok(spec.clone()));
        }
    }
    Ok(())
}

#[test]
fn what_real_writers_send_takes_the_direct_way() -> Result<(), IfrtError> {
    let devices: DeviceList = (0..4096).map(DeviceId).collect();
    let device = || MemoryKind::new("device");
    let shape = Shape::new([4096, 2])?;
    let rows = OpSharding::tiled(TileAssignment::iota([4096, 1], [4096], [0])?);
    let part = Shape::new([1, 2])?;
    for sharding in [
        Sharding::from(HloSharding::new(devices.clone(), device(), rows)?),
        HloSharding::replicated(devices.clone(), device())?.into(),
        ConcreteEvenSharding::new(devices.clone(), device(), shape.clone(), part, false)?.into(),
        OpaqueSharding::new(devices, device()).into(),
        SingleDeviceSharding::new(DeviceId(3)).into(),
    ] {
        let spec = ArraySpec::new(DType::F32, shape.clone(), sharding);
        let bytes = spec.to_bytes(SerDesVersion::current()).unwrap();
        assert_eq!(read_array_spec(&bytes, &with_devices(AnyDevice)), Some(spec));
    }
    Ok(())
}

proptest! {
    #[test]
    fn specs_are_written_and_read_as_their_messages_are(spec in specs()) {
        let options = with_devices(AnyDevice);
        for version in versions() {
            match (spec.to_bytes(version), spec.to_proto(version)) {
                (Ok(bytes), Ok(message)) => {
                    prop_assert_eq!(&bytes[..], message.encode_to_vec());
                    let direct = read_array_spec(&bytes, &options);
                    let reference = by_message(&bytes, &options);
                    prop_assert!(reference.is_some());
                    if spec.shape().rank() <= 8 && direct.is_some() {
                        prop_assert_eq!(direct, reference.clone());
                    }
                    prop_assert_eq!(ArraySpec::from_bytes(bytes, &options).ok(), reference);
                }
                (direct, message) => prop_assert_eq!(direct.err(), message.err()),
            }
        }
    }

    #[test]
    fn damaged_bytes_are_read_as_their_message_is(
        spec in specs(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let version = SerDesVersion::current();
        let mut bytes = spec.to_bytes(version).unwrap().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut.index(4) == 0 {
            bytes.truncate(cut.index(bytes.len()));
        }
        for options in [
            with_devices(AnyDevice),
            with_devices(AnyDevice).with_validation(crate::codec::Validation::Strict),
        ] {
            if let Some(direct) = read_array_spec(&bytes, &options) {
                prop_assert_eq!(Some(direct), by_message(&bytes, &options));
            }
        }
    }
}
