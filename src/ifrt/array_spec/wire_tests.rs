use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::{
    codec::{FromProto, ToProto, Validation},
    ifrt::{
        AnyDevice, BoundedDynamicShapeTag, ConcreteEvenSharding, ConcreteSharding, DeviceId,
        DeviceList, DynamicShape, HloSharding, MemoryKind, OpaqueSharding, ShardingParam,
        ShardingParamSharding, SingleDeviceSharding,
        sharding::ShardShapes,
        testing::versions,
        with_devices,
        xla::{OpSharding, TileAssignment},
    },
    proto::xla as message,
    wire::{Dialect, FieldValue, WireReader},
};

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
    (parts, 0..8_u8).prop_flat_map(|((devices, kind, shape, part, flag), variant)| {
        let count = devices.len() as i64;
        op_shardings(count).prop_map(move |op_sharding| -> Sharding {
            let (devices, kind) = (devices.clone(), kind.clone());
            let (shape, part) = (shape.clone(), part.clone());
            match variant {
                0 => SingleDeviceSharding::new(devices.ids()[0]).with_memory_kind(kind).into(),
                1 => OpaqueSharding::new(devices, kind).into(),
                2 => ConcreteEvenSharding::new_lenient(devices, kind, shape, part, flag).into(),
                3 => {
                    let shard_shapes = vec![part; devices.len()];
                    let shapes = ShardShapes::Static { shape, shard_shapes };
                    ConcreteSharding::new_lenient(devices, kind, shapes).into()
                }
                4 => {
                    let tag = BoundedDynamicShapeTag::new([true, flag]).unwrap();
                    let shape = DynamicShape::new(Shape::new([count, 7]).unwrap(), tag).unwrap();
                    let shard_shapes = vec![shape.clone(); 2];
                    let shapes = ShardShapes::Dynamic { shape, shard_shapes };
                    ConcreteSharding::new_lenient(devices, kind, shapes).into()
                }
                5 => {
                    let unreduced = if flag { vec![0] } else { vec![] };
                    let param =
                        ShardingParam::new_lenient([1, count], [0], [count as i32], unreduced);
                    ShardingParamSharding::new_lenient(param, devices, kind).unwrap().into()
                }
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

/// Reads the spec from the bytes through prost's message.
fn by_message(bytes: &[u8], options: &DeserializeOptions) -> Option<ArraySpec> {
    let message = ArraySpecProto::decode(bytes).ok()?;
    ArraySpec::from_proto(&message, options).ok()
}

fn fields(message: &[u8]) -> Vec<(u32, FieldValue<'_>, &[u8])> {
    let mut reader = WireReader::new(Dialect::Prost, message);
    let mut fields = Vec::new();
    while let Some(field) = reader.next_field().unwrap() {
        fields.push((field.number, field.value, field.raw));
    }
    fields
}

/// Returns the message with its fields in another order, nested messages in pieces, and an unknown
/// field between them, as protobuf allows but no writer does.
fn scattered(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, value, raw) in fields(message).into_iter().rev() {
        match value {
            FieldValue::Bytes(nested) if number < 4 => {
                for (.., piece) in fields(nested) {
                    prost::encoding::bytes::encode(number, &piece.to_vec(), &mut out);
                }
            }
            _ => out.extend_from_slice(raw),
        }
        out.extend_from_slice(&[0xf8, 0x01, 0x07]);
    }
    out
}

proptest! {
    #[test]
    fn specs_are_written_and_read_as_prost_does(spec in specs()) {
        let options = with_devices(AnyDevice);
        for version in versions() {
            match (spec.to_bytes(version), spec.to_proto(version)) {
                (Ok(bytes), Ok(message)) => {
                    prop_assert_eq!(&bytes[..], message.encode_to_vec());
                    let reference = by_message(&bytes, &options);
                    prop_assert!(reference.is_some());
                    let scattered = scattered(&bytes);
                    prop_assert_eq!(&by_message(&scattered, &options), &reference);
                    for bytes in [bytes, scattered.into()] {
                        prop_assert_eq!(&ArraySpec::from_bytes(bytes, &options).ok(), &reference);
                    }
                }
                (bytes, message) => prop_assert_eq!(bytes.err(), message.err()),
            }
        }
    }

    #[test]
    fn damaged_bytes_are_read_as_prost_reads_them(
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
            with_devices(AnyDevice).with_validation(Validation::Strict),
        ] {
            let read = ArraySpec::from_bytes(bytes.clone().into(), &options).ok();
            prop_assert_eq!(read, by_message(&bytes, &options));
        }
    }
}
